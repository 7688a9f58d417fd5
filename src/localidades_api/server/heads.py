"""Checks of a request's head: its size, the host that it names, and whether a body follows (RFC 9112 §3.2, §6.1)."""

import re
from functools import lru_cache

from localidades_api.errors import RequestError, StatusError
from localidades_api.http.headers import RawHeaders

MAX_TARGET = 8 * 1024  # bytes
MAX_HEAD = 16 * 1024
FRAMING = frozenset({b"content-length", b"transfer-encoding"})  # which say where a body ends
_VERSIONS = frozenset({"1.0", "1.1"})
_REQUEST_LINE = len("  HTTP/1.1\r\n\r\n")  # and the end of the head
_FIELD = len(": \r\n")
# RFC 9110 §7.2: a name, an IPv4 address or an IPv6 address in brackets, then an optional port; no userinfo.
_HOST = re.compile(rb"(?:\[[0-9A-Za-z:.~_%-]+\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
_MAX_HOST = 300  # bytes: up to 253 for the name (RFC 1035 §2.3.4), and the port
_END_OF_AUTHORITY = re.compile(rb"[/?#]")


def malformed_request() -> RequestError:
    """Return the error for bytes that can't be parsed as a request."""
    return RequestError("This is not a valid HTTP/1.1 request.")


def head_too_large() -> StatusError:
    """Return the error for a head of more bytes than are read."""
    return StatusError(431, "The request's first line and headers are larger than 16 KiB: leave out cookies.")


def check_head(method: bytes, target: bytes, version: str, fields: RawHeaders) -> None:
    """Raise RequestError for a head that is too large, or that another server might read differently."""
    if version not in _VERSIONS:
        raise malformed_request()
    sizes = (len(name) + len(value) + _FIELD for name, value in fields)
    if len(method) + len(target) + _REQUEST_LINE + sum(sizes) > MAX_HEAD:
        raise head_too_large()
    if target[:1] != b"/" and b"://" in target:
        _check_authority(target)
    hosts = [value for name, value in fields if name == b"host"]
    if (hosts or version == "1.1") and (len(hosts) != 1 or not _is_host(hosts[0])):
        raise RequestError("An HTTP/1.1 request needs exactly one Host header, with a name or an address.")
    codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
    if codings and codings != [b"chunked"]:
        raise RequestError("The only Transfer-Encoding that a request can have is chunked.")


def has_body(fields: RawHeaders) -> bool:
    """Return whether a body may follow a head."""
    framing = [(name, value) for name, value in fields if name in FRAMING]
    return bool(framing) and framing != [(b"content-length", b"0")]


def _check_authority(target: bytes) -> None:
    authority = _END_OF_AUTHORITY.split(target.partition(b"://")[2], maxsplit=1)[0]
    if not _is_host(authority):
        raise RequestError("The request target does not name a host.")


@lru_cache(maxsize=1024)
def _is_host(value: bytes) -> bool:
    return len(value) <= _MAX_HOST and _HOST.fullmatch(value) is not None
