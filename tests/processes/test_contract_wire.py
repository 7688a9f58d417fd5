"""The parts of the contract that only show on a connection: bytes, escapes, repeated headers, methods, HEAD.

`test_contract_golden.py` has complete responses, byte for byte, some of them also under the `uvicorn` command;
`test_bad_clients.py` the limits on requests; `test_hostile_requests.py` hostile input. The tables of page numbers,
Accept and If-None-Match are in tests/unit/test_pagination.py, tests/unit/test_negotiation.py and
tests/http/test_caching.py, that of messages in tests/http/test_messages.py.
"""

import http.client
import json
from urllib.robotparser import RobotFileParser

import pytest

from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, Answer, ask, send

INDEX = "/api/census/"
BROWSER = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8")
JSON, HTML, PROBLEM = "application/json", "text/html; charset=utf-8", "application/problem+json"


def without_date(answer: Answer) -> Answer:
    return Answer(answer.status, [header for header in answer.headers if header[0] != "date"], answer.body)


def assert_problem(answer: Answer, status: int) -> None:
    assert (answer.status, answer.one("content-type")) == (status, PROBLEM), answer.text
    assert (answer.one("vary"), answer.one("access-control-allow-origin")) == ("Accept", "*")
    assert json.loads(answer.body)["status"] == status


# -- The query


@pytest.mark.parametrize("query", ["?", "?&", "?page=%31&", "?%70age=01", "?release=2020-01&page=1"])
def test_spellings_of_the_first_page_are_equivalent(live_server: str, query: str) -> None:
    answer, plain = ask(live_server, LOCALIDADES + query), ask(live_server, LOCALIDADES)
    assert (answer.status, answer.one("etag"), answer.body) == (200, plain.one("etag"), plain.body)


NO_PLAIN_NAME = "(a name that is not plain ASCII)"


@pytest.mark.parametrize(
    ("target", "named"),
    [
        (f"{LOCALIDADES}?page=%D9%A1", ["page"]),
        (f"{LOCALIDADES}?page={'9' * 5000}", ["page"]),
        (f"{LOCALIDADES}?format=json&format=api", ["format"]),
        (f"{INDEX}?release=2020-01&%72elease=2020-01", ["release"]),
        (f"{LOCALIDADES}?format[]=json", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?{'n' * 41}=1", [NO_PLAIN_NAME]),
        (f"{LOCALIDADES}?page=x&format=y&release=/&z=1", ["format", "page", "release", "z"]),
        (f"{LOCALIDADES}?%80=1", ["query"]),
        (f"{INDEX}?release=2020-01%00", ["query"]),
        (f"{INDEX}?release={'x' * 65}", ["release"]),
    ],
)
def test_bad_query_is_422_naming_the_parameter(live_server: str, target: str, named: list[str]) -> None:
    answer = ask(live_server, target)
    assert_problem(answer, 422)
    assert sorted(fault["parameter"] for fault in json.loads(answer.body)["errors"]) == named


@pytest.mark.parametrize("raw", [b"\xd9\xa1", b"\xff", b"\x00", b" 1"])
def test_query_with_raw_bytes_is_refused(live_server: str, raw: bytes) -> None:
    target = LOCALIDADES.encode() + b"?page=" + raw
    received = send(live_server, b"GET " + target + b" HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
    assert received.split()[1] in {b"400", b"422"}


# -- Representations


@pytest.mark.parametrize(
    ("query", "lines", "status", "content_type"),
    [
        ("", [], 200, JSON),
        ("", ["text/html;q=0.9", "application/json"], 200, JSON),
        ("", [BROWSER[1]], 200, HTML),
        ("", ["\xf1/\xf1"], 406, PROBLEM),
        ("?format=json", ["text/html"], 200, JSON),
        ("?format=api&page=4", [], 404, HTML),
        ("?format=x", [BROWSER[1]], 422, HTML),
    ],
)
def test_requested_representation_is_sent(
    live_server: str, query: str, lines: list[str], status: int, content_type: str
) -> None:
    answer = ask(live_server, LOCALIDADES + query, *(("Accept", line) for line in lines))
    assert (answer.status, answer.one("content-type")) == (status, content_type)
    assert answer.one("vary") == ("Accept, Accept-Language" if content_type == HTML else "Accept")
    assert answer.body.startswith(b"<!doctype html>" if content_type == HTML else b"{")


def test_origin_and_cookies_change_nothing(live_server: str) -> None:
    """Otherwise a shared cache would have to keep a response for each."""
    others = (("Origin", "https://other.example"), ("Cookie", "a=b"))
    assert without_date(ask(live_server, LOCALIDADES, *others)) == without_date(ask(live_server, LOCALIDADES))
    preflight = (("Access-Control-Request-Method", "GET"), ("Access-Control-Request-Headers", "if-none-match"))
    asked = ask(live_server, LOCALIDADES, *others, *preflight, method="OPTIONS")
    assert without_date(asked) == without_date(ask(live_server, LOCALIDADES, method="OPTIONS"))


@pytest.mark.parametrize("target", [LOCALIDADES, f"{LOCALIDADES}match/", "/map", "/static/style.css", "/nothing"])
def test_preflight_allows_a_private_network(live_server: str, target: str) -> None:
    """Pages of public sites read a service in a private network: browsers ask whether they may."""
    private = ("Access-Control-Request-Private-Network", "true")
    asked = ask(live_server, target, ("Origin", "https://other.example"), private, method="OPTIONS")
    assert (asked.status, asked.all("access-control-allow-private-network")) == (204, ["true"])
    for other in (("X-Other", "true"), (private[0], "false")):
        assert ask(live_server, target, other, method="OPTIONS").all("access-control-allow-private-network") == []
    assert ask(live_server, "/metrics", private, method="OPTIONS").status == 405


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 307), ("/openapi.json", 200), ("/problems", 200), ("/livez", 204), ("/readyz", 200), ("/startupz", 200),
        ("/docs", 200), ("/static/style.css", 200), ("/static/nothing", 404), ("/nothing", 404), ("/api/nothing", 404),
        ("/problems?x=1", 422), ("/robots.txt", 200), ("/favicon.ico", 200),
    ],
)  # fmt: skip
def test_discovery_files_can_be_read_from_any_origin(live_server: str, target: str, status: int) -> None:
    answer = ask(live_server, target, ("Origin", "https://other.example"))
    assert answer.status == status
    assert (answer.one("access-control-allow-origin"), answer.one("x-content-type-options")) == ("*", "nosniff")
    asked = ask(live_server, target, ("Access-Control-Request-Method", "GET"), method="OPTIONS")
    assert (asked.status, asked.one("allow"), asked.one("access-control-allow-origin")) == (204, "GET", "*")
    assert "GET" in asked.one("access-control-allow-methods")
    assert asked.one("access-control-allow-headers") == "*"


def test_metrics_cannot_be_read_from_other_origins(live_server: str) -> None:
    """Any web page could read them through a browser in the operator's network."""
    answer = ask(live_server, "/metrics", ("Origin", "https://other.example"))
    assert (answer.status, answer.all("access-control-allow-origin")) == (200, [])
    assert ask(live_server, "/metrics", method="OPTIONS").status == 405


# -- Methods

TARGETS = (
    "/", "/docs", "/openapi.json", "/problems?format=api", "/livez", "/static/style.css", "/static/nothing", "/nothing",
    INDEX, LOCALIDADES, LOCALIDADES[:-1], f"{LOCALIDADES}?format=api", f"{LOCALIDADES}?page=99", f"{LOCALIDADES}?x",
    f"{LOCALIDADES}10010001/", f"{LOCALIDADES}download/",
)  # fmt: skip


def test_head_has_the_headers_of_get(live_server: str) -> None:
    of_the_body = ("transfer-encoding", "chunked")  # of a file, whose length is unknown
    for target in TARGETS:
        got, head = (without_date(ask(live_server, target, method=method)) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (got.status, b""), target
        assert head.headers == [header for header in got.headers if header != of_the_body], target
        if of_the_body not in got.headers and got.body:
            assert int(head.one("content-length")) == len(got.body), target


def test_connection_stays_open_after_empty_responses(live_server: str) -> None:
    connection = http.client.HTTPConnection(live_server.removeprefix("http://"), timeout=PATIENCE)
    try:
        for method in ("HEAD", "GET", "OPTIONS", "GET"):
            for target in (one for one in TARGETS if method != "OPTIONS" or one.startswith(INDEX)):
                connection.request(method, target)
                assert bool(connection.getresponse().read()) <= (method == "GET"), (method, target)
        connection.request("POST", LOCALIDADES, body=b"x" * 10_000)
        assert connection.getresponse().status == 405
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["POST", "PROPFIND"])
def test_other_method_is_405_with_allow(live_server: str, method: str) -> None:
    """tests/http/test_census.py has what is below /api/census."""
    for target in (LOCALIDADES, "/", "/docs", "/livez", "/readyz", "/openapi.json", "/problems", "/static/style.css"):
        answer = ask(live_server, target, method=method)
        assert (answer.status, answer.one("content-type")) == (405, PROBLEM), target
        assert "GET" in answer.one("allow"), target
    page = ask(live_server, LOCALIDADES, BROWSER, method=method)
    assert (page.status, page.one("content-type")) == (405, HTML)


def test_options_is_the_same_for_every_read_only_resource(live_server: str) -> None:
    known = without_date(ask(live_server, LOCALIDADES, method="OPTIONS"))  # a golden one
    for target in (INDEX, LOCALIDADES[:-1], f"{LOCALIDADES}?page=x", f"{INDEX}nothing/"):
        assert without_date(ask(live_server, target, method="OPTIONS")) == known, target


@pytest.mark.parametrize("method", ["FROB", "<script>"])
def test_malformed_method_is_400(live_server: str, method: str) -> None:
    answer = ask(live_server, LOCALIDADES, method=method)
    assert answer.status == 400
    assert method not in answer.text


# -- Paths


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/api/census/localidades?", "localidades/"),
        ("/api/census/localidades?a=%0D%0AX:%20y", "localidades/?a=%0D%0AX:%20y"),
        ("/api/census/localidades?//evil.example/", "localidades/?//evil.example/"),
        ('/api/census/localidades?a="<>', "localidades/?a=%22%3C%3E"),
    ],
)
def test_missing_trailing_slash_redirects_relatively(live_server: str, target: str, location: str) -> None:
    answer = ask(live_server, target, ("X-Forwarded-Host", "evil.example"))
    assert (answer.status, answer.one("location")) == (308, location)


def test_extra_trailing_slash_redirects_relatively(live_server: str) -> None:
    for page in ("docs", "redoc", "match", "map", "problems"):
        answer = ask(live_server, f"/{page}/?lang=es", ("X-Forwarded-Host", "evil.example"))
        assert (answer.status, answer.one("location")) == (308, f"../{page}?lang=es")
        assert ask(live_server, f"/{page}?lang=es", BROWSER).status == 200


def test_favicon_and_robots_txt_are_served(live_server: str) -> None:
    icon = ask(live_server, "/favicon.ico")
    assert icon.one("content-type") == "image/vnd.microsoft.icon"
    assert icon.body.startswith(b"\0\0\1\0\1\0\x20\x20")  # one image, of 32 by 32 pixels
    rules = RobotFileParser()
    rules.parse(ask(live_server, "/robots.txt").body.decode().splitlines())
    for target in ("/", LOCALIDADES, f"{LOCALIDADES}?page=2&format=api", f"{LOCALIDADES}10010001/", "/docs"):
        assert rules.can_fetch("a-crawler", target), target
    for target in (f"{LOCALIDADES}download/?format=csv", f"{LOCALIDADES}tiles/0/0/0.mvt", f"{INDEX}reconcile/"):
        assert not rules.can_fetch("a-crawler", target), target


@pytest.mark.parametrize("path", ["nothing", "localidades//", "/localidades/", "Localidades/", "localidades/%2e%2e/",
                                  "%00", "%FF%FE/", "..%2f..%2fetc/passwd"])  # fmt: skip
def test_unknown_path_is_404(live_server: str, path: str) -> None:
    assert_problem(ask(live_server, INDEX + path), 404)
