"""Runs the service in this process, or in worker processes under a supervisor.

The application is imported where it runs, so that the supervisor neither waits for it nor holds it in memory.
"""

import gc
import logging
import logging.config
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from localidades_api.errors import LocalidadesError
from localidades_api.observability.logging import log_config
from localidades_api.server.link import Link
from localidades_api.server.supervisor import Supervisor
from localidades_api.server.workers import Sockets
from localidades_api.settings import Settings, read_settings

_log = logging.getLogger(__name__)


def run_server(listeners: Sequence[Sockets], settings: Settings) -> None:
    """Serve requests until SIGINT or SIGTERM, then finish those in flight, up to the shutdown timeout.

    `listeners` has the sockets of each worker. Raises WorkerError if a worker can't start.
    """
    if len(listeners) == 1:
        from localidades_api.server.uvicorn_server import serve  # noqa: PLC0415  # see above

        with suppress(KeyboardInterrupt):
            serve(listeners[0], settings)
    else:
        logging.config.dictConfig(log_config(settings.log_format, settings.log_level))
        Supervisor(work, listeners, shutdown_timeout=settings.shutdown_timeout).run()


def work(sockets: Sockets, end: socket.socket) -> None:
    """Run a worker until SIGTERM. The settings come from the environment, as the supervisor's did."""
    signal.signal(signal.SIGTERM, _end)
    gc.set_threshold(50_000)  # while the application is imported, as in every command (`cli`)
    link = Link(end)
    try:
        from localidades_api.server.uvicorn_server import serve  # noqa: PLC0415  # see above

        serve(sockets, read_settings(), link)
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
