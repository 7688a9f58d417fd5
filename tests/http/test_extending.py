"""The extension points of FastAPI, on the application that `create_app` returns."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated

import httpx
import pytest
import schemathesis
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel, SecretStr
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.api import census
from localidades_api.api.services import get_services
from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.application import cache_of, client_of, key_of, mounted, running_app
from tests.support.pages import Page
from tests.support.postgres import new_database
from tests.support.service_address import service_address
from tests.support.wire import LOCALIDADES

RECORD = f"{LOCALIDADES}10010001/"


class Stamp:
    """Middleware as Starlette's documentation writes it: adds a header to each response."""

    def __init__(self, app: ASGIApp, value: str) -> None:
        self.app = app
        self.value = value

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""

        async def send_stamped(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-stamp", self.value.encode())]}
            await send(message)

        await self.app(scope, receive, send_stamped)


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


@pytest.fixture
async def app(url: str) -> AsyncIterator[FastAPI]:
    """Yield this test's own application, with a response cache."""
    async with running_app(url, page_cache_bytes=1_000_000, in_background=False) as app:
        yield app


async def test_added_middleware_runs_for_cached_responses(app: FastAPI) -> None:
    calls = []

    @app.middleware("http")
    async def count(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        calls.append(request.url.path)
        return await call_next(request)

    app.add_middleware(Stamp, value="mine")
    async with client_of(app) as client:
        for target in (RECORD, RECORD, "/nothing"):
            answer = await client.get(target)
            assert answer.headers["x-stamp"] == "mine"
        assert cache_of(app).get(key_of(client.build_request("GET", RECORD)))
    assert calls == [RECORD, RECORD, "/nothing"]


async def test_header_changed_in_place_by_middleware_is_not_cached(app: FastAPI) -> None:
    class Append:
        def __init__(self, app: ASGIApp) -> None:
            self.app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async def append(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"].append((b"x-appended", b"1"))
                    MutableHeaders(scope=message).append("X-Replaced", "1")
                await send(message)

            await self.app(scope, receive, append)

    app.add_middleware(Append)
    async with client_of(app) as client:
        for _ in range(3):
            headers = (await client.get(RECORD)).headers
            assert (headers.get_list("x-appended"), headers.get_list("x-replaced")) == (["1"], ["1"])


async def test_added_exception_handler_answers_errors_of_routes(app: FastAPI) -> None:
    @app.get("/fails")
    async def fail() -> None:
        raise KeyError("x")

    @app.exception_handler(KeyError)
    async def answer(_request: Request, error: KeyError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 418)

    async with client_of(app) as client:
        answered = await client.get("/fails")
    assert (answered.status_code, answered.json()) == (418, {"error": "'x'"})


async def test_unexpected_error_of_an_added_route_is_a_problem_and_reaches_the_server(app: FastAPI) -> None:
    @app.get("/api/census/fails/")
    async def fail() -> None:
        raise KeyError("x")

    async with client_of(app) as client:
        answer = await client.get("/api/census/fails/")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems#internal-error")
    assert (answer.headers["allow"], answer.headers["vary"]) == ("GET", "Accept")
    assert answer.headers["x-request-id"]
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        with pytest.raises(KeyError):
            await client.get("/api/census/fails/")


async def test_http_exception_of_an_added_route_keeps_its_status_detail_and_headers(app: FastAPI) -> None:
    @app.get("/teapot")
    async def refuse() -> None:
        raise HTTPException(418, "Short and stout.", headers={"X-Pot": "tea"})

    @app.get("/gone-away")
    async def leave() -> None:
        raise HTTPException(499, "Nobody waits.")  # a status that no RFC has

    async with client_of(app) as client:
        answer = await client.get("/teapot")
        left = await client.get("/gone-away")
    assert (left.status_code, left.json()["title"], left.json()["detail"]) == (499, "Error", "Nobody waits.")
    assert (answer.status_code, answer.headers["x-pot"]) == (418, "tea")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "I'm a Teapot",
        "status": 418,
        "detail": "Short and stout.",
    }


async def test_added_route_and_router_answer_beside_and_below_the_prefix(app: FastAPI) -> None:
    @app.get("/plain")
    async def plain(number: int) -> dict[str, int]:
        return {"number": number}

    router = APIRouter(prefix="/api/census/visits")

    @router.post("/", status_code=201)
    async def create(visit: dict[str, str]) -> dict[str, str]:
        return visit

    @router.get("/{id}/")
    async def get(id: int, deep: Annotated[bool, Query()] = False) -> dict[str, int]:  # noqa: A002, FBT002  # as users write
        return {"id": id, "deep": deep}

    app.include_router(router)
    async with client_of(app) as client:
        assert (await client.get("/plain?number=7")).json() == {"number": 7}
        assert (await client.get("/plain?number=x")).status_code == 422
        created = await client.post("/api/census/visits/", json={"place": "010010001"})
        assert (created.status_code, created.json()) == (201, {"place": "010010001"})
        assert created.headers["allow"] == "POST, OPTIONS"
        shown = await client.get("/api/census/visits/7/?deep=true")
        assert (shown.json(), shown.headers["allow"]) == ({"id": 7, "deep": True}, "GET")
        assert shown.headers["access-control-allow-origin"] == "*"
        assert (await client.put("/api/census/visits/")).status_code == 405
        preflight = await client.options("/api/census/visits/")
        assert preflight.headers["access-control-allow-methods"] == "POST"
        assert (await client.get("/api/census/visits/7")).headers["location"] == "7/"


# -- Mounted below a path of another application

# Each has addresses: of pages and of what they load, or of other resources.
DOCUMENTS = [
    *(target.partition("?")[0] + "?format=api" for target in (RECORD, "/api/census/", "/map", "/match", "/problems")),
    "/docs", "/redoc", "/help", "/help/openrefine", "/wscatgeo/?format=api", "/ogc/?format=api", "/nothing?format=api",
    "/api/census/", "/map?format=json", "/match?format=json", "/problems?format=json", "/nothing",
    f"{LOCALIDADES}tiles.json", f"{LOCALIDADES}datapackage.json", "/api/census/reconcile/",
    "/api/census/releases/feed.atom", "/robots.txt", "/sitemap.xml", "/llms.txt", "/.well-known/api-catalog",
    "/ogc/", "/ogc/api", "/ogc/collections", "/ogc/collections/localidades/items?limit=2", f"{LOCALIDADES}?page=2",
]  # fmt: skip
_PATHS = "api|card|docs|help|llms|map|match|ogc|openapi|problems|redoc|sitemap|static|wscatgeo"
_ADDRESS = re.compile(rf"""(?:(?<=["'(<\s])|http://test)(/(?:geo/)*(?:{_PATHS})\b[^"'()<>\s{{}}]*)""")


async def test_addresses_of_a_mounted_service_are_below_its_path(app: FastAPI) -> None:
    async with mounted(app, "/geo") as client:
        for target in DOCUMENTS:
            answer = await client.get(f"/geo{target}")
            text = answer.text
            if answer.headers["content-type"].startswith("text/html"):  # its text has paths as the documentation does
                values = (value for element in Page.of(answer).elements for value in element.attributes.values())
                text = " ".join(f'"{value}"' for value in values)
            found = set(_ADDRESS.findall(f"{text} {answer.headers.get('link', '')}"))
            assert {address for address in found if not re.match("/geo/(?!geo/)", address)} == set(), target


async def test_mounted_service_answers_as_at_the_root(app: FastAPI) -> None:
    for method, target, status, location in (
        ("GET", RECORD[:-1], 308, "10010001/"),
        ("GET", f"{RECORD}?page=1", 422, None),
        ("GET", "/docs/", 308, "../docs"),
        ("GET", "/", 307, "api/census/"),
        ("HEAD", RECORD, 200, None),
        ("OPTIONS", RECORD, 204, None),
        ("POST", RECORD, 405, None),
        ("GET", "/nothing", 404, None),
        ("GET", "/static/style.css", 200, None),
        ("GET", "/livez", 204, None),
    ):
        answers = []
        for client, path in ((client_of(app), target), (mounted(app, "/geo"), f"/geo{target}")):
            async with client:
                answer = await client.request(method, path)
            headers = {name: value for name, value in answer.headers.items() if name != "last-modified"}
            answers.append((answer.status_code, headers, answer.text.replace("/geo/", "/")))
            assert (answer.status_code, answer.headers.get("location")) == (status, location), target
        assert [answers[0][0], answers[0][2]] == [answers[1][0], answers[1][2]]
        assert answers[0][1].keys() == answers[1][1].keys()


async def test_mounted_service_that_was_not_started_says_so(url: str) -> None:
    app = create_app(settings_of(url), in_background=False)
    async with mounted(app, "/geo") as client:
        for target in (RECORD, "/readyz", f"{LOCALIDADES}?format=api"):
            answer = await client.get(f"/geo{target}")
            assert (answer.status_code, "lifespan_context" in answer.text) == (500, True)


# -- Dependencies


async def test_dependency_of_the_application_runs_for_every_request(url: str) -> None:
    """Also for a request that a client with a key has sent before: nothing behind a dependency is cached."""
    app = create_app(settings_of(url), dependencies=[Depends(require_key)], in_background=False)
    async with app.router.lifespan_context(app), client_of(app) as client:
        for _ in range(2):
            answer = await client.get(RECORD, headers={"X-API-Key": "secret"})
            assert (answer.status_code, answer.json()["clave"]) == (200, "0001")
            assert answer.headers["cache-control"].startswith("private, ")
            refused = await client.get(RECORD)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "ApiKey")
            assert refused.json()["detail"] == "Send your key as X-API-Key."
            assert (refused.headers["allow"], refused.headers["vary"]) == ("GET", "Accept")


async def test_response_behind_a_dependency_is_not_cached(url: str) -> None:
    app = create_app(settings_of(url), dependencies=[Depends(require_key)], in_background=False)

    @app.get("/mine")
    async def answer(control: str = "") -> Response:
        headers = {"ETag": '"1"', "Catalogue-Release": "2020-01"}
        return Response("mine", headers=headers | ({"Cache-Control": control} if control else {}))

    async with app.router.lifespan_context(app), client_of(app) as client:
        for control, expected in (
            ("", "private"),
            ("max-age=60", "max-age=60, private"),
            ("public, max-age=60", "private, max-age=60"),
            ("no-store", "no-store, private"),
            ("private", "private"),
        ):
            asked = {"control": control}
            answered = await client.get("/mine", params=asked, headers={"X-API-Key": "secret"})
            assert (answered.status_code, answered.headers["cache-control"]) == (200, expected)
            assert (await client.get("/mine", params=asked)).status_code == 401


async def test_dependency_of_a_router_runs_for_its_routes_alone(app: FastAPI) -> None:
    members = APIRouter(prefix="/members", dependencies=[Depends(require_key)])

    @members.get("/")
    async def list_members() -> list[str]:
        return ["one"]

    app.include_router(members)
    async with client_of(app) as client:
        assert (await client.get("/members/")).status_code == 401
        assert (await client.get("/members/", headers={"X-API-Key": "secret"})).json() == ["one"]
        assert (await client.get(RECORD)).headers["cache-control"].startswith("public, ")


async def test_dependency_can_be_overridden(app: FastAPI) -> None:
    """A response cached before the override doesn't hide it."""
    async with client_of(app) as client:
        for _ in range(2):  # the release is known now
            assert (await client.get(RECORD)).status_code == 200
        assert cache_of(app).get(key_of(client.build_request("GET", RECORD)))
        app.dependency_overrides[get_services] = require_key
        assert (await client.get(RECORD)).status_code == 401
        app.dependency_overrides.clear()
        assert (await client.get(RECORD)).status_code == 200


async def test_response_of_an_added_route_is_not_cached(app: FastAPI) -> None:
    """Unless it names its release and allows caching."""
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


async def test_added_route_uses_the_services(app: FastAPI) -> None:
    @app.get("/name/{id}")
    async def get_name(id: int, services: Annotated[object, Depends(get_services)]) -> str:  # noqa: A002  # as users write
        release = await services.releases.current()  # type: ignore[attr-defined]
        row = await services.repository.get_locality(release, id)  # type: ignore[attr-defined]
        return str(row.nombre)

    async with client_of(app) as client:
        assert (await client.get("/name/10010001")).json() == "Aguascalientes"


def test_fastapi_test_client_runs_the_whole_service(url: str) -> None:
    with TestClient(create_app(settings_of(url), in_background=False)) as client:
        answer = client.get(RECORD)
    assert answer.json()["cvegeo"] == "010010001"
    assert answer.headers["allow"] == "GET"


def test_url_for_works_by_route_name(app: FastAPI) -> None:
    assert app.url_path_for("get_locality", id=10010001) == RECORD
    assert app.url_path_for("list_localities") == LOCALIDADES
    assert census.router.url_path_for("list_localities") == LOCALIDADES
    assert app.url_path_for("static", path="style.css") == "/static/style.css"


async def test_undocumented_added_routes_are_in_the_document_and_reference(app: FastAPI) -> None:
    @app.get("/plain")
    async def plain(number: int, flag: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002  # as users write
        return {"number": number, "flag": flag}

    @app.get("/hello")
    async def greet(name: str) -> str:
        return name

    mine = APIRouter(prefix="/api/census/visits", tags=["Mine"], responses={409: {"description": "Somebody is there."}})

    @mine.post("/", responses={410: {"model": Visit}})
    async def create_visit(visit: Visit) -> Visit:
        return visit

    app.include_router(mine)
    async with client_of(app) as client:
        for language in ("en", "es"):
            document = (await client.get("/openapi.json", params={"lang": language})).json()
            schemathesis.openapi.from_dict(document).validate()
            assert document["paths"]["/plain"]["get"]["summary"] == "Plain"
            created = document["paths"]["/api/census/visits/"]["post"]
            assert created["responses"]["409"]["description"] == "Somebody is there."
            assert list(created["responses"]["410"]["content"]) == ["application/json"]
            assert {one["headers"]["Allow"]["example"] for one in created["responses"].values()} == {"POST, OPTIONS"}
            [parameter] = document["paths"]["/hello"]["get"]["parameters"]
            assert "example" not in parameter
            assert "examples" not in parameter["schema"]
            page = Page.of(await client.get("/redoc", params={"lang": language}))
            sections = {one.attributes["id"]: one.text for one in page.all("section")}
            assert "GET /plain" in sections["plain"]
            assert "POST /api/census/visits/" in sections["create_visit"]
            headings = {one.text for one in page.all("h2")}
            assert {"Mine", {"en": "Other operations", "es": "Otras operaciones"}[language]} < headings
            assert not [one for one in page.all("p") if not one.text]


def settings_of(url: str) -> Settings:
    return Settings(database_url=SecretStr(service_address(url)), page_cache_bytes=1_000_000)


def test_one_router_has_every_resource_of_the_prefix() -> None:
    """Every documented path below the prefix belongs to the one router."""
    document = create_app(Settings()).openapi()
    alone = FastAPI()
    alone.include_router(census.router)
    below = {path for path in document["paths"] if path.startswith("/api/census/")}
    assert below == set(alone.openapi()["paths"])
    assert len(below) > 20
