"""Suggestions answered before routing: what routing answers, byte for byte."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware import Middleware, build_middleware_stack, suggestions
from localidades_api.settings import Settings
from tests.support.application import await_release, await_searched, client_of, import_into, running_app
from tests.support.asgi import scope_of
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

SUGGEST = f"{LOCALIDADES}suggest/"
PARTS = [
    "q=lugar", "q=Lugar+12", "q=%C3%91and%C3%BA", "q=10010001", "q=", "q", "q=asientos%2C%20aguascalientes", "q=%00",
    "q=%ff", "q=ñandú", "q=%ed%a0%80", f"q={'x' * 101}", f"q={quote('ñ' * 100)}", "q=%EF%B7%BA" * 2, "Q=a", "%71=lugar",
    "limit=3", "limit=03", "limit=21", "limit=", "limit=%2B1", "limit=x", "kind=municipio", "kind=estado,municipio",
    "kind=", "kind=lugar", "estado_id=2", "estado_id=02", "estado_id=", "estado_id=33", "municipio_id=2001",
    "municipio_id=x", "format=json", "format=api", "format=xml", "lang=es", "lang=xx", "release=2020-01",
    "release=2019-01", "release=", "x=1", "", "page=1",
]  # fmt: skip
ACCEPTS = ["*/*", "application/json", "text/html", "text/html;q=0.5, */*;q=0.4", "garbage", "", "application/xml"]


@pytest.fixture(scope="module")
async def app(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    with new_database(server, seeded) as url:
        async with running_app(url) as app, client_of(app) as client:
            await await_release(client, "2020-01")
            yield app


def before_routing(app: FastAPI) -> Middleware:
    return build_middleware_stack(app, Settings())


def as_sent(response: RawResponse) -> tuple[int, bytes, bytes]:
    return response.status, b"".join(response.headers), response.body


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    has_text=st.booleans(),
    accept=st.none() | st.lists(st.sampled_from(ACCEPTS), min_size=1, max_size=2),
    if_none_match=st.none() | st.sampled_from(["same", "weak", "other", "any", "list"]),
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"]),
)
async def test_any_request_is_answered_as_routing_does(
    *,
    app: FastAPI,
    parts: list[str],
    has_text: bool,
    accept: list[str] | None,
    if_none_match: str | None,
    method: str,
) -> None:
    async with client_of(app) as client:
        etag = (await client.get(f"{SUGGEST}?q=a")).headers["etag"]
        conditions = {"same": etag, "weak": f"W/{etag}", "other": '"x"', "any": "*", "list": f'"x", {etag}'}
        headers = [("accept", value) for value in accept or ()]
        headers += [("if-none-match", conditions[if_none_match])] if if_none_match else []
        parts = ["q=lugar", *parts] if has_text else parts
        request = client.build_request(method, f"{SUGGEST}?{'&'.join(parts)}", headers=headers)
        if accept is None:
            del request.headers["accept"]  # httpx adds one of its own
        by_routing = await client.send(request)
    middleware = before_routing(app)
    for _ in range(2):
        if response := middleware.try_respond(scope_of(request)):
            lines = b"".join(b"%b: %b\r\n" % header for header in by_routing.headers.raw)
            assert as_sent(response) == (by_routing.status_code, lines, by_routing.content)


@pytest.mark.parametrize(
    "query",
    ["q=lugar", "q=", "q=%C3%91and%C3%BA+doble", "q=a&limit=3&kind=estado,municipio",
     "q=a&estado_id=02&release=2020-01", "format=json&q=asientos%2C%20aguascalientes"],
)  # fmt: skip
async def test_plain_request_needs_no_routing(app: FastAPI, query: str) -> None:
    async with client_of(app) as client:
        request = client.build_request("GET", f"{SUGGEST}?{query}")
        response = before_routing(app).try_respond(scope_of(request))
        assert response is not None
        assert response.body == (await client.send(request)).content


async def test_publication_is_seen_at_once_and_by_nothing_cached(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        middleware = before_routing(app)
        request = client.build_request("GET", f"{SUGGEST}?q=nuevo")
        before = middleware.try_respond(scope_of(request))
        assert before is not None
        assert b"Nuevo" not in before.body
        places = [*many(132), Place("010019997", "Nuevo")]
        await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        await await_searched(client, "2021-01")
        after = middleware.try_respond(scope_of(request))
        assert after is not None
        assert (b"Nuevo" in after.body, b"2021-01" in b"".join(after.headers)) == (True, True)


async def test_cache_keeps_to_its_room(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "MAX_CACHE", 20_000)
    middleware = before_routing(app)
    async with client_of(app) as client:
        for number in range(60):
            assert middleware.try_respond(scope_of(client.build_request("GET", f"{SUGGEST}?q=lugar+{number}")))
            await asyncio.sleep(0)
        # No more than sixteen are found at once: what is answered beyond them is cached.
        requests = [client.build_request("GET", f"{SUGGEST}?q=lugar+{number}") for number in reversed(range(-16, 60))]
        answered = [middleware.try_respond(scope_of(request)) for request in requests]
        cached = [response.body for response in answered if response][:-16]
        assert 0 < sum(map(len, cached)) <= 20_000


async def test_crowd_is_left_to_the_limit_of_concurrent_requests(app: FastAPI) -> None:
    middleware = before_routing(app)
    async with client_of(app) as client:
        requests = [client.build_request("GET", f"{SUGGEST}?q=lugar+{number}") for number in range(40)]
        answered = [middleware.try_respond(scope_of(request)) is not None for request in requests]
        assert answered == [True] * 16 + [False] * 24
        assert middleware.try_respond(scope_of(requests[0])) is not None  # cached
        await asyncio.sleep(0)
        assert middleware.try_respond(scope_of(requests[-1])) is not None
