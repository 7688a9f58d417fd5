"""nginx with the shipped files in front of the service."""

import asyncio
import gzip
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from localidades_api.api.middleware.tracking_parameters import TRACKING
from localidades_api.api.services import get_exchange, get_transfers
from localidades_api.errors import NotAcceptableError
from localidades_api.html.languages.accept_language import choose_language
from localidades_api.html.renderer import FORMATS
from localidades_api.http.negotiation import choose_media_type
from tests.deploy.nginx import NGINX, Front, copy_distribution, running_distribution, running_nginx
from tests.support.application import operations_with
from tests.support.downloads import DOWNLOAD
from tests.support.http_server import Request, Response, http_server
from tests.support.postgres import new_database
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, Answer, ask, connect, final_statuses, head, parse, send, serving

pytestmark = pytest.mark.tail

CHROME = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)
HTML = ("Accept", CHROME)
# Programs, which get JSON, each with its own spelling.
PROGRAMS = (
    None,  # curl --header 'Accept:', Go
    "*/*",  # curl, requests, httpx, fetch, Postman, wget
    "application/json, text/plain, */*",  # axios, Angular
    "application/json, text/javascript, */*; q=0.01",  # jQuery
    "application/json, */*;q=0.5",  # HTTPie
    "Application/JSON;charset=UTF-8",
    "application/json, text/json, text/x-json, text/javascript, application/xml, text/xml",  # RestSharp
    "application/json;q=1.0,text/html;q=0.9",
    "text/html, application/json",  # equals: the service prefers JSON
    "image/gif, image/jpeg, image/pjpeg, application/x-shockwave-flash, */*",  # Internet Explorer
)
BROWSERS = (
    CHROME,
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",  # Firefox, Safari
    "text/html, application/xhtml+xml, image/jxr, */*; q=0.5",  # Edge before Chromium
    "text/html, application/xml;q=0.9, application/xhtml+xml, image/png, image/webp, */*;q=0.1",  # Opera 12
    "TEXT/HTML",
    "text/html,application/json;q=0.9",
)
LANGUAGES = (None, "es-MX,es;q=0.9,en;q=0.8", "en-US,en;q=0.9,es;q=0.8", "de,en;q=0.2,es;q=0.5", "español", "")
# One header of each kind.
REPRESENTATIVE = (
    None, "*/*", "application/json", CHROME, "text/csv", "application/x-ndjson, */*", "application/problem+json",
    "text/*, application/json", "json", "\xe9/\xff", 'application/json;profile="a,b;q=0", text/html;q=0.9',
    "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",  # Java's HttpURLConnection
    "text/html, " + "a/b, " * 1000 + "c/d",  # longer than the service reads
)  # fmt: skip
# Headers that nginx adds, or that differ between two responses of the service itself.
_OF_EACH = {"accept-ranges", "connection", "content-length", "date", "server", "transfer-encoding", "vary"}


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Callable[[str], Front]]:
    """Yield a function that runs nginx in front of an origin."""
    with ExitStack() as stack:
        yield lambda base: stack.enter_context(running_nginx(base, tmp_path))


@pytest.fixture(scope="module")
def front(live_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Yield an nginx in front of the service."""
    with running_nginx(live_server, tmp_path_factory.mktemp("nginx")) as running:
        yield running


def headers_of(accept: str | None, language: str | None = None) -> list[tuple[str, str]]:
    wishes = {"Accept": accept, "Accept-Language": language}
    return [(name, value) for name, value in wishes.items() if value is not None]


def assert_unchanged(through: Answer, straight: Answer, *shown: object) -> None:
    """Compare the parts of a response that clients see, except for `Vary: Accept-Encoding`, which is nginx's."""
    seen = []
    for answer in (through, straight):
        vary = {name.strip() for line in answer.all("vary") for name in line.split(",")} - {"Accept-Encoding"}
        rest = sorted((name, value) for name, value in answer.headers if name not in _OF_EACH)
        seen.append((answer.status, whole(answer), vary, rest))
    assert seen[0] == seen[1], shown


def whole(answer: Answer) -> bytes:
    """Return the body without the sizes of its chunks."""
    if answer.all("transfer-encoding") != ["chunked"]:
        return answer.body
    body, rest = b"", answer.body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


# -- Responses


@pytest.mark.parametrize(
    "target",
    [
        "/", "/api/census/", "/api//census/", "/api/census/releases/2020-01/changes/?since=2020-01",
        "/api/census/reconcile/", "/api/census/reconcile/preview/?id=01", "/map", "/openapi.json", "/docs",
        "/static/maplibre/maplibre-gl-worker.mjs", "/static/style.css", "/static/nothing",
        *(LOCALIDADES + rest for rest in (
            "", "?format=json", "?format=api", "?lang=es", "?format=api&lang=es", "?page=2&release=2020-01", "?page=0",
            "?page_size=1000", "?FORMAT=json", "?format=json&format=api", "?format=json&%66ormat=api", "?format=%6ason",
            "?format=xml", "?format=jsonp", "?xformat=json", "?lang=es&lang=en", "10010001/", "99999999/",
            "suggest/?q=pa", "download/", "download/?format=api", "%64ownload/", "tiles.json",
            "tiles/5/6/13.mvt?release=2020-01", "backdrop.svg?release=2020-01",
        )),
    ],
)  # fmt: skip
def test_nginx_passes_each_resource_unchanged(live_server: str, front: Front, target: str) -> None:
    for accept in REPRESENTATIVE:
        for language in LANGUAGES if accept in {None, CHROME} else (None, "es"):
            wishes = headers_of(accept, language)
            straight = ask(live_server, target, *wishes)
            assert_unchanged(ask(front.base, target, *wishes), straight, wishes)
        head = ask(front.base, target, *headers_of(accept), method="HEAD")
        assert (head.status, head.body) == (straight.status, b"")


_TYPES = ["application/json", "text/html", "*/*", "application/*", "text/*", "application/xml", "Text/HTML", "image/*"]
_ODD = ["*", "json", "application/json/", 'text/html;a="b,c"', "", " ", "application/jsonp", "xapplication/json"]
_WEIGHTS = ["", "", ";q=1", ";q=1.000", ";q=0", ";q=0.000", ";q=0.5", "; q=0.9", " ;Q=0.8", ";q=.2", ";q=2", ";q="]
_PARAMETERS = ["", "", "", ";v=b3", ";charset=utf-8", "; level=1", ";xq=0", ";q=0.3"]
_TAGS = ["es", "en", "es-MX", "en-US", "ES", "de", "ca", "est", "eng", "*", "", "es-", "x-es"]


def lists(separators: list[str], *parts: list[str], odd: list[str]) -> st.SearchStrategy[str]:
    """Return lists of elements, each of which has one of each of the parts or is odd."""
    element = st.tuples(*map(st.sampled_from, parts)).map("".join)
    elements = st.lists(element | element | st.sampled_from(odd), min_size=1, max_size=5)
    return st.builds(str.join, st.sampled_from(separators), elements)


@hypothesis_settings(max_examples=1000)
@given(accept=lists([",", ", ", " ,\t", ",,", ";"], _TYPES, _PARAMETERS, _PARAMETERS, _WEIGHTS, odd=_ODD))
def test_nginx_negotiates_media_types_like_the_service(front: Front, accept: str) -> None:
    through = ask(front.base, LOCALIDADES, ("Accept", accept))
    try:
        chosen = choose_media_type(accept.strip(" \t") or None, list(FORMATS))
    except NotAcceptableError:
        assert through.status == 406
    else:
        assert (through.status, through.one("content-type").partition(";")[0]) == (200, chosen)


@hypothesis_settings(max_examples=500)
@given(accept_language=lists([",", ", ", ";"], _TAGS, _WEIGHTS, odd=["español"]))
def test_nginx_negotiates_languages_like_the_service(front: Front, accept_language: str) -> None:
    through = ask(front.base, LOCALIDADES, HTML, ("Accept-Language", accept_language))
    assert f'<html lang="{choose_language(accept_language.strip())}"'.encode() in through.body


def test_unkeyed_and_repeated_headers_do_not_poison_the_cache(
    live_server: str, proxied: Callable[[str], Front]
) -> None:
    front = proxied(live_server)
    made_up = {
        "Host": "other.example", "X-Forwarded-Host": "other.example", "X-Forwarded-Prefix": "/other",
        "Origin": "https://other.example", "Referer": "https://other.example/", "User-Agent": "other.example",
        "Cookie": "lang=es", "Accept-Encoding": "br", "Accept-Charset": "utf-16", "If-None-Match": "*",
        "If-Match": '"x"', "Range": "bytes=0-1",
    }  # fmt: skip
    for target in ("/", "/api/census/", LOCALIDADES, f"{LOCALIDADES}10010001/", "/docs", "/static/page.js"):
        for repeated in (("text/html", "application/json"), ("application/json", "text/html"), ("*/*", "text/html")):
            ask(front.base, target, *(("Accept", one) for one in repeated))
        ask(front.base, target, ("Accept-Language", "en"), ("Accept-Language", "es"), HTML)
        for wishes in ([], [HTML], [HTML, ("Accept-Language", "es")]):
            lines = [f"{name}: {value}" for name, value in (*made_up.items(), *wishes)]
            send(front.base, "\r\n".join([f"GET {target} HTTP/1.1", *lines, "Connection: close", "", ""]).encode())
            assert_unchanged(ask(front.base, target, *wishes), ask(live_server, target, *wishes))


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/startupz", "/metrics"])
def test_probes_and_metrics_are_not_public(live_server: str, front: Front, path: str) -> None:
    eventually(lambda: ask(live_server, path).status < 300)
    escaped = f"/%{ord(path[1]):02x}{path[2:]}"
    for spelled in (path, f"{path}?x=1", f"/{path}", escaped, f"/static/..{path}", f"/.{path}"):
        for method in ("GET", "HEAD"):
            assert ask(front.base, spelled, method=method).status == 404, spelled


TITLES = {413: "Content Too Large", 414: "URI Too Long"}  # which old Pythons call otherwise


def test_errors_of_nginx_are_problems(front: Front, proxied: Callable[[str], Front]) -> None:
    head = b"POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 2000000\r\n\r\n"
    refused = {
        404: ask(front.base, "/metrics"),
        405: ask(front.base, LOCALIDADES, method="TRACE"),
        414: ask(front.base, LOCALIDADES + "x" * 9000),
        431: ask(front.base, LOCALIDADES, ("X-Long", "x" * 9000)),
        400: parse(send(front.base, b"GET / HTTP/1.1\r\n\r\n")),
        413: parse(send(front.base, head)),
        503: ask(proxied("http://127.0.0.1:1").base, LOCALIDADES),  # nothing listens on that port
    }
    for status, answer in refused.items():
        assert answer.status == status
        assert (answer.one("content-type"), answer.one("cache-control")) == ("application/problem+json", "no-store")
        problem = json.loads(answer.body)
        assert (problem["status"], problem["title"]) == (status, TITLES.get(status, HTTPStatus(status).phrase))
        assert answer.all("retry-after") == ["5"] * (status == 503)


ROWS = [*operations_with(get_exchange)]  # addresses, with and without their slash


@pytest.mark.parametrize("target", ROWS)
def test_rows_may_be_of_any_size_and_reach_the_service_as_they_are_sent(
    live_server: str, front: Front, target: str
) -> None:
    body = b"latitud,longitud,nombre,notas\n" + f"21.88,-102.3,Aguascalientes,{'x' * 700_000}\n".encode() * 3
    table = ("Content-Type", "text/csv")
    straight, through = (ask(base, target, table, method="POST", body=body) for base in (live_server, front.base))
    assert (through.status, whole(through)) == (straight.status, whole(straight))
    assert straight.status == (404 if "/at" in target else 200), "the demo has no outlines"
    begun = head(target, "Content-Type: image/png", "Content-Length: 2000000", method="POST") + body[:100]
    assert parse(send(front.base, begun)).status in {404, 415}, "refused before the rest has been sent"


def test_every_file_is_among_the_files() -> None:
    config = (NGINX / "localidades-server.conf").read_text(encoding="utf-8")
    [pattern] = re.findall(r"location ~ (\S+download\S+) \{", config)
    for path in operations_with(get_transfers):
        assert re.search(pattern, path.replace("{ending}", "csv")), path


@pytest.mark.parametrize("wishes", [[], [HTML]])
def test_nginx_answers_conditional_requests_as_the_service_does(
    live_server: str, front: Front, wishes: list[tuple[str, str]]
) -> None:
    direct = ask(live_server, LOCALIDADES, *wishes)
    tag = direct.one("etag")
    for condition, status in {
        ("If-None-Match", tag): 304,
        ("If-None-Match", f'"x", W/{tag}'): 304,
        ("If-None-Match", "*"): 304,
        ("If-None-Match", '"x"'): 200,
        ("If-Modified-Since", direct.one("last-modified")): 200,
        ("Range", "bytes=0-9"): 200,
    }.items():
        straight, through = (ask(base, LOCALIDADES, *wishes, condition) for base in (live_server, front.base))
        assert (straight.status, through.status, through.one("etag")) == (status, status, tag), condition


@pytest.mark.parametrize(
    "target",
    [
        f"{LOCALIDADES}?page_size=99", "/sitemap.xml", "/openapi.json", "/ogc/api", "/redoc", "/llms.txt",
        "/ogc/collections/localidades/items?limit=50",
    ],
)  # fmt: skip
def test_one_cache_entry_serves_all_codings(live_server: str, front: Front, target: str) -> None:
    plain, packed = ask(front.base, target), ask(front.base, target, ("Accept-Encoding", "br, gzip"))
    assert packed.one("content-encoding") == "gzip"
    assert all("Accept-Encoding" in ", ".join(answer.all("vary")) for answer in (plain, packed))
    assert gzip.decompress(whole(packed)) == whole(plain) == whole(ask(live_server, target))
    if "public" in packed.one("cache-control"):
        assert packed.one("etag") == f"W/{plain.one('etag')}"  # the same document, in other bytes
        for coding in ("gzip", "identity"):
            again = ask(front.base, target, ("Accept-Encoding", coding), ("If-None-Match", packed.one("etag")))
            assert again.status == 304


def test_swagger_ui_is_sent_as_brotli(front: Front) -> None:
    script = ask(front.base, "/static-swagger-ui/swagger-ui-bundle.js", ("Accept-Encoding", "br, gzip"))
    assert script.one("content-encoding") == "br"


def test_downloads_errors_and_responses_to_post_are_not_cached(
    live_server: str, proxied: Callable[[str], Front]
) -> None:
    front = proxied(live_server)
    for coding in ("zstd", "br", "gzip", "identity", "gzip"):
        download = ask(front.base, f"{DOWNLOAD}?format=ndjson", ("Accept-Encoding", coding))
        assert download.all("content-encoding") == ([] if coding == "identity" else [coding])
        assert download.one("catalogue-records") == "132"
    for target in ("?page=99", "?nothing=1", "99999999/"):
        assert ask(front.base, LOCALIDADES + target).status in {404, 422}
    assert ask(front.base, LOCALIDADES, ("Accept", "text/plain")).status == 406
    rows = b'[{"lat": 21.88, "lon": -102.3}]'
    ask(front.base, f"{LOCALIDADES}nearest/", ("Content-Type", "application/json"), method="POST", body=rows)
    assert front.entries == []


# -- Requests that reach the service


@contextmanager
def recording(seconds: float = 0) -> Iterator[tuple[str, list[Request]]]:
    """Yield an origin that responds after a delay with the number of the request, and its requests."""
    arrived: list[Request] = []
    fresh = {"Cache-Control": "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"}

    def respond(request: Request) -> Response:
        arrived.append(request)
        number = len(arrived)
        time.sleep(seconds)
        return Response(b"%d" % number, headers=fresh)

    with http_server(respond) as origin:
        yield origin, arrived


def test_equivalent_headers_share_a_cache_entry(proxied: Callable[[str], Front]) -> None:
    with recording() as (origin, arrived):
        front = proxied(origin)
        for accept in PROGRAMS:
            for language in LANGUAGES:
                ask(front.base, LOCALIDADES, *headers_of(accept, language))
        assert [request.headers["accept"] for request in arrived] == ["application/json"]
        for accept in BROWSERS:
            for language in ("es", "es-MX,es;q=0.9,en;q=0.8", None, "en-US,en;q=0.9,es;q=0.8", "de"):
                ask(front.base, LOCALIDADES, *headers_of(accept, language))
        asked = [(request.headers["accept"], request.headers["accept-language"]) for request in arrived[1:]]
        assert asked == [("text/html", "es"), ("text/html", "en")]
        for accept in (*PROGRAMS, *BROWSERS):
            ask(front.base, f"{LOCALIDADES}?format=json", *headers_of(accept))
            ask(front.base, f"{LOCALIDADES}?lang=es&format=api", *headers_of(accept))
        assert len(arrived) == 5


def test_concurrent_misses_reach_the_service_once(proxied: Callable[[str], Front]) -> None:
    with recording(0.5) as (origin, arrived):
        front = proxied(origin)

        async def ask_once() -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(f"GET {LOCALIDADES} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
            received = await reader.read()
            writer.close()
            return received

        async def ask_together() -> list[bytes]:
            return await asyncio.gather(*(ask_once() for _ in range(1000)))

        answers = [parse(received) for received in asyncio.run(ask_together())]
        assert {(answer.status, answer.body) for answer in answers} == {(200, b"1")}
        assert len(arrived) == 1


def test_tracked_links_share_the_entry_of_the_page(front: Front, proxied: Callable[[str], Front]) -> None:
    """Each parameter that the application drops, with any value, in any number, after the page's own."""
    names = TRACKING.pattern.decode().partition(")")[0].removeprefix("(?:").replace("[a-z_]+", "source").split("|")
    every = "&".join(names)
    with recording() as (origin, arrived):
        base = proxied(origin).base
        for own, tracking in (
            ("?", [f"{name}=%FF?{name}" for name in names]),
            ("?page=2&search=a?gclid&", ["fbclid", every]),
            ("?x&&", ["fbclid=1", f"{every}="]),
        ):
            page = ask(base, f"{LOCALIDADES}{own[:-1]}", HTML).body
            assert {ask(base, f"{LOCALIDADES}{own}{one}", HTML).body for one in tracking} == {page}, own
        before = len(arrived)
        others = ["?", "?fbclid&page=2", "?fbclidx=1", "?xfbclid=1", "?page=2&fbclid=1&x", "?utm_=1", "?FBCLID=1"]
        for other in others:  # that the application sees as other pages, or that aren't certain
            ask(base, f"{LOCALIDADES}{other}", HTML)
        ask(base, f"{LOCALIDADES}?fbclid=1")  # JSON
        assert len(arrived) == before + len(others) + 1
    assert [ask(front.base, LOCALIDADES + query).status for query in ("", "?fbclid=1")] == [200, 422]


def test_forged_forwarding_headers_are_replaced(proxied: Callable[[str], Front]) -> None:
    made_up = {
        "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__", "X-Forwarded-For": "192.0.2.1",
        "X-Forwarded-Proto": "https", "X-Forwarded-Host": "other.example", "X-Forwarded-Prefix": "/other",
        "Forwarded": "for=192.0.2.1",
    }  # fmt: skip
    workers = os.cpu_count() or 1
    with recording() as (origin, arrived):
        front = proxied(origin)
        for page in range(workers * 3):
            ask(front.base, f"{LOCALIDADES}?page={page}", *made_up.items())
    assert len(arrived) == workers * 3
    for request in arrived:
        assert {"upgrade", "connection"}.isdisjoint(map(str.lower, request.headers))
        forwarded = {name.lower(): value for name, value in request.headers.items() if "forwarded" in name.lower()}
        assert forwarded == {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http"}
    assert len({request.port for request in arrived}) <= workers, "each request has a connection of its own"


# -- Freshness


@pytest.mark.parametrize(("age", "body"), [(600, b"1"), (670, b"2")])
def test_expired_entry_is_served_while_revalidated(proxied: Callable[[str], Front], age: int, body: bytes) -> None:
    with recording() as (origin, arrived):
        front = proxied(origin)
        assert ask(front.base, LOCALIDADES).body == b"1"
        front.age(age)
        assert ask(front.base, LOCALIDADES).body == body
        eventually(lambda: ask(front.base, LOCALIDADES).body == b"2")
        assert len(arrived) == 2


@pytest.mark.parametrize("fault", [500, 502, 503, 504])
def test_stale_entry_is_served_while_the_service_fails(proxied: Callable[[str], Front], fault: int) -> None:
    responses = [Response(b"page", headers={"Cache-Control": "max-age=60, stale-if-error=86400"})]
    with http_server(lambda _: responses[-1]) as service:
        front = proxied(service)
        ask(front.base, LOCALIDADES)
        responses.append(Response(b"fault", fault, {"Cache-Control": "no-store"}))
        front.age(23 * 3600)  # stale-if-error lasts for a day
        assert (ask(front.base, LOCALIDADES).status, ask(front.base, LOCALIDADES).body) == (200, b"page")
        assert ask(front.base, f"{LOCALIDADES}?page=2").status == fault


# -- Limits of a client

BURST = 500  # requests, as in the site
TOLD = "listen 127.0.0.1:PORT;\nset_real_ip_from 127.0.0.0/8;\nreal_ip_header X-Forwarded-For;"


def flood(base: str, *clients: str) -> bytes:
    """Send requests of several clients in turn, twice the burst of one, and return the responses."""
    heads = [f"HEAD {LOCALIDADES} HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: {client}\r\n" for client in clients]
    last = heads[0].replace("HEAD", "GET") + "Connection: close\r\n\r\n"
    return send(base, ("\r\n".join(heads * (2 * BURST // len(heads))) + "\r\n" + last).encode())


@pytest.fixture(scope="module")
def told(live_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Yield an nginx behind a proxy that forwards client addresses, as its file shows."""
    with running_nginx(live_server, tmp_path_factory.mktemp("nginx"), TOLD) as running:
        yield running


@pytest.mark.parametrize(
    ("clients", "other"),
    [
        (["203.0.113.1"], "203.0.113.2"),
        (["203.10.0.10"], "203.10.0.0"),
        (["2001:db8:a00:a::1", "2001:db8:a00:a:ffff::2"], "2001:db8:a00:b::1"),
        (["2001:db8:a0a:a0a:a0a::", "2001:db8:a0a:a0a::"], "2001:db8:a0a:a0b::"),
    ],
)
def test_rate_limit_is_429_per_client(told: Front, clients: list[str], other: str) -> None:
    answers = flood(told.base, *clients)
    found = final_statuses(answers)
    assert found[: BURST + 1] == [200] * (BURST + 1)
    assert found.count(429) > BURST // 2
    refused = parse(answers[answers.rindex(b"HTTP/1.1 429") :])
    assert (refused.one("retry-after"), refused.one("cache-control")) == ("1", "no-store")
    assert refused.one("content-type") == "application/problem+json"
    assert ask(told.base, LOCALIDADES, ("X-Forwarded-For", other)).status == 200


@pytest.mark.parametrize("client", ["127.0.0.1", "10.1.2.3", "192.168.10.10", "::1", "fd00::a"])
def test_private_addresses_have_no_rate_limit(told: Front, client: str) -> None:
    assert set(final_statuses(flood(told.base, client))) == {200}


def begin(front: Front) -> socket.socket:
    """Request a file and read its first bytes."""
    reader = connect(front.base, receive_buffer=4096)
    headers = "Host: localidades.example.mx\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.1"
    reader.sendall(f"GET {DOWNLOAD}?format=geojson HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def test_nginx_buffers_downloads_for_slow_clients(server: str, large: str, tmp_path: Path) -> None:
    copy = copy_distribution(tmp_path)  # the site is installed there as the guide says
    for path in NGINX.glob("localidades*.conf"):
        shutil.copy(path, copy / "sites-enabled" if path.stem == "localidades" else copy)
    with (
        new_database(server, large) as url,
        serving(url, LOCALIDADES_MAX_TRANSFERS="1") as live,
        running_distribution(copy, live.base) as front,
        begin(front) as slow,
    ):
        eventually(lambda: ask(live.base, f"{DOWNLOAD}?municipio_id=1001").status == 200)
        assert b"".join(iter(lambda: slow.recv(1024**2), b"")).endswith(b"\r\n0\r\n\r\n")


def test_four_concurrent_downloads_per_client(server: str, large: str, tmp_path: Path) -> None:
    with (
        new_database(server, large) as url,
        serving(url) as live,
        running_nginx(live.base, tmp_path, TOLD) as front,
        ExitStack() as stack,
    ):
        for _ in range(4):
            stack.enter_context(begin(front))
        refused = ask(front.base, DOWNLOAD, ("X-Forwarded-For", "203.0.113.1"))
        assert (refused.status, refused.one("retry-after")) == (503, "5")
        assert refused.one("content-type") == "application/problem+json"
        assert ask(front.base, LOCALIDADES, ("X-Forwarded-For", "203.0.113.1")).status == 200
        assert ask(front.base, f"{DOWNLOAD}?estado_id=1", ("X-Forwarded-For", "203.0.113.2")).status == 200


def test_four_concurrent_senders_of_rows_per_client(tmp_path: Path) -> None:
    fields = ("Content-Length: 1000", "Expect: 100-continue", "Connection: close")
    with recording() as (origin, _), running_nginx(origin, tmp_path, TOLD) as front, ExitStack() as stack:

        def begin_sending(target: str, client: str) -> bytes:
            sender = stack.enter_context(connect(front.base))
            sender.sendall(head(target, *fields, f"X-Forwarded-For: {client}", method="POST"))
            return sender.recv(12)

        for number, target in enumerate(ROWS):
            client = f"203.0.113.{number}"
            begun = [begin_sending(target, client) for _ in range(5)]
            assert begun == [b"HTTP/1.1 100"] * 4 + [b"HTTP/1.1 503"], target
            assert ask(front.base, target, ("X-Forwarded-For", client)).status == 200, "a GET sends no rows"
