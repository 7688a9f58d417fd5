"""The protocol of connections, in a form that is passed on to worker processes."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from localidades_api.server.connection_limit import ConnectionLimit

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config

    from localidades_api.http.uvicorn_internals import ServerState


@dataclass
class Connections:
    """Makes the protocol of each connection; the timeouts are in seconds."""

    max_open: int
    header_timeout: float
    keep_alive_timeout: float
    send_timeout: float

    @cached_property
    def _limit(self) -> ConnectionLimit:
        return ConnectionLimit(self.max_open)

    def __call__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: "asyncio.AbstractEventLoop | None" = None,
    ) -> "asyncio.Protocol":
        """Return the protocol of a new connection."""
        from localidades_api.server.cached_responses import CachedResponseProtocol  # noqa: PLC0415  # loads the app

        return CachedResponseProtocol(
            config,
            server_state,
            app_state,
            _loop,
            middleware=config.loaded_app,
            header_timeout=self.header_timeout,
            keep_alive_timeout=self.keep_alive_timeout,
            send_timeout=self.send_timeout,
            connection_limit=self._limit,
        )
