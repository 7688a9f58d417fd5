"""The parts of the contract that only show on a connection: raw bytes, escapes, methods, HEAD, persistence.

tests/http/test_contract.py has the whole responses; test_bad_clients.py the limits on requests.
"""

import http.client
import json

import pytest

from tests.http.test_contract import INDEX, assert_contract, read_requests, section
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ask, send, serving_with_uvicorn


def test_responses_of_both_servers_equal_the_golden_file(live_server: str, server: str, seeded: str) -> None:
    with (
        new_database(server, seeded) as url,
        serving_with_uvicorn(
            url, "--factory", "--no-server-header", application="localidades_api.app:create_app"
        ) as live,
    ):
        for base in (live_server, live.base):
            sections = []
            for request in read_requests("wire"):
                answer = ask(base, request.target, *request.read()[0].items(), method=request.method)
                sections.append(section(request, answer.status, answer.headers, answer.body))
                assert answer.one("date")
            assert_contract("wire", sections)


@pytest.mark.parametrize("raw", [b"\xd9\xa1", b"\xff", b"\x00", b" 1"])
def test_query_with_raw_bytes_is_refused(live_server: str, raw: bytes) -> None:
    target = LOCALIDADES.encode() + b"?page=" + raw
    received = send(live_server, b"GET " + target + b" HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
    assert received.split()[1] in {b"400", b"422"}


TARGETS = (
    "/", "/docs", "/openapi.json", "/problems?format=api", "/livez", "/static/style.css", "/static/nothing", "/nothing",
    INDEX, LOCALIDADES, LOCALIDADES[:-1], f"{LOCALIDADES}?format=api", f"{LOCALIDADES}?page=99", f"{LOCALIDADES}?x",
    f"{LOCALIDADES}10010001/", f"{LOCALIDADES}download/",
)  # fmt: skip


def test_head_has_the_headers_of_get(live_server: str) -> None:
    of_the_body = ("transfer-encoding", "chunked")  # of a file, whose length is unknown
    for target in TARGETS:
        got, head = (ask(live_server, target, method=method) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (got.status, b""), target
        kept = [header for header in got.headers if header[0] != "date" and header != of_the_body]
        assert [header for header in head.headers if header[0] != "date"] == kept, target
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


@pytest.mark.parametrize("method", ["FROB", "<script>"])
def test_malformed_method_is_400(live_server: str, method: str) -> None:
    answer = ask(live_server, LOCALIDADES, method=method)
    assert (answer.status, method in answer.text) == (400, False)


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/api/census/localidades?", "localidades/"),
        ("/api/census/localidades?a=%0D%0AX:%20y", "localidades/?a=%0D%0AX:%20y"),
        ("/api/census/localidades?//evil.example/", "localidades/?//evil.example/"),
        ('/api/census/localidades?a="<>', "localidades/?a=%22%3C%3E"),
        ("/docs/?lang=es", "../docs?lang=es"),
        ("/match/?lang=es", "../match?lang=es"),
    ],
)
def test_slash_redirects_relatively(live_server: str, target: str, location: str) -> None:
    answer = ask(live_server, target, ("X-Forwarded-Host", "evil.example"))
    assert (answer.status, answer.one("location")) == (308, location)


@pytest.mark.parametrize("path", ["nothing", "localidades//", "/localidades/", "Localidades/", "localidades/%2e%2e/",
                                  "%00", "%FF%FE/", "..%2f..%2fetc/passwd"])  # fmt: skip
def test_unknown_path_is_404(live_server: str, path: str) -> None:
    answer = ask(live_server, INDEX + path)
    assert (answer.status, answer.one("content-type")) == (404, "application/problem+json")
    assert json.loads(answer.body)["status"] == 404
