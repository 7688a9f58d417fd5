"""Requests that name another host are refused, where the settings say which names are the service's own."""

from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Receive, Scope, Send

from localidades_api.errors import UntrustedHostError
from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.middleware.interface import Middleware, is_operational
from localidades_api.middleware.refusals import refuse, send_ready

_UNTRUSTED = UntrustedHostError()


class TrustedHosts:
    """Lets a request in that names one of `hosts`, on whatever port, and once; `*.` stands for any name below the rest.

    A probe calls a process by its address and a collector by whatever it found: they are let in.
    """

    def __init__(self, inner: Middleware, hosts: Sequence[str]) -> None:
        self._inner = inner
        self._names = {host.lower() for host in hosts}
        self._endings = tuple(name[1:] for name in self._names if name.startswith("*."))
        self._is_ours = lru_cache(maxsize=1024)(self._find)

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return what is at hand behind it, or the refusal."""
        return self._inner.ready(scope) if self._trusts(scope) else refuse(scope, _UNTRUSTED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)
        if scope["type"] == "http" and not self._trusts(scope):
            await send_ready(refuse(scope, _UNTRUSTED), send)
        else:
            await self._inner(scope, receive, send)

    def _trusts(self, scope: Scope) -> bool:
        named = [value for name, value in scope["headers"] if name == b"host"]
        return (len(named) == 1 and self._is_ours(named[0])) or is_operational(scope)

    def _find(self, named: bytes) -> bool:
        name, colon, port = named.decode("latin-1").lower().rpartition(":")
        if not colon or not port.isdecimal():  # no port, or the end of an IPv6 address
            name = f"{name}{colon}{port}"
        return name in self._names or name.endswith(self._endings)
