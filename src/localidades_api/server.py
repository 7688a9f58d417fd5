"""The HTTP server: the processes that answer on the port, and what watches over them."""

import asyncio
import multiprocessing
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess

from localidades_api.app import create_app
from localidades_api.front import Layer, put_layers_before
from localidades_api.listeners import BACKLOG
from localidades_api.logs import log_config
from localidades_api.protocol import ReadyBytesProtocol
from localidades_api.settings import Settings, read_settings

_BETWEEN_LOOKS = 0.5  # seconds
_FIGURES = "PROMETHEUS_MULTIPROC_DIR"  # prometheus-client's
_WORKER_PATIENCE = 30  # seconds for a new worker to be ready, or for one to say that it is alive, on a busy machine


def run_server(listeners: Sequence[Sequence[socket.socket]], settings: Settings) -> None:
    """Answer requests until SIGINT or SIGTERM, and for a while longer those that are under way.

    Each of the listeners is what one worker listens on.
    """
    protocol = partial(ReadyBytesProtocol, header_timeout=settings.header_timeout, send_timeout=settings.send_timeout)
    config = uvicorn.Config(
        "localidades_api.server:create_worker_app",
        factory=True,
        http=cast("type[asyncio.Protocol]", protocol),  # it is called to make one
        ws="none",  # whatever is installed beside the service
        workers=1,  # a supervisor
        server_header=False,
        access_log=False,  # a line a request costs more than the request; see `logs`
        log_config=log_config(settings.log_format, settings.log_level),
        backlog=BACKLOG,
        proxy_headers=False,  # a layer does it (front.proxies), and believes nobody unless told to
        timeout_worker_healthcheck=_WORKER_PATIENCE,
        timeout_graceful_shutdown=settings.shutdown_timeout,
    )
    with suppress(KeyboardInterrupt):
        if len(listeners) > 1:
            with _shared_figures():
                _Supervisors(config, listeners).run()
        else:
            uvicorn.Server(config).run(sockets=list(listeners[0]))


class _Supervisors:
    """What uvicorn's supervisor does, for several: one gives all of its workers the same sockets."""

    def __init__(self, config: uvicorn.Config, listeners: Sequence[Sequence[socket.socket]]) -> None:
        self._each = [Multiprocess(config, list(sockets)) for sockets in listeners]
        for number in SIGNALS:
            signal.signal(number, self._tell)

    def _tell(self, number: int, _: FrameType | None) -> None:
        for supervisor in self._each:
            supervisor.signal_queue.append(number)

    def run(self) -> None:
        """Keep a worker on each socket until a signal ends it, or one can't start."""
        for supervisor in self._each:
            supervisor.init_processes()
        while not self._should_exit():
            self._leave_pipes_to_workers()
            time.sleep(_BETWEEN_LOOKS)
            for supervisor in self._each:
                supervisor.handle_signals()
                supervisor.keep_subprocess_alive()
        for supervisor in self._each:
            supervisor.terminate_all()
        for supervisor in self._each:
            supervisor.join_all()

    def _leave_pipes_to_workers(self) -> None:
        """Close the workers' ends: one that dies while it is asked for a sign of life is missed at once then.

        uvicorn keeps them open, and waits its whole patience for the answer of a process that is gone.
        """
        for supervisor in self._each:
            for process in supervisor.processes:
                process.child_conn.close()

    def _should_exit(self) -> bool:
        return any(supervisor.should_exit.is_set() for supervisor in self._each)


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
