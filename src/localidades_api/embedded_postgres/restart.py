"""Restarts the embedded Postgres when it, or its watchdog, has died while in use."""

import logging
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localidades_api.embedded_postgres.postgres_process import (
    Launch,
    find_running,
    has_watchdog,
    start_or_attach,
)
from localidades_api.errors import EmbeddedPostgresError

_log = logging.getLogger(__name__)

_CHECK_INTERVAL = 0.5  # seconds
_STABLE_AFTER = 60.0  # seconds of uptime after which the next restart is immediate again
_MAX_BACKOFF = 30.0  # seconds before a repeated restart
_JOIN_TIMEOUT = 35.0  # seconds: longer than a watchdog takes to clean up after a killed one


@contextmanager
def restarted_when_dead(data_dir: Path, postgres_bin: Path | None, shutdown_timeout: float) -> Iterator[None]:
    """Watch the running server of the folder from a thread, and restart it on the same socket if it dies.

    Several processes may watch: one of them starts the server, and the others find it running.
    """
    data_dir = data_dir.resolve()
    running = find_running(data_dir)
    launch = Launch(data_dir, postgres_bin, shutdown_timeout, running and running.cluster)
    stopping = threading.Event()
    thread = threading.Thread(target=_watch, args=(launch, stopping), name="embedded-postgres", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()  # from now on the server may stop
        thread.join(_JOIN_TIMEOUT)


def _watch(launch: Launch, stopping: threading.Event) -> None:
    pause, started = 0.0, -math.inf
    while not stopping.wait(_CHECK_INTERVAL):
        if _lives(launch.data_dir):
            continue
        is_first = time.monotonic() - started > _STABLE_AFTER
        pause = 0.0 if is_first else min(2 * pause or 1.0, _MAX_BACKOFF)
        _log.error("The embedded Postgres has died; restarting it%s.", f" in {pause:.0f} s" if pause else "")
        if stopping.wait(pause):
            break
        try:
            start_or_attach(launch, stopping)
        except (EmbeddedPostgresError, OSError) as error:
            if not stopping.is_set():
                _log.error("Can't restart the embedded Postgres: %s", error)
        else:
            _log.warning("The embedded Postgres is running again.")
        started = time.monotonic()


def _lives(data_dir: Path) -> bool:
    try:
        return has_watchdog(data_dir)
    except OSError:  # the folder was removed; the restart will report that
        return False
