"""Whole responses, byte for byte, in tests/golden/contract: the status, the headers and the body of each request.

The files have the requests too, each with its headers and its body behind `>`. To add one, write it without an answer
and use `--regen`. Values that change between runs are written `{name}`, and the headers that let any web page read a
response `{cors}`. tests/processes/test_contract_wire.py compares `wire.txt` with what the servers send.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import NamedTuple

import httpx
import pytest
from fastapi import FastAPI

from tests.support.application import behind_proxy, client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.database import BREAK_LOCALITIES
from tests.support.golden import GOLDEN, assert_golden
from tests.support.pages import BROWSER
from tests.support.postgres import execute, new_database
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
CONTRACT = GOLDEN / "contract"
OF_THE_WIRE = ("date", "connection")  # headers that servers add
_CORS = (
    "access-control-allow-origin: *\naccess-control-expose-headers: Allow, Answer-Columns, Catalogue-Records, "
    "Catalogue-Release, Content-Disposition, ETag, Header-Row, Last-Modified, Link, Retry-After, Sheet-Name, "
    "X-Request-Id\n"
)
_VARIABLE = (
    ("last-modified", r"^(last-modified: ).*$"),
    ("request-id", r"^(x-request-id: )[0-9a-f]{8}-[0-9a-f]+$"),
    ("published-at", r'("(?:published_at|created)":"|<(?:updated|published)>)[^"<]*(?=["<])'),
    ("day", r"(<lastmod>|^Expires: )[0-9-]+"),
    ("version", r'("serviceVersion":")[^"]*(?=")'),
    ("sha256", r'("sha256":")[0-9a-f]{64}(?=")'),
)


class Request(NamedTuple):
    """A request of a golden file, and its headers and body as they are written there."""

    method: str
    target: str
    written: str

    def read(self) -> tuple[dict[str, str], str]:
        """Return its headers and its body."""
        head, _, body = re.sub("^> ?", "", self.written, flags=re.MULTILINE).partition("\n\n")
        return dict(line.split(": ") for line in head.splitlines()), body


def read_requests(name: str) -> list[Request]:
    text = (CONTRACT / f"{name}.txt").read_bytes().decode()
    return [Request(*parts) for parts in re.findall(r"^### (\w+) (\S+).*\n((?:>.*\n)*)", text, re.MULTILINE)]


def section(request: Request, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> str:
    """Return what a golden file has of a response."""
    head = "".join(f"{name}: {value}\n" for name, value in headers if name not in OF_THE_WIRE)
    text = head.replace(_CORS, "{cors}\n") + f"\n{body.decode()}\n"
    for value, pattern in _VARIABLE:
        text = re.sub(pattern, rf"\g<1>{{{value}}}", text, flags=re.MULTILINE)
    text = re.sub("(?m)^etag: .*", lambda tag: re.sub('[0-9a-f]{12,16}(?=[."])', "{etag}", tag[0]), text)
    return f"### {request.method} {request.target} {status}\n{request.written}{text}"


def assert_contract(name: str, sections: Iterable[str]) -> None:
    assert_golden(f"{name}.txt", "".join(sections).encode(), CONTRACT)


async def ask(client: httpx.AsyncClient, request: Request) -> str:
    """Send a request, and return the section of its response."""
    headers, body = request.read()
    headers = {"Accept-Encoding": "identity", **headers}
    answer = await client.request(request.method, request.target, headers=headers, content=body or None)
    return section(request, answer.status_code, answer.headers.multi_items(), answer.content)


async def assert_responses(client: httpx.AsyncClient, name: str) -> None:
    assert_contract(name, [await ask(client, request) for request in read_requests(name)])


# In `wire`, the protocol of the server takes part.
@pytest.mark.parametrize("name", sorted({path.stem for path in CONTRACT.iterdir()} - {"failures", "releases"}))
async def test_responses_equal_the_golden_file(client: httpx.AsyncClient, name: str) -> None:
    await assert_responses(client, name)


async def test_every_entity_tag_is_answered_with_304(client: httpx.AsyncClient) -> None:
    """Added routes are in test_extending.py."""
    asked = [request for path in CONTRACT.iterdir() for request in read_requests(path.stem) if request.method == "GET"]
    targets = [request.target for request in asked]
    tagged = 0
    for target, accept in ((target, accept) for target in targets for accept in ("application/json", "text/html")):
        answer = await client.get(target, headers={"Accept": accept})
        if tag := answer.headers.get("etag"):
            again = await client.get(target, headers={"Accept": accept, "If-None-Match": tag})
            assert (again.status_code, again.headers["etag"], again.content) == (304, tag, b""), (target, accept)
            for name in ("vary", "cache-control", "allow", "last-modified", "catalogue-release"):
                assert again.headers.get(name) == answer.headers.get(name), (target, accept)
            tagged += 1
    assert tagged > 80


@pytest.fixture(scope="module")
async def later(server: str, seeded: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of an application on two releases and without names.

    2021-01 lacks 010010002, has renamed 010010004 and moved 010010005.
    """
    changed = {
        "010010004": {"nombre": "Ardillas"},
        "010010005": {"latitud": "21.9", "longitud": "-102.5", "poblacion": "5"},
    }
    places = [replace(place, **changed.get(place.cvegeo, {})) for place in many(132) if place.cvegeo != "010010002"]
    file = write_catalogue(tmp_path_factory.mktemp("later") / "catun_localidad_2021-01.csv", places)
    with new_database(server, seeded) as url:
        await import_into(url, file, reason="a test")
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            yield client


async def test_responses_of_a_later_release_equal_the_golden_file(later: httpx.AsyncClient) -> None:
    await assert_responses(later, "releases")


async def test_responses_to_failures_equal_the_golden_file(database: str, seeded_database: str) -> None:
    """Without a release, without a database, and with a broken one, without a release at hand and with it."""
    *without, by_name, held = read_requests("failures")
    sections = []
    for request, url in zip(without, (database, "postgresql://x@localhost/x?host=/nowhere"), strict=True):
        async with running_app(url) as app, client_of(app) as client:
            sections.append(await ask(client, request))
    execute(seeded_database, *BREAK_LOCALITIES)
    async with running_app(seeded_database) as app, client_of(app) as client:
        sections.append(await ask(client, by_name))
        await eventually_async(lambda: app.state.services.releases.served is not None)
        sections.append(await ask(client, held))
    assert_contract("failures", sections)


NO_PLAIN_NAME = "(a name that is not plain ASCII)"


@pytest.mark.parametrize(
    ("target", "named"),
    [
        (f"{INDEX}?release=2020-01&%72elease=2020-01", ["release"]),
        (f"{LOCALIDADES}?format[]=json", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?{'n' * 41}=1", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?page=x&format=y&release=/&z=1", ["format", "page", "release", "z"]),
        (f"{LOCALIDADES}?%80=1", ["query"]),
        (f"{INDEX}?release={'x' * 65}", ["release"]),
    ],
)
async def test_bad_query_is_422_naming_the_parameter(client: httpx.AsyncClient, target: str, named: list[str]) -> None:
    answer = await client.get(target)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert sorted(fault["parameter"] for fault in json.loads(answer.content)["errors"]) == named


async def test_origin_and_cookies_change_nothing(client: httpx.AsyncClient) -> None:
    """Otherwise a shared cache would have to keep a response for each."""
    others = {"Origin": "https://other.example", "Cookie": "a=b", "Access-Control-Request-Headers": "if-none-match"}
    for method in ("GET", "OPTIONS"):
        asked, plain = [await client.request(method, LOCALIDADES, headers=headers) for headers in (others, {})]
        assert (asked.headers, asked.content) == (plain.headers, plain.content)


@pytest.mark.parametrize("root", ["", "/claves"])
async def test_every_response_names_the_methods_of_its_resource(app: FastAPI, root: str) -> None:
    """Also below a path prefix that the proxy keeps."""
    match, with_body = f"{LOCALIDADES}match/", "POST, OPTIONS"
    async with behind_proxy(app, root) as client:
        for method, target, status, allow in (
            ("OPTIONS", LOCALIDADES, 204, "GET"), ("GET", LOCALIDADES[:-1], 308, "GET"),
            ("GET", f"{LOCALIDADES}?page_size=1000&format=api", 307, "GET"),
            ("GET", f"{LOCALIDADES}10010001/%0A", 404, "GET"), ("PUT", f"{INDEX}nothing", 405, "GET"),
            ("GET", match, 405, with_body), ("HEAD", match, 405, with_body), ("GET", match[:-1], 405, with_body),
            ("POST", match, 415, with_body), ("POST", match[:-1], 415, with_body),
            ("PUT", f"{LOCALIDADES}nearest/", 405, "GET, POST, OPTIONS"),
        ):  # fmt: skip
            for accept in ({}, BROWSER):
                answer = await client.request(method, f"{root}{target}", headers=accept)
                assert (answer.status_code, answer.headers["allow"]) == (status, allow), (method, target)
                assert answer.headers["vary"].startswith("Accept")
                assert answer.headers["access-control-allow-origin"] == "*"


async def test_resources_can_be_read_from_any_origin(client: httpx.AsyncClient) -> None:
    """The metrics can't: any web page could read them through a browser in the operator's network."""
    for target in ("/", "/openapi.json", "/problems", "/livez", "/readyz", "/startupz", "/docs", "/static/style.css",
                   "/static/nothing", "/nothing", "/problems?x=1", "/robots.txt", "/favicon.ico",
                   "/wscatgeo/mgee/01"):  # fmt: skip
        answer = await client.get(target)
        assert answer.headers["access-control-allow-origin"] == "*", target
        preflight = await client.options(target)
        assert (preflight.status_code, preflight.headers["allow"]) == (204, "GET"), target
        assert preflight.headers["access-control-allow-origin"] == preflight.headers["access-control-allow-headers"]
        assert "GET" in preflight.headers["access-control-allow-methods"]
        if answer.status_code != 404:
            refused = await client.request("PROPFIND", target)
            assert (refused.status_code, refused.headers["allow"].partition(",")[0]) == (405, "GET"), target
    assert "access-control-allow-origin" not in (await client.get("/metrics")).headers
    assert (await client.options("/metrics")).status_code == 405
