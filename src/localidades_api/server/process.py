"""The HTTP server: uvicorn in this process, or in each of several workers."""

import asyncio
import gc
import logging
import logging.config
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from types import FrameType
from typing import NoReturn, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.app import create_app
from localidades_api.errors import LocalidadesError
from localidades_api.http.uvicorn_internals import check_version
from localidades_api.middleware import Middleware, build_middleware_stack
from localidades_api.observability.logging import log_config
from localidades_api.observability.metrics import own_snapshot
from localidades_api.server.cached_responses import CachedResponseProtocol
from localidades_api.server.connection_limit import ConnectionLimit, max_connections
from localidades_api.server.link import Link
from localidades_api.server.sockets import BACKLOG
from localidades_api.server.supervisor import Supervisor
from localidades_api.server.workers import Sockets
from localidades_api.settings import Settings, read_settings

_COLLECTION_THRESHOLD = 10_000  # net new objects before a collection; Python's default, 700, is some twenty requests

_log = logging.getLogger(__name__)


def run_server(listeners: Sequence[Sockets], settings: Settings) -> None:
    """Serve requests until SIGINT or SIGTERM, then finish those in flight, up to the shutdown timeout.

    `listeners` has the sockets of each worker. Raises WorkerError if a worker can't start, and ConfigurationError if
    the installed version of uvicorn was not tested.
    """
    check_version()
    if len(listeners) == 1:
        with suppress(KeyboardInterrupt):
            _serve(listeners[0], settings)
    else:
        logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
        Supervisor(work, listeners, shutdown_timeout=settings.shutdown_timeout).run()


def work(sockets: Sockets, end: socket.socket) -> None:
    """Run a worker until SIGTERM. The settings come from the environment, as the supervisor's did."""
    signal.signal(signal.SIGTERM, _end)
    link = Link(end)
    try:
        _serve(sockets, read_settings(), link)
    except Exception as error:  # noqa: BLE001  # whatever it is, the supervisor reports it
        if isinstance(error, LocalidadesError):
            link.fail(str(error))
        else:
            _log.exception("The worker failed")
            link.fail(type(error).__name__)
        sys.exit(1)


def _end(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001  # a signal handler's signature
    """Exit on the SIGTERM that uvicorn raises again after it has stopped, so that the stack unwinds."""
    raise SystemExit(0)


def _serve(sockets: Sockets, settings: Settings, link: Link | None = None) -> None:
    app = create_app(settings, collect_metrics=link.metrics if link else own_snapshot)
    middleware = build_middleware_stack(app, settings)
    start = _Start(middleware)
    server = uvicorn.Server(_configure(start, middleware, settings))
    # Everything loaded by now lives as long as the process, so no collection needs to traverse it again. Requests
    # create almost no reference cycles, and looking for them took a tenth of the time with 1,000 open connections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTION_THRESHOLD)

    async def serve() -> None:
        async with link.following(server) if link else nullcontext():
            await server.serve(sockets=list(sockets))

    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        try:
            runner.run(serve())
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
