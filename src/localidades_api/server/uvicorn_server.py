"""uvicorn in one process: the application, its middleware and their configuration."""

import asyncio
import gc
import logging
import sys
from contextlib import nullcontext
from typing import Literal, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.app import create_app
from localidades_api.middleware import build_middleware_stack
from localidades_api.observability.logging import log_config
from localidades_api.observability.metrics import own_snapshot
from localidades_api.server.connections import Connections, max_connections
from localidades_api.server.link import Link
from localidades_api.server.sockets import BACKLOG
from localidades_api.server.workers import Sockets
from localidades_api.settings import Settings

TESTED = "0.54."  # the minor version of uvicorn whose inside `server.protocol` was tested with

_COLLECTION_THRESHOLD = 10_000  # net new objects before a collection; Python's default, 700, is some twenty requests
_SWITCH_INTERVAL = 0.0005  # seconds; a tenth of the default

_log = logging.getLogger(__name__)


def serve(sockets: Sockets, settings: Settings, link: Link | None = None) -> None:
    """Serve requests until SIGINT or SIGTERM, then finish those in flight, up to the shutdown timeout.

    `link` leads to the supervisor, if there is one. Raises ConfigurationError if the installed version of uvicorn was
    not tested.
    """
    app = create_app(settings, collect_metrics=link.metrics if link else own_snapshot)
    middleware = build_middleware_stack(app, settings)
    start = _Start(middleware)
    server = uvicorn.Server(_configure(start, settings))
    # Everything loaded by now lives as long as the process, so no collection needs to traverse it again. Requests
    # create almost no reference cycles, and looking for them took a tenth of the time with 1,000 open connections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    # Threads encode tiles and compress downloads; the event loop waits this long for its turn beside one.
    sys.setswitchinterval(_SWITCH_INTERVAL)

    async def run() -> None:
        async with link.following(server) if link else nullcontext():
            await server.serve(sockets=list(sockets))

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        try:
            runner.run(run())
        except SystemExit:
            if start.error:
                raise start.error from None
            raise


def _configure(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_protocol(settings),
        ws="none",  # even if a WebSocket library is installed
        lifespan="on",
        workers=1,  # regardless of WEB_CONCURRENCY
        server_header=False,
        access_log=False,  # a line per request costs more than the request; see `observability.logging`
        log_config=log_config(settings.log_format, settings.log_level),
        backlog=BACKLOG,
        forwarded_allow_ips=list(settings.trusted_proxies or ()),
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )


def _protocol(settings: Settings) -> "type[asyncio.Protocol] | Literal['auto']":
    """Return what makes a connection's protocol: ours, or uvicorn's own where that may be another one inside."""
    if not uvicorn.__version__.startswith(TESTED):
        _log.warning(
            "uvicorn %s is installed, whose inside was not tested: clients may take as long as they like, and send as"
            " much. Install uvicorn %s* for the limits on connections.",
            uvicorn.__version__,
            TESTED,
        )
        return "auto"
    connections = Connections(
        max_connections(settings.max_connections, pool_size=settings.pool_size),
        settings.header_timeout,
        settings.keep_alive_timeout,
        settings.send_timeout,
        asks_cache=not settings.access_log,
    )
    return cast("type[asyncio.Protocol]", connections)  # uvicorn calls it as it would call a class


class _Start:
    """Passes everything on, and keeps the error of a failed startup: uvicorn only says that there was one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.error: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self.error = error
            raise
