"""Every row of contract/decisions.md, as a client sends it and sees it answered."""

import http.client
import json
import re
from collections.abc import Sequence
from urllib.parse import urljoin

import pytest

from tests.support.waiting import PATIENCE
from tests.support.wire import Answer, ask, send

LIST = "/api/census/localidades/"
INDEX = "/api/census/"
CANARY = "c4n4ry"
BROWSER = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8")
PROBLEM_MEMBERS = ["type", "title", "status", "detail"]


def assert_census(answer: Answer) -> None:
    """Check what every answer under /api/census/ carries."""
    assert answer.one("allow") == "GET"
    assert answer.one("access-control-allow-origin") == "*"
    assert answer.all("content-type") or not answer.body
    wants_html = "html" in "".join(answer.all("content-type")) or ".api." in "".join(answer.all("etag"))
    assert answer.one("vary") == ("Accept, Accept-Language" if wants_html else "Accept")


def assert_page(
    answer: Answer, kept: str = "max-age=60, stale-while-revalidate=600, stale-if-error=86400"
) -> dict[str, object]:
    assert answer.status == 200, answer.text
    assert_census(answer)
    assert answer.one("content-type") == "application/json"
    assert answer.one("vary") == "Accept"
    assert answer.one("cache-control") == f"public, {kept}"
    assert re.fullmatch(r'"2020-01\.json\.[0-9a-f]{12}"', answer.one("etag"))
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.one("last-modified"))
    assert answer.one("catalogue-release") == "2020-01"
    assert int(answer.one("content-length")) == len(answer.body)
    content: dict[str, object] = json.loads(answer.body)
    assert list(content) == ["quantity", "total_pages", "results"]
    return content


def assert_problem(answer: Answer, status: int) -> dict[str, object]:
    assert answer.status == status, answer.text
    assert_census(answer)
    assert answer.one("content-type") == "application/problem+json"
    assert answer.one("cache-control") == "no-store"
    assert not answer.all("etag")
    assert int(answer.one("content-length")) == len(answer.body)
    problem: dict[str, object] = json.loads(answer.body)
    assert list(problem)[:4] == PROBLEM_MEMBERS
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    assert "Traceback" not in answer.text
    return problem


def faults_of(problem: dict[str, object]) -> dict[str, str]:
    errors = problem["errors"]
    assert isinstance(errors, list)
    assert all(list(error) == ["parameter", "message"] and error["message"] for error in errors)
    return {error["parameter"]: error["message"] for error in errors}


def assert_html(answer: Answer, status: int) -> str:
    assert answer.status == status, answer.text
    assert_census(answer)
    assert answer.one("content-type") == "text/html; charset=utf-8"
    page = answer.body.decode()
    assert page.startswith("<!doctype html>")
    return page


# -- Requests: page


@pytest.mark.parametrize("query", ["", "?", "?page=1", "?&", "?page=%31", "?page=01", "?%70age=1", "?page=1&"])
def test_list_first_page_asked_in_any_spelling_is_page_one(live_server: str, query: str) -> None:
    content = assert_page(ask(live_server, LIST + query))
    assert content == assert_page(ask(live_server, LIST))
    assert content["quantity"] == 132
    assert content["total_pages"] == 3


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "00",
        "-1",
        "-0",
        "+1",
        "%2B1",
        "%201",
        "1%20",
        "1+",
        "%091",
        "1%0A",
        "%C2%A01",
        "1.0",
        "1_000",
        "1e3",
        "0x1",
        "1,2",
        "%D9%A1",
        "%EF%BC%91",
        "%C2%B2",
        "",
        "%22%22",
        "last",
        "null",
        "NaN",
        CANARY,
        "1;" + CANARY,
        f"%3Cscript%3E{CANARY}",
        "9" * 16,
        "9" * 17,
        "9" * 4299,
        "9" * 4300,
        "0" * 4299 + "1",
        "9" * 5000,
    ],
)
def test_list_page_that_is_no_page_number_is_422(live_server: str, value: str) -> None:
    answer = ask(live_server, f"{LIST}?page={value}")
    assert list(faults_of(assert_problem(answer, 422))) == ["page"]
    assert CANARY not in answer.text


@pytest.mark.parametrize("raw", [b"\xd9\xa1", b"\xff", b"\x00", b"1\x00", b" 1", b"1 2"])
def test_list_page_of_raw_bytes_is_refused(live_server: str, raw: bytes) -> None:
    received = send(
        live_server, b"GET " + LIST.encode() + b"?page=" + raw + b" HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
    )
    assert received.split()[1] in {b"400", b"422"}


@pytest.mark.parametrize("page", ["4", "5", "6088", "2147483648", "9007199254740991", "04"])
def test_list_page_past_the_last_is_404_with_total_pages(live_server: str, page: str) -> None:
    problem = assert_problem(ask(live_server, f"{LIST}?page={page}"), 404)
    assert problem["detail"] == "Invalid page."
    assert problem["total_pages"] == 3
    assert list(problem) == [*PROBLEM_MEMBERS, "total_pages"]


# -- Requests: format and Accept


@pytest.mark.parametrize("accept", ["application/json", "text/html", "image/png", "garbage", "*/*;q=0"])
def test_list_format_wins_over_accept(live_server: str, accept: str) -> None:
    assert_page(ask(live_server, f"{LIST}?format=json", ("Accept", accept)))
    assert "<table" in assert_html(ask(live_server, f"{LIST}?format=api", ("Accept", accept)), 200)


@pytest.mark.parametrize("value", ["", "JSON", "html", "xml", "json%20", "json%0A", "api.json", CANARY, "%C3%B1"])
def test_list_unknown_format_is_422_naming_the_known_ones(live_server: str, value: str) -> None:
    answer = ask(live_server, f"{LIST}?format={value}")
    faults = faults_of(assert_problem(answer, 422))
    assert list(faults) == ["format"]
    assert faults["format"].endswith("This parameter takes: json, api.")
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("",),
        ("*/*",),
        ("*",),
        ("application/json",),
        ("APPLICATION/JSON",),
        ("application/*",),
        ("application/json; charset=utf-8",),
        ("text/html;q=0.1, application/json;q=0.2",),
        ("text/*;q=0.5, */*",),
        ("text/html;q=0, */*",),
        ("text/html;q=0.9", "application/json"),
        ("application/json, text/html",),
    ],
)
def test_list_accept_that_prefers_json_is_json(live_server: str, lines: Sequence[str]) -> None:
    assert_page(ask(live_server, LIST, *(("Accept", line) for line in lines)))


@pytest.mark.parametrize(
    "lines",
    [
        (BROWSER[1],),
        ("text/html",),
        ("text/*",),
        ("Text/HTML;Q=0.5",),
        ("text/html, */*;q=0.1",),
        ("application/json;q=0.5, text/html;q=0.6",),
        ("application/json;q=0, */*",),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",),
        ("application/xml", "text/html"),
        ('text/html;title="a, b"',),
    ],
)
def test_list_accept_that_prefers_html_is_html(live_server: str, lines: Sequence[str]) -> None:
    assert_html(ask(live_server, LIST, *(("Accept", line) for line in lines)), 200)


@pytest.mark.parametrize(
    "accept",
    [
        "image/png",
        "application/xml",
        "application/problem+json",
        "*/*;q=0",
        "application/json;q=0, text/html;q=0.000",
        "application/json;q=2",
        "application/json;q=-1",
        "application/json;q=abc",
        "application/json;q=",
        "json",
        "text/",
        "/json",
        "*/json",
        "application/json text/html",
        f"<{CANARY}>",
        f"{CANARY}/{CANARY}",
        "\xf1/\xf1",
        '"',
        ",",
        "a" * 5000,
    ],
)
def test_list_accept_that_allows_nothing_is_406_naming_what_there_is(live_server: str, accept: str) -> None:
    answer = ask(live_server, LIST, ("Accept", accept))
    problem = assert_problem(answer, 406)
    assert problem["available"] == ["application/json", "text/html"]
    assert CANARY not in answer.text


# -- Requests: unknown, repeated and undecodable parameters


@pytest.mark.parametrize("path", [INDEX, LIST])
@pytest.mark.parametrize(
    ("query", "named"),
    [
        (f"pge={CANARY}", "pge"),
        ("Page=1", "Page"),
        ("municipio=1001", "municipio"),
        ("limit=10", "limit"),
        ("format[]=json", "(a name that is not plain ASCII)"),
        (f"%3Cscript%3E{CANARY}=1", "(a name that is not plain ASCII)"),
        ("%C3%B1=1", "(a name that is not plain ASCII)"),
        ("=1", "(a name that is not plain ASCII)"),
        (CANARY * 8 + "=1", "(a name that is not plain ASCII)"),
        ("amp;x=1", "(a name that is not plain ASCII)"),
        ("format=json&format=json", "format"),
        ("format=json&format=api", "format"),
        ("release=2020-01&%72elease=2020-01", "release"),
        (f"a={CANARY}&a={CANARY}", "a"),
        ("a&a", "a"),
    ],
)
def test_query_unknown_or_repeated_parameter_is_422_naming_it(
    live_server: str, path: str, query: str, named: str
) -> None:
    answer = ask(live_server, f"{path}?{query}")
    assert list(faults_of(assert_problem(answer, 422))) == [named]
    assert CANARY not in answer.text


def test_list_repeated_page_is_422_naming_it(live_server: str) -> None:
    assert list(faults_of(assert_problem(ask(live_server, f"{LIST}?page=1&page=2"), 422))) == ["page"]


def test_list_several_faults_are_all_named(live_server: str) -> None:
    faults = faults_of(assert_problem(ask(live_server, f"{LIST}?page=x&format=y&release=/&z=1"), 422))
    assert sorted(faults) == ["format", "page", "release", "z"]


def test_index_page_parameter_is_422(live_server: str) -> None:
    assert list(faults_of(assert_problem(ask(live_server, f"{INDEX}?page=1"), 422))) == ["page"]


@pytest.mark.parametrize("path", [INDEX, LIST])
@pytest.mark.parametrize(
    "query",
    [
        "page=%00",
        "%00",
        "release=2020-01%00",
        f"release={CANARY}%00",
        "page=%FF",
        "release=%C3",
        "format=%ED%A0%80",
        "%80=1",
        "release=%C0%80",
        "release=%F5%80%80%80",
    ],
)
def test_query_undecodable_or_with_nul_is_422(live_server: str, path: str, query: str) -> None:
    answer = ask(live_server, f"{path}?{query}")
    assert list(faults_of(assert_problem(answer, 422))) == ["query"]
    assert CANARY not in answer.text


@pytest.mark.parametrize("query", ["page=%", "page=%1", "page=%G1", "page=%u0031", "format=json%"])
def test_query_broken_percent_encoding_is_422(live_server: str, query: str) -> None:
    assert_problem(ask(live_server, f"{LIST}?{query}"), 422)


# -- Requests: release


def test_release_by_name_is_the_same_page(live_server: str) -> None:
    named, current = ask(live_server, f"{LIST}?release=2020-01"), ask(live_server, LIST)
    a_day = "max-age=86400, stale-while-revalidate=86400, stale-if-error=86400"
    assert assert_page(named, a_day) == assert_page(current)
    assert named.one("etag") == current.one("etag")


@pytest.mark.parametrize("path", [INDEX, LIST])
@pytest.mark.parametrize("name", ["2018-09", "demo", CANARY, "2020-01.", "x" * 64])
def test_release_unknown_is_404(live_server: str, path: str, name: str) -> None:
    answer = ask(live_server, f"{path}?release={name}")
    assert list(assert_problem(answer, 404)) == PROBLEM_MEMBERS
    assert CANARY not in answer.text


@pytest.mark.parametrize("path", [INDEX, LIST])
@pytest.mark.parametrize(
    "name", ["", ".", "-x", "a%20b", "a%2Fb", "..%2F", "%27OR%201=1--", f"%3C{CANARY}%3E", "a%0A", "%C3%B1", "x" * 65]
)
def test_release_ill_formed_is_422(live_server: str, path: str, name: str) -> None:
    answer = ask(live_server, f"{path}?release={name}")
    assert list(faults_of(assert_problem(answer, 422))) == ["release"]
    assert CANARY not in answer.text


# -- Requests: methods


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (LIST, 200),
        (f"{LIST}?page=3", 200),
        (f"{LIST}?format=api", 200),
        (INDEX, 200),
        (f"{INDEX}?format=api", 200),
        (f"{LIST}?page=9", 404),
        (f"{LIST}?page=9&format=api", 404),
        (f"{LIST}?page=x", 422),
        (f"{INDEX}nothing", 404),
        (LIST[:-1], 308),
    ],
)
def test_head_is_as_get_without_the_body(live_server: str, target: str, status: int) -> None:
    get, head = ask(live_server, target), ask(live_server, target, method="HEAD")
    assert (get.status, head.status) == (status, status)
    assert head.body == b""
    assert [pair for pair in head.headers if pair[0] != "date"] == [pair for pair in get.headers if pair[0] != "date"]
    assert int(head.one("content-length")) == len(get.body)


def test_head_unacceptable_is_406_without_a_body(live_server: str) -> None:
    answer = ask(live_server, LIST, ("Accept", "image/png"), method="HEAD")
    assert (answer.status, answer.body) == (406, b"")
    assert_census(answer)


@pytest.mark.parametrize("target", [INDEX, LIST, f"{LIST}?page=x", LIST[:-1], f"{INDEX}nothing/"])
def test_options_is_204_with_allow_get(live_server: str, target: str) -> None:
    answer = ask(live_server, target, method="OPTIONS")
    assert (answer.status, answer.body) == (204, b"")
    assert_census(answer)
    assert not answer.all("content-length")


@pytest.mark.parametrize("asked", ["GET", "HEAD"])
def test_options_preflight_is_answered_as_cors_asks(live_server: str, asked: str) -> None:
    answer = ask(
        live_server,
        LIST,
        ("Origin", f"https://{CANARY}.example"),
        ("Access-Control-Request-Method", asked),
        ("Access-Control-Request-Headers", f"if-none-match, x-{CANARY}"),
        method="OPTIONS",
    )
    assert answer.status == 204
    assert_census(answer)
    assert asked in answer.one("access-control-allow-methods").split(", ")
    assert answer.one("access-control-allow-headers") == "*"
    assert int(answer.one("access-control-max-age")) > 0
    assert not answer.all("access-control-allow-credentials")
    assert CANARY not in answer.text


@pytest.mark.parametrize("target", [LIST, f"{LIST}?page=9", f"{LIST}?page=x", LIST[:-1]])
def test_get_from_another_origin_may_read_answer_and_headers(live_server: str, target: str) -> None:
    answer = ask(live_server, target, ("Origin", f"https://{CANARY}.example"), ("Cookie", "a=b"))
    assert_census(answer)
    exposed = answer.one("access-control-expose-headers").split(", ")
    assert {"Link", "ETag", "Catalogue-Release", "Retry-After"} <= set(exposed)
    assert CANARY not in answer.text


@pytest.mark.parametrize("target", [INDEX, LIST, LIST[:-1], f"{INDEX}nothing/", f"{LIST}?page=x"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "PURGE", "MKCOL"])
def test_method_other_than_get_is_405(live_server: str, target: str, method: str) -> None:
    answer = ask(live_server, target, ("X-Canary", CANARY), method=method)
    assert list(assert_problem(answer, 405)) == PROBLEM_MEMBERS
    assert CANARY not in answer.text


def test_method_post_with_a_body_is_405_and_the_connection_stays_usable(live_server: str) -> None:
    answer = ask(live_server, LIST, ("Content-Type", "application/json"), method="POST", body=b'{"c4n4ry":1}' * 100)
    assert_problem(answer, 405)
    assert CANARY not in answer.text
    connection = http.client.HTTPConnection(live_server.removeprefix("http://"), timeout=PATIENCE)
    try:
        for method, status in (
            ("POST", 405),
            ("GET", 200),
            ("HEAD", 200),
            ("GET", 200),
            ("OPTIONS", 204),
            ("GET", 200),
        ):
            connection.request(method, LIST, body=b"x" * 10_000 if method == "POST" else None)
            response = connection.getresponse()
            response.read()
            assert response.status == status
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["FROB", "get", "G3T", "GETGET", "<script>"])
def test_method_that_the_server_cannot_parse_is_refused_as_400(live_server: str, method: str) -> None:
    answer = ask(live_server, LIST, method=method)
    assert answer.status == 400
    assert method not in answer.text


# -- Requests: paths


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/api/census", "census/"),
        ("/api/census/localidades", "localidades/"),
        ("/api/census/localidades?page=2&format=api", "localidades/?page=2&format=api"),
        ("/api/census/localidades?page=%32", "localidades/?page=%32"),
        ("/api/census/localidades?a=%0D%0AX:%20y", "localidades/?a=%0D%0AX:%20y"),
        ("/api/census/localidades?//evil.example/", "localidades/?//evil.example/"),
        ('/api/census/localidades?a="<>', "localidades/?a=%22%3C%3E"),
        ("/api/census/localidades?", "localidades/"),
        (f"/api/census?{CANARY}", f"census/?{CANARY}"),
    ],
)
def test_path_without_trailing_slash_is_308_with_a_relative_location(
    live_server: str, target: str, location: str
) -> None:
    answer = ask(live_server, target, ("X-Forwarded-Host", "evil.example"))
    assert answer.status == 308
    assert answer.one("allow") == "GET"
    assert answer.one("vary") == "Accept"
    assert answer.one("location") == location
    assert "test" not in answer.one("location")
    path, _, query = target.partition("?")
    resolved = urljoin(f"http://host{target}", location)
    assert resolved.startswith(f"http://host{path}/")
    if "<" not in query:
        assert resolved.partition("?")[2] == query


@pytest.mark.parametrize(
    "path",
    [
        "nothing",
        "nothing/",
        f"{CANARY}/",
        "localidades//",
        "/localidades/",
        "Localidades/",
        "localidades/%2e%2e/",
        "%00",
        "%FF%FE/",
        "..%2f..%2fetc/passwd",
        f"%0d%0aSet-Cookie:{CANARY}/",
    ],
)
def test_path_unknown_under_the_census_is_404(live_server: str, path: str) -> None:
    answer = ask(live_server, INDEX + path)
    assert list(assert_problem(answer, 404)) == PROBLEM_MEMBERS
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/", "/api/censusx/", "/nothing", "//api/census/", "/livez", "/docs"]
)
def test_path_outside_the_census_answers_without_fault(live_server: str, path: str) -> None:
    assert ask(live_server, path).status < 500


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/docs", "/openapi.json", "/static/style.css", "/"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "PROPFIND"])
def test_method_other_than_get_outside_the_census_is_405_with_allow(live_server: str, path: str, method: str) -> None:
    answer = ask(live_server, path, method=method)
    assert answer.status == 405
    assert "GET" in answer.one("allow")
    assert answer.one("content-type") == "application/problem+json"


# -- Answers


def test_list_json_is_to_the_letter(live_server: str) -> None:
    pages = []
    for number in (1, 2, 3):
        answer = ask(live_server, f"{LIST}?page={number}")
        content = assert_page(answer)
        assert answer.body == json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        assert (content["quantity"], content["total_pages"]) == (132, 3)
        assert isinstance(content["results"], list)
        pages.append(content["results"])
    assert [len(page) for page in pages] == [50, 50, 32]
    records = [record for page in pages for record in page]
    assert all(list(record) == ["id", "municipio_id", "clave", "nombre"] for record in records)
    assert len({record["id"] for record in records}) == 132
    assert records == sorted(records, key=lambda record: (record["clave"], record["id"]))
    assert all(re.fullmatch(r"\d{4}", record["clave"]) for record in records)
    assert all(record["id"] // 10_000 == record["municipio_id"] for record in records)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, deflate, br, zstd", "*"])
def test_list_json_is_never_compressed(live_server: str, coding: str) -> None:
    answer = ask(live_server, LIST, ("Accept-Encoding", coding))
    assert_page(answer)
    assert not answer.all("content-encoding")


def test_list_links_are_first_prev_next_last_pinned_to_the_release(live_server: str) -> None:
    def link(page: int, relation: str) -> str:
        return f'<{LIST}?page={page}&format=json&release=2020-01>; rel="{relation}"'

    expected = {
        1: [link(1, "first"), link(2, "next"), link(3, "last")],
        2: [link(1, "first"), link(1, "prev"), link(3, "next"), link(3, "last")],
        3: [link(1, "first"), link(2, "prev"), link(3, "last")],
    }
    for page, links in expected.items():
        assert ask(live_server, f"{LIST}?page={page}").one("link") == ", ".join(links)


def test_list_links_of_html_stay_html(live_server: str) -> None:
    answer = ask(live_server, LIST, BROWSER)
    assert f'<{LIST}?page=2&format=api&release=2020-01>; rel="next"' in answer.one("link")


@pytest.mark.parametrize("target", [LIST, f"{LIST}?page=2", INDEX, f"{LIST}?format=api", f"{INDEX}?format=api"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_if_none_match_with_the_etag_is_304_with_the_headers_of_200(live_server: str, target: str, method: str) -> None:
    first = ask(live_server, target)
    again = ask(live_server, target, ("If-None-Match", first.one("etag")), method=method)
    assert (again.status, again.body) == (304, b"")
    assert_census(again)
    for name in ("etag", "last-modified", "cache-control", "catalogue-release", "vary", "allow"):
        assert again.one(name) == first.one(name)
    assert again.all("link") == first.all("link")


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{LIST}?page=4&format=api", 404),
        (f"{LIST}?page=x&format=api", 422),
        (f"{LIST}?release=none&format=api", 404),
        (f"{LIST}?format=api&x=1", 422),
        (f"{LIST}?format=api&page=%00", 422),
        (f"{INDEX}nothing?format=api", 404),
    ],
)
def test_error_is_html_where_format_asks_for_it(live_server: str, target: str, status: int) -> None:
    assert str(status) in assert_html(ask(live_server, target), status)


@pytest.mark.parametrize(
    ("target", "status"),
    [(f"{LIST}?page=4", 404), (f"{LIST}?page={CANARY}", 422), (f"{LIST}?format={CANARY}", 422), (f"{INDEX}x", 404)],
)
def test_error_is_html_where_a_browser_asks(live_server: str, target: str, status: int) -> None:
    page = assert_html(ask(live_server, target, BROWSER), status)
    assert CANARY not in page


def test_error_405_is_html_where_html_is_asked(live_server: str) -> None:
    assert_html(ask(live_server, LIST, BROWSER, method="DELETE"), 405)


def test_request_head_too_large_is_refused_without_fault(live_server: str) -> None:
    received = send(
        live_server,
        b"GET " + LIST.encode() + b"?page=" + b"9" * 200_000 + b" HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
    )
    assert received.split()[1] in {b"400", b"414", b"422", b"431"}
