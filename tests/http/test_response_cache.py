"""The response cache: cached responses equal the routed ones byte for byte, and nothing else is cached."""

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
from pydantic import SecretStr
from starlette.middleware.gzip import GZipMiddleware

from localidades_api.api.middleware.limits import DirectResponses
from localidades_api.api.middleware.response_cache import HeldResponse, ResponseCache
from localidades_api.app import create_app
from localidades_api.http.headers import on_wire
from localidades_api.settings import Settings
from tests.support.application import await_release, cache_of, client_of, import_into, key_of, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import locked_in_thread, new_database
from tests.support.wire import LOCALIDADES

SUGGEST, TILE = f"{LOCALIDADES}suggest/", f"{LOCALIDADES}tiles/0/0/0.mvt"
PATHS = [LOCALIDADES, LOCALIDADES, SUGGEST, TILE, f"{LOCALIDADES}10010001/", f"{LOCALIDADES}nearest/", "/match"]
PARTS = [
    "page=1", "page=3", "page=003", "page=0", "page=+1", "page=", f"page={3:020d}", "format=json", "format=api",
    "lang=es", "lang=fr", "format=xml", "release=2020-01", "release=2019-01", "x=1", "", "page_size=100", "estado_id=1",
    "sort=-nombre", "search=lugar", "q=lugar", "q=%00", "q=%ff", "q=ñandú", f"q={quote('ñ' * 100)}", "%71=lugar",
    "limit=3", "lat=21.9&lon=-102.3", "utm_source=x",
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
    "/", "/api/census/", "/api/census/municipios/?estado_id=1", "/api/census/releases/", "/api/census/reconcile/",
    "/openapi.json", "/problems", "/match", "/map", "/docs", "/readyz", "/metrics", "/static/style.css", "/nothing",
    f"{LOCALIDADES}tiles.json", f"{LOCALIDADES}10010001/", f"{LOCALIDADES}999999999/", f"{LOCALIDADES}download/",
    f"{LOCALIDADES}backdrop.svg", f"{LOCALIDADES}nearest/?lat=21.9&lon=-102.3", f"{SUGGEST}?q=lugar", TILE,
    LOCALIDADES, f"{LOCALIDADES}?page=9", f"{LOCALIDADES}?search=lugar", f"{LOCALIDADES}?page_size=1000",
]  # fmt: skip


def held_for(app: FastAPI, request: httpx.Request) -> HeldResponse | None:
    return cache_of(app).get(key_of(request))


async def raw_body(client: httpx.AsyncClient, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    answer = await client.send(request, stream=True)
    return answer, b"".join([chunk async for chunk in answer.aiter_raw()])


@pytest.fixture(scope="module")
async def app(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    with new_database(server, seeded) as url:
        async with running_app(url, page_cache_bytes=1_000_000) as app, client_of(app) as client:
            app.state.url = url
            await await_release(client, "2020-01", "/api/census/estados/")  # the list must not be held yet
            yield app


@pytest.fixture(scope="module")
async def uncached(app: FastAPI) -> AsyncIterator[FastAPI]:
    """Yield an application on the same database whose routes answer every request."""
    async with running_app(app.state.url, page_cache_bytes=0) as other, client_of(other) as client:
        await await_release(client, "2020-01")
        yield other


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PATHS),
    parts=st.lists(st.sampled_from(PARTS), max_size=4),
    fields=st.lists(
        st.sampled_from([(name, value) for name, values in FIELDS.items() for value in values]), max_size=4
    ),
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"]),
)
async def test_cached_response_equals_the_routed_one(
    *, app: FastAPI, uncached: FastAPI, path: str, parts: list[str], fields: list[tuple[str, str]], method: str
) -> None:
    """Status, every header in its order, and body are identical."""
    async with client_of(uncached) as routing, client_of(app) as cached:
        etag = (await routing.get(f"{path}?{'&'.join(parts)}")).headers.get("etag", '"none"')
        conditions = {"same": etag, "weak": f"W/{etag.removeprefix('W/')}", "list": f'"x", {etag}'}
        headers = [(name, conditions.get(value, value)) for name, value in fields]
        request = routing.build_request(method, f"{path}?{'&'.join(parts)}", headers=headers)
        for name in FIELDS.keys() - {name for name, _ in fields} - {"host"}:
            request.headers.pop(name, None)  # httpx adds some
        by_routing, body = await raw_body(routing, request)
        assert held_for(uncached, request) is None
        for _ in range(2):
            answer, again = await raw_body(cached, request)
            assert (answer.status_code, again) == (by_routing.status_code, body)
            assert [field for field in answer.headers.raw if field[0] != b"x-request-id"] == by_routing.headers.raw


@pytest.mark.parametrize(("target", "accept"), list(product(RESOURCES, ["*/*", "text/html"])))
async def test_cached_bytes_are_those_that_were_sent(app: FastAPI, target: str, accept: str) -> None:
    async with client_of(app) as client:
        request = client.build_request("GET", target, headers={"accept": accept, "accept-language": "en, x-first"})
        assert held_for(app, request) is None
        answer, body = await raw_body(client, request)
        held = held_for(app, request)
        is_api = target.startswith("/api/census/") and "download" not in target
        is_shared = "private" not in answer.headers.get("cache-control", "private")
        if answer.status_code == httpx.codes.OK and "etag" in answer.headers and is_api:
            assert bool(held) is is_shared
        if held:
            assert held[:3] == (answer.status_code, on_wire(answer.headers.raw), body)
            assert "etag" in answer.headers
            condition = {"accept": accept, "if-none-match": answer.headers["etag"]}
            for _ in range(2):
                again = await client.get(target, headers=condition)
                assert (again.status_code, again.content) == (304, b"")
        else:
            assert answer.status_code != httpx.codes.OK or not is_shared or not is_api


@pytest.mark.parametrize("target", [f"{LOCALIDADES}tiles.json", "/api/census/reconcile/"])
async def test_response_with_its_host_is_not_reused_for_another_host(app: FastAPI, target: str) -> None:
    async with client_of(app) as client:
        for host in ("one.example", "two.example", "one.example"):
            assert host in (await client.get(target, headers={"host": host})).text


@pytest.mark.parametrize(
    ("method", "target", "fields"),
    [
        ("HEAD", LOCALIDADES, {}),
        ("POST", LOCALIDADES, {}),
        ("GET", "/static/style.css", {}),
        # The server looks in the cache before it looks for the end of the request.
        ("GET", LOCALIDADES, {"content-length": "0"}),
        ("GET", LOCALIDADES, {"transfer-encoding": "chunked"}),
        ("GET", LOCALIDADES, {"expect": "100-continue"}),
    ],
)
async def test_other_requests_and_those_with_a_body_are_not_cached(
    app: FastAPI, method: str, target: str, fields: dict[str, str]
) -> None:
    async with client_of(app) as client:
        request = client.build_request(method, target, headers=fields)
        await client.send(request)
        assert held_for(app, request) is None


async def test_page_is_held_without_its_tracking_parameters(app: FastAPI) -> None:
    """Otherwise the visits from a newsletter would push everything else out."""
    fields = {"accept": "text/html", "accept-language": "x-tracked"}
    async with client_of(app) as client:
        tracked, plain = [
            client.build_request("GET", f"{LOCALIDADES}?page=2{more}", headers=fields) for more in ("&fbclid=a", "")
        ]
        page = await client.send(tracked)
        held = held_for(app, plain)
        assert held
        assert held.body == page.content
        assert held_for(app, tracked) is None


async def test_response_started_before_a_publication_is_not_cached(seeded_database: str, tmp_path: Path) -> None:
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    async with running_app(seeded_database, in_background=False, page_cache_bytes=1_000_000) as app:
        releases = app.state.services.releases
        async with client_of(app) as client:
            await client.head("/api/census/")  # the release is known now
            request = client.build_request("GET", f"{LOCALIDADES}?page=2")
            async with locked_in_thread(seeded_database, "localities"):
                fetching = asyncio.create_task(client.send(request))
                await asyncio.sleep(0.1)
                assert not fetching.done()
                releases.serve(await releases.named("2020-01"))
                assert held_for(app, client.build_request("GET", "/nothing")) is None
            assert (await fetching).headers["catalogue-release"] == "2021-01"
            assert held_for(app, request) is None
            assert (await client.send(request)).headers["catalogue-release"] == "2020-01"


async def test_cache_is_bounded_and_keeps_the_recently_used(seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=1_000_000) as app, client_of(app) as client:
        app.state.response_cache = ResponseCache(app.state.services.releases, 200_000)
        often = client.build_request("GET", f"{LOCALIDADES}?page=2")
        await client.send(often)
        requests = [client.build_request("GET", f"{LOCALIDADES}?page=1", headers={"accept": f"*/*, text/{number}"})
                    for number in range(200)]  # fmt: skip
        for request in requests:
            await client.send(request)
            assert held_for(app, often)
        held = [response.body for request in requests if (response := held_for(app, request))]
    assert 10 < len(held) < 60


@pytest.mark.parametrize("sees_every_request", [None, "log", "middleware", "override", "instrumentation", "parent"])
async def test_server_answers_by_itself_unless_something_sees_every_request(
    seeded: str, sees_every_request: str | None
) -> None:
    options = Settings(database_url=SecretStr(seeded), access_log=sees_every_request == "log")
    app = create_app(options, in_background=False)
    if sees_every_request != "parent":
        app.state.is_served = True
    if sees_every_request == "middleware":
        app.add_middleware(GZipMiddleware)
    if sees_every_request == "override":
        app.dependency_overrides[create_app] = lambda: None
    if sees_every_request == "instrumentation":
        app.build_middleware_stack = app.build_middleware_stack  # type: ignore[method-assign]  # as FastAPIInstrumentor
    async with app.router.lifespan_context(app) as state:
        assert isinstance(state, dict)
        assert isinstance(state["direct_responses"], DirectResponses | None)
        assert (state["direct_responses"] is None) == (sees_every_request is not None)
