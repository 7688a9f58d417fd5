"""The client's address and scheme as proxies forward them; only proxies in the settings are trusted."""

from collections.abc import Sequence

from starlette.types import Receive, Scope, Send

from localidades_api.http.raw_response import RawResponse
from localidades_api.http.uvicorn_internals import TrustedHosts
from localidades_api.middleware.interface import Middleware

_SCHEMES = frozenset({b"http", b"https"})


class ProxyHeaders:
    """Sets the client's own address and scheme in the scope, from the headers of a trusted proxy.

    uvicorn's middleware does so in a coroutine, which would be too late for `try_respond`. Its
    `_TrustedHosts` still decides which proxies to trust (decision 0020).
    """

    def __init__(self, inner: Middleware, proxies: Sequence[str]) -> None:
        self._inner = inner
        self._trusted = TrustedHosts(list(proxies))

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Correct the scope, and ask the inner middleware."""
        client = scope.get("client")
        if client and client[0] in self._trusted:
            self._believe(scope)
        return self._inner.try_respond(scope)

    def _believe(self, scope: Scope) -> None:
        forwarded, schemes = [], []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                forwarded.append(value)
            elif name == b"x-forwarded-proto":
                schemes.append(value)
        # Each proxy appends the scheme that it was asked with: the first is the client's. A client that makes one up
        # only gets wrong addresses itself, since no response that names the scheme is cached.
        scheme = b",".join(schemes).partition(b",")[0].strip().lower()
        if scheme in _SCHEMES:
            scope["scheme"] = scheme.decode()
        if forwarded:
            host, port = self._trusted.get_trusted_client_address(b", ".join(forwarded).decode("latin-1"))
            if host:
                scope["client"] = (host, port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""
        await self._inner(scope, receive, send)
