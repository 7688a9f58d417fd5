"""Where a request ends and whom it is for: what its head has to say, and what ends the connection.

No request needs a body, so none is read, and nobody has to agree with a proxy on where one ends: a request that
announces a body is the last of its connection. That leaves nothing to smuggle a second request in.
"""

import re
from functools import lru_cache

from localidades_api.errors import RequestError

_VERSIONS = frozenset({"1.0", "1.1"})
_WATCHED = frozenset({b"host", b"content-length", b"transfer-encoding"})
# RFC 9110 §7.2: a name, an IPv4 address or an IPv6 address in brackets, and a port; without userinfo.
_HOST = re.compile(rb"(?:\[[0-9A-Za-z:.~_%-]+\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
_END_OF_AUTHORITY = re.compile(rb"[/?#]")


class NothingFollowsError(Exception):
    """Stops the parser behind the head of the last request that is read."""


def malformed() -> RequestError:
    """Return the error of what can't be read as a request."""
    return RequestError("This is no request of HTTP/1.1.")


def announces_body(version: str, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Check a head (RFC 9112 §3.2 and §6.1), and tell whether something may follow it that is no request.

    Raises RequestError. Host is made that of a target in absolute form, which counts in its place (§3.2.2).
    """
    watched = [field for field in headers if field[0] in _WATCHED]
    is_plain = len(watched) == 1 and watched[0][0] == b"host" and _is_host(watched[0][1])
    if not is_plain or version != "1.1" or not target.startswith(b"/"):
        return _announces_body(version, method, target, headers)
    return method == b"CONNECT"


def _announces_body(version: str, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Look at what few requests have."""
    if version not in _VERSIONS:
        raise malformed()
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or (not hosts and version == "1.1") or not all(map(_is_host, hosts)):
        raise RequestError("A request of HTTP/1.1 has one header Host, with a name or an address.")
    if not target.startswith(b"/") and b"://" in target:
        _take_host(target, headers)
    codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    if codings and codings != [b"chunked"]:
        raise RequestError("A request has no Transfer-Encoding but chunked.")
    lengths = [value for name, value in headers if name == b"content-length"]
    return bool(codings) or lengths not in ([], [b"0"]) or method == b"CONNECT"


@lru_cache(maxsize=256)
def _is_host(value: bytes) -> bool:
    return _HOST.fullmatch(value) is not None


def _take_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    authority = _END_OF_AUTHORITY.split(target.partition(b"://")[2], maxsplit=1)[0]
    if not _is_host(authority):
        raise RequestError("The request's target names no host.")
    headers[:] = [(b"host", authority), *(field for field in headers if field[0] != b"host")]
