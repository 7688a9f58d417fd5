"""The HTTP server: one listening socket, and the processes that answer on it."""

import asyncio
import errno
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import cast

import uvicorn
from uvicorn.supervisors import Multiprocess

from localidades_api.app import create_app
from localidades_api.errors import ConfigurationError
from localidades_api.front import Layer, put_layers_before
from localidades_api.logs import log_config
from localidades_api.protocol import ReadyBytesProtocol
from localidades_api.settings import Settings, read_settings

_BACKLOG = 2048
_FIGURES = "PROMETHEUS_MULTIPROC_DIR"  # prometheus-client's
_WORKER_PATIENCE = 30  # seconds for a new worker to be ready, or for one to say that it is alive, on a busy machine
_LISTENING_REMEDIES = {
    errno.EADDRINUSE: "another server runs there, so choose another --port",
    errno.EACCES: "choose a --port above 1023",
}


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Hold the port from the start, so that a second server learns at once that it is taken.

    Raises ConfigurationError where the address can't be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        remedy = _LISTENING_REMEDIES.get(error.errno or 0, "choose a --host that is an address of this machine")
        reason = str(error.strerror).partition(" (")[0]
        raise ConfigurationError(f"Can't listen on {host} port {port} ({reason}): {remedy}.") from error
    except UnicodeError as error:
        raise ConfigurationError("Can't listen: --host is no name of a host.") from error
    with listener:
        yield listener


def run_server(listeners: Sequence[socket.socket], workers: int, settings: Settings) -> None:
    """Answer requests until SIGINT or SIGTERM, and for a while longer those that are under way."""
    protocol = partial(ReadyBytesProtocol, header_timeout=settings.header_timeout, send_timeout=settings.send_timeout)
    config = uvicorn.Config(
        "localidades_api.server:create_worker_app",
        factory=True,
        http=cast("type[asyncio.Protocol]", protocol),  # it is called to make one
        ws="none",  # whatever is installed beside the service
        workers=workers,
        server_header=False,
        access_log=False,  # a line a request costs more than the request; see `logs`
        log_config=log_config(settings.log_format, settings.log_level),
        backlog=_BACKLOG,
        proxy_headers=False,  # a layer does it (front.proxies), and believes nobody unless told to
        timeout_worker_healthcheck=_WORKER_PATIENCE,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    with suppress(KeyboardInterrupt):
        if workers > 1:
            with _shared_figures():
                Multiprocess(config, sockets=list(listeners)).run()
        else:
            uvicorn.Server(config).run(sockets=list(listeners))


@contextmanager
def _shared_figures() -> Iterator[None]:
    """Lend the workers a private folder in which prometheus-client keeps the figures of all of them (`metrics`)."""
    with tempfile.TemporaryDirectory(prefix="localidades-figures-", ignore_cleanup_errors=True) as folder:
        os.environ[_FIGURES] = folder
        yield


def create_worker_app() -> Layer:
    """Build the application of one process, from the environment, with the layers in front of it."""
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    settings = read_settings()
    return put_layers_before(create_app(settings), settings)


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    """End with the supervisor: a killed one can't tell its workers, and they would hold the port for ever."""
    parent.join()
    shutil.rmtree(os.environ[_FIGURES], ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
