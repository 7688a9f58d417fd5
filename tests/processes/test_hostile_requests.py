"""Hostile input in every place that takes any, over raw sockets: no fault of the server, and none of it comes back."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import pytest

from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.catalogue import Place, write_catalogue
from tests.support.hostile import INPUTS, decoded, encoded
from tests.support.postgres import new_database
from tests.support.wire import Live, environment, run, send, serving

LIST = "/api/census/localidades/"
PATHS = ["/{}", "/api/{}", "/api/census/{}/", LIST + "{}/", LIST + "{}", "/api/census/estados/{}/", "/static/{}",
         "/api/census/municipios/{}/", "/api/census/releases/{}/changes/?since=2020-01", "/docs/{}"]  # fmt: skip
HEADERS = ["Host", "Accept", "Accept-Language", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range",
           "Origin", "Referer", "User-Agent", "Cookie", "Authorization", "Content-Type", "X-Forwarded-For",
           "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "X-Request-ID", "Prefer",
           "X-HTTP-Method-Override", "X-Original-URL", "Traceparent"]  # fmt: skip

_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,40}")
ROWS = b"lugar,mpio,nombre\r\nLugar 1,,Lugar 1\r\n"
_SHORT = 3  # bytes, which an answer may have by chance
_TELLING = re.compile(rb"[^A-Za-z0-9 .,:+-]")  # so may it what has nothing else
# One relative address, whose query is kept as it was sent, or several with their relations: nothing in them ends the
# address, the header or the line.
_ADDRESSES = re.compile(
    rb'(?!//|[a-z]+:)[A-Za-z0-9._~%/-]*(\?[!-~\x80-\xff]*)?|(</[A-Za-z0-9._~%/?=&+-]*>; rel="[a-z]+"(, )?)+'
)


class Sent(NamedTuple):
    """A request, and what in it is hostile."""

    place: str
    data: bytes
    request: bytes


def request_of(place: str, data: bytes, target: bytes, *headers: bytes, method: bytes = b"GET") -> Sent:
    host = () if place == "header Host" else (b"Host: test",)
    body = ROWS if method == b"POST" else b""
    framing = (b"Content-Type: text/csv", b"Content-Length: %d" % len(body)) if body else ()
    lines = [method + b" " + target + b" HTTP/1.1", *host, b"Connection: close", *framing, *headers, b"", body]
    return Sent(place, data, b"\r\n".join(lines))


def parameters() -> Iterator[tuple[str, str, bytes, bytes]]:
    """Return the path, the name of a parameter, a target that lacks but its value, and the method."""
    document = create_app(Settings()).openapi()
    operations = [(path, *one) for path, item in document["paths"].items() for one in item.items()]
    for path, method, operation in operations:
        given = operation.get("parameters", [])
        known = {one["name"]: one["example"] for one in given if one["in"] == "path"} | {"name": "2020-01"}
        taken = [one for one in given if one["in"] == "query"]
        for one in taken:
            needed = {other["name"]: other["example"] for other in taken if other["required"] and other is not one}
            others = "".join(f"{name}={value}&" for name, value in needed.items())
            target = f"{path.format_map(known)}?{others}{one['name']}="
            yield path, one["name"], target.encode(), method.upper().encode()


def in_parameters() -> Iterator[Sent]:
    for path, name, target, method in parameters():
        for data in INPUTS:
            yield request_of(f"{path} {name}", data, target + encoded(data), method=method)
    for name, (target, method) in {name: (target, method) for _, name, target, method in parameters()}.items():
        for data in INPUTS:
            yield request_of(f"{name}, decoded", data, target + decoded(data), method=method)
            yield request_of(f"{name}, as a page", data, target + encoded(data) + b"&format=api", method=method)


def in_names_of_parameters() -> Iterator[Sent]:
    for data in INPUTS:
        if not _PLAIN_NAME.fullmatch(data):  # a plain name is shown, so that one finds what is mistyped
            for form in (encoded(data), decoded(data)):
                yield request_of("name", data, LIST.encode() + b"?" + form + b"=1")
                yield request_of("name, as a page", data, LIST.encode() + b"?format=api&" + form + b"=1")


def in_paths() -> Iterator[Sent]:
    for path in PATHS:
        before, _, after = path.encode().partition(b"{}")
        for data in INPUTS:
            yield request_of(path, data, before + encoded(data) + after)
            yield request_of(f"{path}, decoded", data, before + decoded(data) + after)


def in_headers() -> Iterator[Sent]:
    for name in HEADERS:
        header = name.encode() + b": "
        for data in INPUTS:
            yield request_of(f"header {name}", data, LIST.encode() + b"?page=2", header + data)
            yield request_of(f"header {name}", data, b"/api/census/?format=api", header + encoded(data))


@pytest.fixture(scope="module")
def live(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Lend a server of places with harmless names, which gives the database time: this machine may be busy."""
    places = [Place(f"01001{number:04d}", f"Lugar {number}") for number in range(1, 133)]
    path = write_catalogue(tmp_path_factory.mktemp("plain") / "catun_localidad_2020-01.csv", places)
    with new_database(server, migrated) as url:
        assert run("import", str(path), env=environment(url)).returncode == 0
        with serving(url, LOCALIDADES_DATABASE_TIMEOUT="30") as live:
            yield live


# 53 has no divisor in common with the 232 inputs: each place gets its own share of them, and all places get all.
@pytest.mark.parametrize("each", [53, pytest.param(1, marks=[pytest.mark.tail, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("sent", [in_parameters, in_names_of_parameters, in_paths, in_headers])
def test_hostile_input_makes_no_fault_and_does_not_come_back(
    live: Live, sent: Callable[[], Iterator[Sent]], each: int, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: Counter[int] = Counter()
    faults = []
    with ThreadPoolExecutor(4) as pool:
        for one, answer in pool.map(lambda one: (one, send(live.base, one.request)), islice(sent(), 0, None, each)):
            status = status_of(answer)
            statuses[status] += 1
            if not 200 <= status < 500 or came_back(one, answer):
                faults.append((one.place, one.data[:60], status, answer[:1000]))
    with capsys.disabled():
        told = ", ".join(f"{count:,} answered {status}" for status, count in sorted(statuses.items()))
        print(f"\n{statuses.total():,} requests with hostile input {sent.__name__.replace('_', ' ')}: {told}")  # noqa: T201
    assert faults == []
    log = live.output.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def came_back(one: Sent, answer: bytes) -> bool:
    """Tell whether an answer repeats the input as it is.

    Addresses in `Link` and `Location` may, escaped; a page may show what was searched for, as text.
    """
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    addresses = [line.partition(b": ")[2] for line in lines if line.startswith((b"link: ", b"location: "))]
    if not all(_ADDRESSES.fullmatch(value) for value in addresses):
        return True
    head = b"\n".join(line for line in lines if not line.startswith((b"link: ", b"location: ")))
    if any(mark in head for mark in (b"X-Injected", b"a=b", b"evil.example")):
        return True
    if len(one.data) <= _SHORT:
        return False
    if b"text/html" in head:
        return any(mark in one.data for mark in (b"<", b'"', b"'")) and one.data in body
    return bool(_TELLING.search(one.data)) and one.data in head + body
