"""The extension points of FastAPI, on the application that `create_app` returns."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated

import httpx
import pytest
import schemathesis
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel, Field, SecretStr, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api.services import ReleasesDep, RepositoryDep, get_repository
from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.application import Below, below_a_prefix, cache_of, client_of, key_of, mounted, running_app
from tests.support.pages import Page
from tests.support.postgres import new_database
from tests.support.service_address import service_address
from tests.support.wire import LOCALIDADES

RECORD = f"{LOCALIDADES}10010001/"


async def require_key(x_api_key: Annotated[str | None, Header()] = None) -> None:
    if x_api_key != "secret":
        raise HTTPException(401, "Send your key as X-API-Key.", headers={"WWW-Authenticate": "ApiKey"})


class Visit(BaseModel):  # noqa: D101  # as users write
    place: str
    guests: int | None = None


@pytest.fixture(scope="module")
def url(server: str, seeded: str) -> Iterator[str]:
    with new_database(server, seeded) as address:
        yield address


def settings_of(url: str) -> Settings:
    return Settings(database_url=SecretStr(service_address(url)), page_cache_bytes=1_000_000)


@pytest.fixture(scope="module")
async def app(url: str) -> AsyncIterator[FastAPI]:
    """Yield an application with a response cache, to which each test adds routes of its own."""
    async with running_app(url, page_cache_bytes=1_000_000, in_background=False) as app:
        yield app


@pytest.fixture
async def own(url: str) -> AsyncIterator[FastAPI]:
    """Yield this test's own application, for what must be added before the first request."""
    async with running_app(url, in_background=False) as app:
        yield app


class Append:
    """Middleware that changes headers in place."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add two headers."""

        async def append(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"x-appended", b"1"))
                MutableHeaders(scope=message).append("X-Stamp", "mine")
            await send(message)

        await self.app(scope, receive, append)


async def test_added_cors_middleware_sends_the_only_headers(own: FastAPI) -> None:
    @own.get("/fails")
    async def fail() -> None:
        raise KeyError("x")

    own.add_middleware(CORSMiddleware, allow_origins=["https://mine.example"], allow_credentials=True)
    async with client_of(own) as client:
        for target, status in ((RECORD, 200), ("/nothing", 404), ("/fails", 500)):
            other = await client.get(target, headers={"Origin": "https://other.example"})
            assert (other.status_code, other.headers.get("access-control-allow-origin")) == (status, None)
        mine = await client.get(RECORD, headers={"Origin": "https://mine.example"})
    assert mine.headers["access-control-allow-origin"] == "https://mine.example"
    assert mine.headers["cache-control"].startswith("public")
    assert "any origin" not in own.openapi()["info"]["description"]


@pytest.mark.parametrize("is_public", [None, False, True])
async def test_answers_behind_added_middleware_are_private_unless_told_otherwise(
    url: str, *, is_public: bool | None
) -> None:
    """Each passes it once, a cached one too. The service can't see that of an application that it is mounted in."""
    app = create_app(settings_of(url), is_public=is_public, in_background=False)
    async with app.router.lifespan_context(app), mounted(app, "/geo") as below:
        assert ("private" in (await below.get(f"/geo{RECORD}")).headers["cache-control"]) == (is_public is False)
    app = create_app(settings_of(url), is_public=is_public, in_background=False)
    app.add_middleware(Append)
    asked = [("GET", RECORD)] * 3 + [("HEAD", LOCALIDADES), ("GET", "/static/style.css")]
    async with app.router.lifespan_context(app), client_of(app) as client:
        for method, target in asked:
            headers = (await client.request(method, target)).headers
            assert (headers.get_list("x-appended"), headers.get_list("x-stamp")) == (["1"], ["mine"])
            control = headers["cache-control"]
            assert ("private" in control, "public" in control) == (not is_public, bool(is_public)), target
        assert cache_of(app).get(key_of(client.build_request("GET", RECORD)))


async def test_added_handler_of_unknown_paths_keeps_redirects_and_methods(own: FastAPI) -> None:
    async def answer(_request: Request, _error: Exception) -> Response:
        return JSONResponse({"mine": True}, 404)

    for kind in (404, HTTPException):
        own.add_exception_handler(kind, answer)
    async with client_of(own) as client:
        assert (await client.get("/nothing")).json() == {"mine": True}
        assert (await client.get(LOCALIDADES[:-1])).headers["location"] == "localidades/"
        assert (await client.options(LOCALIDADES)).status_code == 204
        assert (await client.delete("/api/census/nothing/")).status_code == 405
        assert (await client.delete(LOCALIDADES)).status_code == 405


async def test_errors_of_added_routes_are_answered(app: FastAPI) -> None:
    @app.get("/teapot")
    async def refuse() -> None:
        raise HTTPException(418, "Short and stout.", headers={"X-Pot": "tea"})

    @app.get("/gone-away")
    async def leave() -> None:
        raise HTTPException(499, "Nobody waits.")  # a status that no RFC has

    @app.get("/api/census/fails/")
    async def fail() -> None:
        raise RuntimeError("x")

    async with client_of(app) as client:
        teapot = await client.get("/teapot")
        assert (teapot.headers["content-type"], teapot.headers["x-pot"]) == ("application/problem+json", "tea")
        expected = {"type": "about:blank", "title": "I'm a Teapot", "status": 418, "detail": "Short and stout."}
        assert (teapot.status_code, teapot.json()) == (418, expected)
        left = await client.get("/gone-away")
        assert (left.status_code, left.json()["title"], left.json()["detail"]) == (499, "Error", "Nobody waits.")
        failed = await client.get("/api/census/fails/")
        assert (failed.status_code, failed.json()["type"]) == (500, "/problems#internal-error")
        assert (failed.headers["allow"], failed.headers["vary"]) == ("GET", "Accept")
        assert failed.headers["x-request-id"]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        with pytest.raises(RuntimeError):  # it reaches the server too
            await client.get("/api/census/fails/")


class _Chosen(BaseModel):
    month: Annotated[int, Field(le=12)]


class _Asked(_Chosen):
    after: int = 0


class _Shown(_Chosen):
    pass


async def test_invalid_model_within_a_route_is_the_fault_of_its_kind(app: FastAPI) -> None:
    """One of the parameters is the client's fault, one of an answer is a bug."""

    @app.get("/chosen")
    async def choose(query: Annotated[_Asked, Query()]) -> int:
        return _Chosen(month=query.month + query.after).month

    @app.get("/shown")
    async def show(query: Annotated[_Asked, Query()]) -> _Shown:
        return _Shown(month=query.month + query.after)

    async with client_of(app) as client:
        assert (await client.get("/chosen?month=11&after=1")).json() == 12
        refused = await client.get("/chosen?month=11&after=2")
        assert (refused.status_code, refused.json()["type"]) == (422, "/problems#invalid-parameters")
        assert [fault["parameter"] for fault in refused.json()["errors"]] == ["month"]
        failed = await client.get("/shown?month=11&after=2")
        assert (failed.status_code, failed.json()["type"]) == (500, "/problems#internal-error")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        with pytest.raises(ValidationError):  # it reaches the server too
            await client.get("/shown?month=11&after=2")


async def test_added_route_and_router_answer_beside_and_below_the_prefix(own: FastAPI) -> None:
    @own.get("/name/{id}")
    async def get_name(id: int, releases: ReleasesDep, repository: RepositoryDep) -> str:  # noqa: A002  # as users write
        row = await repository.get_locality(await releases.current(), id)
        return str(row and row.nombre)

    router = APIRouter(prefix="/api/census/visits")

    @router.post("/", status_code=201)
    async def create(visit: dict[str, str]) -> dict[str, str]:
        return visit

    @router.get("/{id}/")
    async def get(id: int) -> dict[str, int]:  # noqa: A002  # as users write
        return {"id": id}

    own.include_router(router)
    async with client_of(own) as client:
        assert (await client.get("/name/10010001")).json() == "Aguascalientes"
        created = await client.post("/api/census/visits/", json={"place": "010010001"})
        assert (created.status_code, created.json()) == (201, {"place": "010010001"})
        assert created.headers["allow"] == "POST, OPTIONS"
        shown = await client.get("/api/census/visits/7/")
        assert (shown.json(), shown.headers["allow"]) == ({"id": 7}, "GET")
        assert shown.headers["access-control-allow-origin"] == "*"
        assert (await client.put("/api/census/visits/")).status_code == 405
        preflight = await client.options("/api/census/visits/")
        assert preflight.headers["access-control-allow-methods"] == "POST"
        assert (await client.get("/api/census/visits/7")).headers["location"] == "7/"
        own.post("/api/census/late/", dependencies=[Depends(require_key)])(create)
        refused = await client.post("/api/census/late/", json={})
        assert (refused.status_code, refused.headers["allow"]) == (401, "POST, OPTIONS")
        assert "private" in refused.headers["cache-control"]


# -- Conditional requests, for which an added route does nothing


async def test_added_route_with_an_entity_tag_is_answered_with_304(app: FastAPI) -> None:
    kept = {"Cache-Control": "max-age=9", "Vary": "X-Mine", "X-Mine": "1"}
    left = {
        "Content-Type": "text/csv; charset=utf-8", "Content-Encoding": "x-mine", "Content-Range": "bytes 0-3/9",
        "Content-Disposition": "inline", "Content-Security-Policy": "sandbox", "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }  # fmt: skip

    @app.api_route("/api/census/mine/", methods=["GET", "POST"], include_in_schema=False)
    async def answer(status: int, tag: str) -> Response:
        return Response(b"body", status, headers=({"ETag": tag} | kept if tag else {}) | left)

    async with client_of(app) as client:
        for method, status, tag, listed, expected in (
            ("GET", 200, '"a"', 'W/"b", W/"a"', 304), ("GET", 200, 'W/"a"', '"a"', 304), ("GET", 200, '"a"', "*", 304),
            ("HEAD", 200, '"a"', '"a"', 304), ("HEAD", 200, '"a"', '"b"', 200), ("POST", 200, '"a"', '"a"', 200),
            ("GET", 200, '"a"', '"b"', 200), ("GET", 200, "", "*", 200),
            ("GET", 206, '"a"', '"a"', 304),  # the condition comes before the range (RFC 9110 §13.2.2)
            ("GET", 206, '"a"', '"b"', 206), ("GET", 307, '"a"', '"a"', 307), ("GET", 422, '"a"', "*", 422),
        ):  # fmt: skip
            request = partial(client.request, method, "/api/census/mine/", params={"status": status, "tag": tag})
            plain, answered = await request(), await request(headers={"If-None-Match": listed})
            assert (plain.status_code, answered.status_code) == (status, expected), (method, status, tag, listed)
            if expected == 304:
                assert answered.content == b""
                assert plain.headers.keys() - answered.headers.keys() == {*map(str.lower, left), "content-length"}
                assert answered.headers.items() <= plain.headers.items()
            else:
                assert (answered.headers, answered.content) == (plain.headers, plain.content)


async def test_added_stream_ends_once_it_is_answered_with_304(app: FastAPI) -> None:
    ended = []

    async def write() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await asyncio.sleep(0)
        finally:
            ended.append(True)

    @app.get("/endless")
    async def stream() -> StreamingResponse:
        return StreamingResponse(write(), headers={"ETag": '"a"'})

    async with client_of(app) as client:
        answer = await client.get("/endless", headers={"If-None-Match": '"a"'})
    assert (answer.status_code, answer.content, ended) == (304, b"", [True])


# -- Mounted below a path of another application

# Each has addresses of other resources; tests/pages/test_browsable.py has the pages of the catalogue.
DOCUMENTS = [
    "/docs", "/redoc", "/help", "/api/census/", "/map?format=json", "/match?format=json", "/problems?format=json",
    "/nothing", f"{LOCALIDADES}?page=2", f"{LOCALIDADES}tiles.json", f"{LOCALIDADES}datapackage.json",
    "/api/census/reconcile/", "/robots.txt", "/sitemap.xml", "/llms.txt",
    "/.well-known/api-catalog", "/ogc/", "/ogc/api", "/ogc/collections", "/ogc/collections/localidades/items?limit=2",
]  # fmt: skip
_PATHS = "api|docs|help|llms|map|match|ogc|openapi|problems|redoc|sitemap|static|wscatgeo"
_ADDRESS = re.compile(rf"""(?:(?<=["'(<\s])|http://test)(/(?:geo/)*(?:{_PATHS})\b[^"'()<>\s{{}}]*)""")


@below_a_prefix
async def test_addresses_below_a_prefix_include_it(app: FastAPI, below: Below) -> None:
    async with below(app, "/geo") as client:
        for target in DOCUMENTS:
            answer = await client.get(f"/geo{target}")
            text = answer.text
            if answer.headers["content-type"].startswith("text/html"):  # its text has paths as the documentation does
                values = (value for element in Page.of(answer).elements for value in element.attributes.values())
                text = " ".join(f'"{value}"' for value in values)
            found = set(_ADDRESS.findall(f"{text} {answer.headers.get('link', '')}"))
            assert {address for address in found if not re.match("/geo/(?!geo/)", address)} == set(), target


async def test_mounted_service_answers_as_at_the_root(app: FastAPI) -> None:
    async with client_of(app) as alone, mounted(app, "/geo") as below:
        for method, target, status, location in (
            ("GET", RECORD[:-1], 308, "10010001/"), ("GET", "/docs/", 308, "../docs"), ("GET", "/", 307, "api/census/"),
            ("GET", f"{RECORD}?page=1", 422, None), ("GET", "/nothing", 404, None), ("POST", RECORD, 405, None),
            ("HEAD", RECORD, 200, None), ("OPTIONS", RECORD, 204, None), ("GET", "/static/style.css", 200, None),
            ("GET", "/livez", 204, None),
        ):  # fmt: skip
            at_root, answer = await alone.request(method, target), await below.request(method, f"/geo{target}")
            assert (answer.status_code, answer.headers.get("location")) == (status, location), target
            assert answer.text.replace("/geo/", "/") == at_root.text
            assert answer.headers.keys() - {"last-modified"} == at_root.headers.keys() - {"last-modified"}


async def test_service_that_was_not_started_says_so(url: str) -> None:
    app = create_app(settings_of(url), in_background=False)
    async with mounted(app, "/geo") as client:
        for target in (RECORD, "/readyz", f"{LOCALIDADES}?format=api", "/sitemap.xml"):
            answer = await client.get(f"/geo{target}")
            assert (answer.status_code, "lifespan_context" in answer.text) == (500, True)
            assert answer.headers["x-content-type-options"] == "nosniff"


# -- Dependencies


async def test_dependency_of_the_application_runs_for_every_request(url: str) -> None:
    """Nothing behind it is cached, for another client or in the service."""
    app = create_app(settings_of(url), dependencies=[Depends(require_key)], in_background=False)
    key = {"X-API-Key": "secret"}
    document = app.openapi()
    assert "needs no key" not in document["info"]["description"]
    assert "401" in document["paths"][LOCALIDADES]["get"]["responses"]

    @app.get("/mine")
    async def answer(control: str = "") -> Response:
        headers = {"ETag": '"1"', "Catalogue-Release": "2020-01"}
        return Response("mine", headers=headers | ({"Cache-Control": control} if control else {}))

    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.get(RECORD, headers=key)).headers["cache-control"].startswith("private, ")
        assert "API key" not in (await client.get("/llms.txt", headers=key)).text
        refused = await client.get(RECORD)
        assert (refused.status_code, refused.json()["detail"]) == (401, "Send your key as X-API-Key.")
        assert (refused.headers["allow"], refused.headers["vary"]) == ("GET", "Accept")
        for control, expected in (
            ("", "private"), ("max-age=60", "max-age=60, private"), ("public, max-age=60", "private, max-age=60"),
            ("no-store", "no-store, private"), ("private", "private"),
        ):  # fmt: skip
            answered = await client.get("/mine", params={"control": control}, headers=key)
            assert (answered.status_code, answered.headers["cache-control"]) == (200, expected)
            assert (await client.get("/mine", params={"control": control})).status_code == 401


async def test_one_dependency_of_a_route_can_be_overridden(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response cached before the override doesn't hide it."""
    async with client_of(app) as client:
        for _ in range(2):  # the release is known now
            assert (await client.get(RECORD)).status_code == 200
        assert cache_of(app).get(key_of(client.build_request("GET", RECORD)))
        monkeypatch.setitem(app.dependency_overrides, get_repository, require_key)
        assert (await client.get(RECORD)).status_code == 401
        assert (await client.get(f"{LOCALIDADES}tiles.json")).status_code == 200  # it needs no repository
        monkeypatch.undo()
        assert (await client.get(RECORD)).status_code == 200


async def test_response_of_an_added_route_is_cached_only_if_it_names_its_release(app: FastAPI) -> None:
    numbers = iter(range(99))
    held = {"ETag": '"1"', "Catalogue-Release": "2020-01"}
    choices = [
        {"ETag": '"1"', "Cache-Control": "public"}, {"Catalogue-Release": "2020-01"},
        held | {"Cache-Control": "no-store"}, held | {"Cache-Control": "private"}, held,
    ]  # fmt: skip

    @app.get("/now/{choice}")
    async def now(choice: int) -> Response:
        return Response(str(next(numbers)), headers=choices[choice])

    async with client_of(app) as client:
        await client.get(RECORD)  # the release is known now
        answered = [len({(await client.get(f"/now/{choice}")).text for _ in range(3)}) for choice in range(5)]
    assert answered == [3, 3, 3, 3, 1]


def test_fastapi_test_client_runs_the_whole_service(url: str) -> None:
    app = create_app(settings_of(url), in_background=False)
    with TestClient(app) as client:
        answer = client.get(app.url_path_for("get_locality", id=10010001))
    assert (answer.json()["cvegeo"], answer.headers["allow"]) == ("010010001", "GET")
    assert app.url_path_for("list_localities") == LOCALIDADES
    assert app.url_path_for("static", path="style.css") == "/static/style.css"


async def test_added_routes_are_in_the_document(own: FastAPI) -> None:
    @own.get("/plain")
    async def plain(number: int) -> dict[str, int]:
        return {"number": number}

    mine = APIRouter(prefix="/api/census/visits", tags=["Mine"], responses={409: {"description": "Somebody is there."}})

    @mine.post("/", responses={410: {"model": Visit}})
    async def create_visit(visit: Visit) -> Visit:
        return visit

    own.include_router(mine)
    async with client_of(own) as client:
        document = (await client.get("/openapi.json")).json()
    schemathesis.openapi.from_dict(document).validate()
    undescribed, created = document["paths"]["/plain"]["get"], document["paths"]["/api/census/visits/"]["post"]
    assert "example" not in undescribed["parameters"][0]
    assert created["responses"]["409"]["description"] == "Somebody is there."
    assert list(created["responses"]["410"]["content"]) == ["application/json"]
    assert {one["headers"]["Allow"]["example"] for one in created["responses"].values()} == {"POST, OPTIONS"}
