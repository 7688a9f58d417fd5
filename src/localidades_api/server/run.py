"""uvicorn with the options of this service: in one process, or in workers under its supervisor.

The application is imported where it runs, so that the supervisor neither waits for it nor holds it in memory
(docs/decisions/workers.md).
"""

import asyncio
import faulthandler
import gc
import logging
import multiprocessing
import os
import pkgutil
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import ChangeReload, Multiprocess

from localidades_api.errors import CommandError, ConfigurationError, LocalidadesError
from localidades_api.observability.logging import log_config
from localidades_api.observability.shared_metrics import SharedMetrics
from localidades_api.server.connections import Connections, max_connections
from localidades_api.server.deadlines import Timeouts
from localidades_api.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

TESTED = "0.54"  # minor version of uvicorn, whose internals `server.protocol` uses; pyproject.toml pins it too

_BACKLOG = 2048
_HANG_TIMEOUT = 30  # seconds without a sign of life, after which a worker is replaced; a busy machine may be slow
_REPORT_INTERVAL = 1.0  # seconds
_COLLECTION_THRESHOLD = 10_000  # net new objects before a collection; Python's default, 700, is some twenty requests
_SWITCH_INTERVAL = 0.0005  # seconds; a tenth of the default

_log = logging.getLogger(__name__)


def check_uvicorn() -> None:
    """Raise ConfigurationError if another uvicorn than the tested one is installed."""
    if not uvicorn.__version__.startswith(f"{TESTED}."):
        raise ConfigurationError(
            f"`serve` works with uvicorn {TESTED} only, and {uvicorn.__version__} is installed: run"
            f" `pip install 'uvicorn=={TESTED}.*'`, or run `localidades_api.asgi:app` with any ASGI server."
        )


def listen(host: str, port: int, *, setting: str = "--port") -> socket.socket:
    """Open a listening socket.

    An IPv6 address may be in brackets, as in a URL; `::` listens on IPv4 too. Raises ConfigurationError, which names
    the setting of the port, if it can't listen on the address.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        takes_both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=takes_both)
    except (OSError, UnicodeError) as error:
        reason = str(error.strerror if isinstance(error, OSError) else "not a host name").partition(" (")[0]
        raise ConfigurationError(
            f"Can't listen on {host} port {port} ({reason}): choose another --host or {setting}."
        ) from error


class ServerOptions(NamedTuple):
    """The options of `serve`: the application as `module:attribute`, which reads its settings from the environment."""

    application: str
    workers: int = 1
    root_path: str = ""
    reload: bool = False


def run_server(sockets: Sequence[socket.socket], settings: Settings, options: ServerOptions) -> None:
    """Serve an application until SIGINT or SIGTERM, then finish the requests in flight, up to the shutdown timeout.

    Raises CommandError if a first worker can't start.
    """
    application, workers = options.application, options.workers
    descriptors = [socket.fileno() for socket in sockets]
    config = uvicorn.Config(
        partial(_load_in_worker, application, SharedMetrics(), descriptors)
        if workers > 1
        else partial(_load, application),
        factory=True,
        http=_protocol(settings),
        ws="none",  # even if a WebSocket library is installed
        lifespan="on",
        workers=workers,
        server_header=False,
        access_log=False,  # a line per request costs more than the request; see `observability.logging`
        log_config=log_config(settings.log_format),
        backlog=_BACKLOG,
        forwarded_allow_ips=list(settings.trusted_proxies or ()),
        timeout_graceful_shutdown=settings.shutdown_timeout,
        timeout_worker_healthcheck=_HANG_TIMEOUT,
        root_path=options.root_path,
        reload=options.reload,
    )
    if options.reload:
        config.reload_dirs = [Path.cwd()]  # uvicorn looks for them itself only for an application that it imports
        ChangeReload(config, uvicorn.Server(config).run, list(sockets)).run()
        return
    if workers == 1:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(list(sockets))
        return
    supervisor = _Supervisor(config, list(sockets))
    try:
        supervisor.run()
    finally:
        supervisor.terminate_all()  # at an error: workers would keep this process waiting for their end
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise CommandError("A worker can't start; the log above says why.")


def _protocol(settings: Settings) -> "type[asyncio.Protocol]":
    connections = Connections(
        max_connections(settings.max_connections, pool_size=settings.pool_size),
        Timeouts(settings.client_timeout, settings.keep_alive_timeout),
    )
    # uvicorn calls it as it would call a class. `_Supervisor` pickles it for its workers.
    return cast("type[asyncio.Protocol]", partial(_make_protocol, connections))


def _make_protocol(connections: Connections, **options: Any) -> asyncio.Protocol:  # noqa: ANN401  # uvicorn's
    from localidades_api.server.protocol import HttpProtocol  # noqa: PLC0415  # takes the supervisor 47 MB and 0.8 s

    return HttpProtocol(**options, limits=connections)


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which stays when the system refuses another process: it tries again."""

    def terminate_all(self) -> None:
        """End the workers, and close the sockets: while a process has them open, the system accepts connections."""
        for listening in self.sockets:
            listening.close()
        super().terminate_all()

    def handle_signals(self) -> None:
        """Act on signals."""
        with _logged_refusal():
            super().handle_signals()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended, or are silent."""
        for process in self.processes:
            # The worker's end of the pipe. With a copy of it here, a worker that ends while it is pinged would only be
            # noticed after the timeout.
            process.child_conn.close()
        with _logged_refusal():
            super().keep_subprocess_alive()


@contextmanager
def _logged_refusal() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _log.error("Can't start another worker (%s)", error.strerror)


def _load(application: str) -> "FastAPI":
    """Import an application, `module:attribute`; raise ConfigurationError if there is none of that name."""
    gc.set_threshold(50_000)  # while the application is imported, as in every command (`cli`)
    app = _import(application)
    app.state.is_served = True  # itself, not below another, which may refuse what it would answer
    # Everything loaded by now lives as long as the process, so no collection needs to traverse it again. Requests
    # create almost no reference cycles, and looking for them took a tenth of the time with 1,000 open connections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTION_THRESHOLD)
    # Threads encode tiles and compress downloads; the event loop waits this long for its turn beside one.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    return app


def _import(application: str) -> "FastAPI":
    from fastapi import FastAPI  # noqa: PLC0415  # slow to import

    sys.path.insert(0, "")  # as uvicorn's command does
    try:
        app = pkgutil.resolve_name(application)
    except LocalidadesError:
        raise
    except Exception as error:
        _log.exception("--app %s can't be imported", application)
        raise ConfigurationError(
            f"--app {application} can't be imported ({type(error).__name__}); the log above says where."
        ) from error
    if not isinstance(app, FastAPI):
        raise ConfigurationError(f"--app {application} is not a FastAPI application.")
    return app


def find_prefix(application: str) -> str:
    """Return the path at which an application of the operator's has mounted the service, else the empty string."""
    if application.startswith(f"{__package__.partition('.')[0]}."):
        return ""  # without importing it here
    from starlette.routing import Mount  # noqa: PLC0415  # slow to import

    mounts = (route for route in _import(application).routes if isinstance(route, Mount))
    return next((mount.path for mount in mounts if hasattr(getattr(mount.app, "state", None), "extensions")), "")


def _load_in_worker(application: str, shared: SharedMetrics, descriptors: Sequence[int]) -> "ASGIApp":
    """Load the application, or exit: the supervisor ends with a first worker, and tries a later one again.

    `descriptors` are those of the listening sockets, which uvloop would hand on to the process that indexes names.
    """
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)  # noqa: FBT003  # it takes no keywords
    try:
        return _WorkerApplication(_load(application), shared)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is logged
        _log.error("A worker can't start: %s", error, exc_info=not isinstance(error, LocalidadesError))
        sys.exit(1 if shared.is_used else STARTUP_FAILURE)


class _WorkerApplication:
    """The application in one of several workers, which publishes its metrics and doesn't outlive its supervisor."""

    def __init__(self, app: "ASGIApp", shared: SharedMetrics) -> None:
        self._app = app
        self._shared = shared

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Call the application; its lifespan is that of the reports."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        scope["state"]["collect_metrics"] = self._shared.collect
        self._shared.take_place()
        reporting = asyncio.create_task(_report(self._shared))
        try:
            await self._app(scope, receive, send)
        finally:
            reporting.cancel()
            self._shared.publish()


async def _report(shared: SharedMetrics) -> None:
    """Publish metrics every second; end if the supervisor has been killed, or if the event loop hangs."""
    supervisor = multiprocessing.parent_process()
    while True:
        # A thread prints the stack and ends the process, unless the event loop comes back here in time.
        faulthandler.dump_traceback_later(_HANG_TIMEOUT, exit=True)
        if supervisor and not supervisor.is_alive():
            signal.raise_signal(signal.SIGTERM)
        shared.publish()
        await asyncio.sleep(_REPORT_INTERVAL)
