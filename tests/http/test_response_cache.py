"""The response cache: whatever is held is what routing answers, byte for byte, and nothing else is held."""

import asyncio
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware import Middleware, build_middleware_stack
from localidades_api.middleware.response_cache import ResponseCache
from localidades_api.settings import Settings
from tests.support.application import await_release, await_searched, client_of, import_into, running_app
from tests.support.asgi import as_asgi, scope_of
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.postgres import locked, new_database
from tests.support.wire import LOCALIDADES

SUGGEST, TILE = f"{LOCALIDADES}suggest/", f"{LOCALIDADES}tiles/0/0/0.mvt"
PATHS = [LOCALIDADES, LOCALIDADES, SUGGEST, TILE, f"{LOCALIDADES}10010001/", f"{LOCALIDADES}nearest/", "/match"]
PARTS = [
    "page=1", "page=3", "page=003", "page=0", "page=4", "page=+1", "page=", "page", f"page={3:020d}", "format=json",
    "format=api", "lang=es", "lang=en", "lang=fr", "lang=", "format=xml", "release=2020-01", "release=2019-01",
    "release=", "x=1", "", "page_size=100", "estado_id=1", "sort=-nombre", "search=lugar", "q=lugar", "q=%00", "q=%ff",
    "q=ñandú", f"q={quote('ñ' * 100)}", "%71=lugar", "limit=3", "kind=municipio", "lat=21.9&lon=-102.3", "utm_source=x",
]  # fmt: skip
FIELDS = {
    "accept": ["*/*", "application/json", "text/html", "text/html;q=0.5, */*;q=0.4", "garbage", "", "application/xml"],
    "accept-language": ["es", "en", "es-MX,es;q=0.9,en;q=0.8", "fr", "*", "", f"{'x' * 7}, " * 30 + "es"],
    "accept-encoding": ["gzip", "br;q=0.1, gzip", "identity", "", "gzip;q=0"],
    "if-none-match": ["same", "weak", '"x"', "*", "list"],
    "host": ["test", "localhost:8000"],
    "user-agent": ["somebody"],
}
RESOURCES = [
    "/", "/api/census/", "/api/census/estados/", "/api/census/municipios/?estado_id=1", "/api/census/releases/",
    "/api/census/reconcile/", "/api/census/changes/2020-01/", "/openapi.json", "/problems", "/match", "/map", "/docs",
    "/readyz", "/livez", "/metrics", "/static/style.css", "/robots.txt", "/nothing", f"{LOCALIDADES}tiles.json",
    f"{LOCALIDADES}10010001/", f"{LOCALIDADES}10010001/history/", f"{LOCALIDADES}999999999/", f"{LOCALIDADES}download/",
    f"{LOCALIDADES}backdrop.svg", f"{LOCALIDADES}nearest/?lat=21.9&lon=-102.3", f"{SUGGEST}?q=lugar", TILE,
    LOCALIDADES, f"{LOCALIDADES}?page=9", f"{LOCALIDADES}?search=lugar", f"{LOCALIDADES}?page_size=1000",
]  # fmt: skip


def front_of(app: FastAPI) -> Middleware:
    return build_middleware_stack(app, Settings())


def client_through(front: Middleware) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(as_asgi(front)), base_url="http://test")


def as_sent(response: RawResponse) -> tuple[int, bytes, bytes]:
    return response.status, b"".join(response.headers), response.body


def lines_of(answer: httpx.Response) -> bytes:
    return b"".join(b"%b: %b\r\n" % header for header in answer.headers.raw)


async def raw_body(client: httpx.AsyncClient, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    answer = await client.send(request, stream=True)
    return answer, b"".join([chunk async for chunk in answer.aiter_raw()])


@pytest.fixture(scope="module")
async def app(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    with new_database(server, seeded) as url:
        async with running_app(url, page_cache_bytes=1_000_000) as app, client_of(app) as client:
            await await_release(client, "2020-01")
            yield app


@pytest.fixture(scope="module")
def front(app: FastAPI) -> Middleware:
    """Lend the middleware that all requests of this module share: none may change the answer to another."""
    return front_of(app)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PATHS),
    parts=st.lists(st.sampled_from(PARTS), max_size=4),
    fields=st.lists(
        st.sampled_from([(name, value) for name, values in FIELDS.items() for value in values]), max_size=4
    ),
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"]),
)
async def test_any_request_is_answered_twice_as_routing_does(
    *, app: FastAPI, front: Middleware, path: str, parts: list[str], fields: list[tuple[str, str]], method: str
) -> None:
    """Byte for byte: status, every header in its order, and body."""
    async with client_of(app) as routing, client_through(front) as cached:
        etag = (await routing.get(f"{path}?{'&'.join(parts)}")).headers.get("etag", '"none"')
        conditions = {"same": etag, "weak": f"W/{etag.removeprefix('W/')}", "list": f'"x", {etag}'}
        headers = [(name, conditions.get(value, value)) for name, value in fields]
        request = routing.build_request(method, f"{path}?{'&'.join(parts)}", headers=headers)
        for name in FIELDS.keys() - {name for name, _ in fields} - {"host"}:
            request.headers.pop(name, None)  # httpx adds some of its own
        by_routing, body = await raw_body(routing, request)
        for _ in range(2):
            answer, again = await raw_body(cached, request)
            assert (answer.status_code, again) == (by_routing.status_code, body)
            assert [field for field in answer.headers.raw if field[0] != b"x-request-id"] == by_routing.headers.raw


@pytest.mark.parametrize(("target", "accept"), list(product(RESOURCES, ["*/*", "text/html"])))
async def test_what_is_held_is_what_was_answered(app: FastAPI, target: str, accept: str) -> None:
    front = front_of(app)
    async with client_through(front) as client:
        request = client.build_request("GET", target, headers={"accept": accept})
        assert front.try_respond(scope_of(request)) is None
        answer, body = await raw_body(client, request)
        held = front.try_respond(scope_of(request))
        is_api = target.startswith("/api/census/") and "download" not in target
        if answer.status_code == httpx.codes.OK and "etag" in answer.headers and is_api:
            assert held
        if held:
            assert as_sent(held) == (answer.status_code, lines_of(answer), body)
            assert "etag" in answer.headers
            condition = {"accept": accept, "if-none-match": answer.headers["etag"]}
            for _ in range(2):
                again = await client.get(target, headers=condition)
                assert (again.status_code, again.content) == (304, b"")
        else:
            assert answer.status_code != httpx.codes.OK or "etag" not in answer.headers or not is_api


@pytest.mark.parametrize("target", [f"{LOCALIDADES}tiles.json", "/api/census/reconcile/"])
async def test_answer_that_names_its_host_is_no_answer_for_another(app: FastAPI, target: str) -> None:
    async with client_through(front_of(app)) as client:
        for host in ("one.example", "two.example", "one.example"):
            assert host in (await client.get(target, headers={"host": host})).text


@pytest.mark.parametrize(
    ("method", "target"), [("HEAD", LOCALIDADES), ("POST", LOCALIDADES), ("GET", "/static/style.css")]
)
async def test_other_requests_are_not_held(app: FastAPI, method: str, target: str) -> None:
    front = front_of(app)
    async with client_through(front) as client:
        request = client.build_request(method, target)
        await client.send(request)
        assert front.try_respond(scope_of(request)) is None


async def test_nothing_is_held_under_the_next_release(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=1_000_000) as app:
        front = front_of(app)
        targets = [LOCALIDADES, f"{LOCALIDADES}?format=api", f"{LOCALIDADES}?release=2020-01", "/api/census/releases/"]
        search = f"{SUGGEST}?q=nuevo"
        async with client_through(front) as client:
            requests = [client.build_request("GET", target) for target in (*targets, search)]
            for request in requests:
                await client.send(request)
                assert front.try_respond(scope_of(request))
            places = [*many(132), Place("010019997", "Nuevo")]
            await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
            await await_release(client, "2021-01")
            assert [front.try_respond(scope_of(request)) for request in requests[:-1]] == [None] * len(targets)
            assert (await client.get(LOCALIDADES)).headers["catalogue-release"] == "2021-01"
            await await_searched(client, "2021-01")
            assert "Nuevo" in (await client.get(search)).text


async def test_answer_that_began_under_one_release_is_not_held_under_the_next(
    seeded_database: str, tmp_path: Path
) -> None:
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    async with running_app(seeded_database, in_background=False) as app:
        front, releases = front_of(app), app.state.services.releases
        async with client_through(front) as client:
            await client.head("/api/census/")  # the release is known from here on
            request = client.build_request("GET", f"{LOCALIDADES}?page=2")
            with locked(seeded_database, "localities"):
                fetching = asyncio.create_task(client.send(request))
                await asyncio.sleep(0.1)
                assert not fetching.done()
                releases.serve(await releases.named("2020-01"))
                assert front.try_respond(scope_of(client.build_request("GET", "/nothing"))) is None
            assert (await fetching).headers["catalogue-release"] == "2021-01"
            assert front.try_respond(scope_of(request)) is None
            assert (await client.send(request)).headers["catalogue-release"] == "2020-01"


async def test_cache_is_bounded_and_keeps_what_is_asked_for(app: FastAPI) -> None:
    front = ResponseCache(app, 200_000)
    async with client_through(front) as client:
        often = client.build_request("GET", f"{LOCALIDADES}?page=2")
        await client.send(often)
        requests = [client.build_request("GET", f"{LOCALIDADES}?page=1", headers={"accept": f"*/*, text/{number}"})
                    for number in range(200)]  # fmt: skip
        for request in requests:
            await client.send(request)
            assert front.try_respond(scope_of(often))
        held = [response.body for request in requests if (response := front.try_respond(scope_of(request)))]
    assert 10 < len(held) < 60


async def test_service_without_a_page_cache_holds_no_response(app: FastAPI) -> None:
    front = build_middleware_stack(app, Settings(page_cache_bytes=0))
    async with client_through(front) as client:
        request = client.build_request("GET", LOCALIDADES)
        await client.send(request)
        assert front.try_respond(scope_of(request)) is None
