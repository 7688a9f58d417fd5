"""uvicorn in one process: the application, its middleware and their configuration."""

import asyncio
import gc
import sys
from contextlib import nullcontext
from functools import partial
from typing import cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.app import create_app
from localidades_api.http.uvicorn_internals import check_version
from localidades_api.middleware import Middleware, build_middleware_stack
from localidades_api.observability.logging import log_config
from localidades_api.observability.metrics import own_snapshot
from localidades_api.server.cached_responses import CachedResponseProtocol
from localidades_api.server.connection_limit import ConnectionLimit, max_connections
from localidades_api.server.link import Link
from localidades_api.server.sockets import BACKLOG
from localidades_api.server.workers import Sockets
from localidades_api.settings import Settings

_COLLECTION_THRESHOLD = 10_000  # net new objects before a collection; Python's default, 700, is some twenty requests
_SWITCH_INTERVAL = 0.0005  # seconds; a tenth of the default


def serve(sockets: Sockets, settings: Settings, link: Link | None = None) -> None:
    """Serve requests until SIGINT or SIGTERM, then finish those in flight, up to the shutdown timeout.

    `link` leads to the supervisor, if there is one. Raises ConfigurationError if the installed version of uvicorn was
    not tested.
    """
    check_version()
    app = create_app(settings, collect_metrics=link.metrics if link else own_snapshot)
    middleware = build_middleware_stack(app, settings)
    start = _Start(middleware)
    server = uvicorn.Server(_configure(start, middleware, settings))
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


def _configure(app: ASGIApp, middleware: Middleware, settings: Settings) -> uvicorn.Config:
    protocol = partial(
        CachedResponseProtocol,
        middleware=middleware,
        header_timeout=settings.header_timeout,
        keep_alive_timeout=settings.keep_alive_timeout,
        send_timeout=settings.send_timeout,
        connection_limit=ConnectionLimit(max_connections(settings.max_connections, pool_size=settings.pool_size)),
    )
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", protocol),  # uvicorn calls it to create a protocol
        ws="none",  # even if a WebSocket library is installed
        lifespan="on",
        workers=1,  # regardless of WEB_CONCURRENCY
        server_header=False,
        access_log=False,  # a line per request costs more than the request; see `observability.logging`
        log_config=log_config(settings.log_format, settings.log_level),
        backlog=BACKLOG,
        proxy_headers=False,  # a middleware of ours does it, and trusts no proxy by default
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )


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
