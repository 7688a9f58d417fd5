"""HEAD: what GET answers, without the body, over a real connection."""

import http.client

import pytest

from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, Answer, ask

NOT_COMPARED = {"date", "transfer-encoding"}  # of its time; of the body
TARGETS = [
    "/", "/docs", "/redoc", "/openapi.json", "/problems", "/problems?format=api", "/livez",
    "/readyz", "/metrics", "/static/style.css", "/static-swagger-ui/swagger-ui.css", "/static/nothing", "/nothing",
    "/problems?x=1", "/api/census/", LOCALIDADES, f"{LOCALIDADES}?format=api", f"{LOCALIDADES}?page=99",
    f"{LOCALIDADES}download/", "/api/census/x",
]  # fmt: skip
CHANGING = {"/readyz", "/metrics"}  # their length is another at each look


def headers_of(answer: Answer, target: str) -> dict[str, str]:
    changing = NOT_COMPARED | ({"content-length"} if target in CHANGING else set())
    return {name: value for name, value in answer.headers if name not in changing}


@pytest.mark.parametrize("target", TARGETS)
def test_head_is_get_without_the_body(live_server: str, target: str) -> None:
    got, head = ask(live_server, target), ask(live_server, target, method="HEAD")
    assert (head.status, head.body) == (got.status, b"")
    assert headers_of(head, target) == headers_of(got, target)
    if got.body and target not in CHANGING and got.all("content-length"):
        assert int(head.one("content-length")) == len(got.body)


def test_connection_goes_on_after_a_head(live_server: str) -> None:
    connection = http.client.HTTPConnection(live_server.removeprefix("http://"), timeout=PATIENCE)
    try:
        for method in ("HEAD", "GET") * 2:
            for target in TARGETS:
                connection.request(method, target)
                response = connection.getresponse()
                assert bool(response.read()) <= (method == "GET"), target
                assert response.status != 405, target
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("target", ["/", "/docs", "/livez", "/problems", "/static/style.css"])
def test_other_methods_are_refused(live_server: str, target: str, method: str) -> None:
    assert ask(live_server, target, method=method).status == 405
