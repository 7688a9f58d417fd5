"""Checks the head of a request: the host that it names, and where the request ends.

A request that announces a body is the last on its connection, whether or not the resource reads the body. A proxy and
the server then can't disagree on where a body ends, and no second request can be smuggled inside one.
"""

import re
from functools import lru_cache

import httptools

from localidades_api.errors import RequestError

_VERSIONS = frozenset({"1.0", "1.1"})
_CHECKED = frozenset({b"host", b"content-length", b"transfer-encoding"})
# RFC 9110 §7.2: a name, an IPv4 address or an IPv6 address in brackets, then an optional port; no userinfo.
_HOST = re.compile(rb"(?:\[[0-9A-Za-z:.~_%-]+\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
_MAX_HOST = 300  # bytes: up to 253 for the name (RFC 1035 §2.3.4), and the port
_END_OF_AUTHORITY = re.compile(rb"[/?#]")


class NothingFollowsError(Exception):
    """Stops the parser after the head of a connection's last request."""


def malformed() -> RequestError:
    """Return the error for bytes that can't be parsed as a request."""
    return RequestError("This is not a valid HTTP/1.1 request.")


class HeadCheck:
    """Checks the heads of one connection's requests (RFC 9112 §3.2 and §6.1).

    The host has to be valid, but is not used here. Most clients that keep a connection open send the same fields again
    and again, so fields that were sound in the last HTTP/1.1 request are only compared.
    """

    def __init__(self) -> None:
        self._sound: list[tuple[bytes, bytes]] | None = None

    def announces_body(
        self, parser: httptools.HttpRequestParser, target: bytes, headers: list[tuple[bytes, bytes]]
    ) -> bool:
        """Check a head, and return whether it may be followed by anything but a request; raise RequestError."""
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise malformed()
        if target[:1] != b"/" and b"://" in target:
            _check_authority(target)
        if headers != self._sound:
            if _announce_body(headers, needs_host=version == "1.1"):
                return True
            if version == "1.1":
                self._sound = headers.copy()  # whoever handles the request may change its own
        return parser.get_method() == b"CONNECT"


def _announce_body(headers: list[tuple[bytes, bytes]], *, needs_host: bool) -> bool:
    hosts, framing = [], []
    for name, value in headers:  # a plain loop, for speed: every request runs it
        if name in _CHECKED:
            if name == b"host":
                hosts.append(value)
            else:
                framing.append((name, value.lower()))
    if (hosts or needs_host) and (len(hosts) != 1 or not _is_host(hosts[0])):
        raise RequestError("An HTTP/1.1 request needs exactly one Host header, with a name or an address.")
    return bool(framing) and _frames_body(framing)


def _frames_body(framing: list[tuple[bytes, bytes]]) -> bool:
    codings = [value for name, value in framing if name == b"transfer-encoding"]
    if codings and codings != [b"chunked"]:
        raise RequestError("The only Transfer-Encoding that a request can have is chunked.")
    return framing != [(b"content-length", b"0")]


def _is_host(value: bytes) -> bool:
    return len(value) <= _MAX_HOST and _matches_host(value)


@lru_cache(maxsize=1024)
def _matches_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def _check_authority(target: bytes) -> None:
    authority = _END_OF_AUTHORITY.split(target.partition(b"://")[2], maxsplit=1)[0]
    if not _is_host(authority):
        raise RequestError("The request target does not name a host.")
