"""What proxies say of the client, believed from those proxies only that the settings name."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from starlette.types import Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from localidades_api.middleware.cached_pages import RawResponse
from localidades_api.middleware.interface import Middleware

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application


class ProxyHeaders:
    """Puts the client's own address and scheme into the scope where a trusted proxy tells them.

    It is uvicorn's middleware, which uvicorn would put where an answer that is ready does not pass.
    """

    def __init__(self, inner: Middleware, proxies: Sequence[str]) -> None:
        self._inner = inner
        self._believe = ProxyHeadersMiddleware(cast("ASGI3Application", _nothing), list(proxies))

    def ready(self, scope: Scope) -> RawResponse | None:
        """Return what is at hand behind it."""
        with suppress(StopIteration):  # it awaits nothing, and so ends at once
            self._believe(cast("Any", scope), cast("Any", None), cast("Any", None)).send(None)
        return self._inner.ready(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on; of a scope that has been read, nothing changes any more."""
        if scope["type"] == "lifespan":
            scope["state"].setdefault("front", self)
        await self._believe(cast("Any", scope), cast("Any", receive), cast("Any", send))
        await self._inner(scope, receive, send)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Take the place of the application: the scope is what is wanted."""
