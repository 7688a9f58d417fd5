"""The supervisor: keeps a worker process running on each listening socket (decision 0017)."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from localidades_api.errors import WorkerError
from localidades_api.observability.metrics import Snapshot, merge, without_gauges
from localidades_api.server.sockets import open_another
from localidades_api.server.workers import Sockets, Work, Worker

HEARTBEAT_TIMEOUT = 30.0  # seconds without a heartbeat; on a busy machine, one may come many seconds late
_EXIT_TIMEOUT = 15.0  # seconds beyond the shutdown timeout, after which a worker that was told to stop is killed
_STABLE_AFTER = 10.0  # seconds; a worker that ran longer is replaced at once
_BACKOFF = (0, 0.5, 1, 2, 4, 8)  # seconds before a replacement, by the number of quick deaths in a row
_MAX_WORKERS = 64  # as in `serve --workers`

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _WorkerSlot:
    """Sockets, and the worker that listens on them."""

    sockets: Sockets
    worker: Worker
    keeping: "asyncio.Task[None] | None" = None


class Supervisor:
    """Runs `work(sockets, link)` in one process per listener until SIGINT or SIGTERM.

    SIGHUP replaces the workers one by one; SIGTTIN adds one, and SIGTTOU removes one.
    """

    def __init__(
        self,
        work: Work,
        listeners: Sequence[Sockets],
        *,
        shutdown_timeout: float,
        heartbeat_timeout: float = HEARTBEAT_TIMEOUT,
    ) -> None:
        self._work = work
        self._listeners = listeners
        self._stop_timeout = shutdown_timeout + _EXIT_TIMEOUT
        self._heartbeat_timeout = heartbeat_timeout
        self._slots: list[_WorkerSlot] = []
        self._workers: set[Worker] = set()  # all that live: in a slot, starting or stopping
        self._tasks: set[asyncio.Task[None]] = set()
        self._orphans: list[socket.socket] = []  # of removed slots; every worker listens on them as well
        self._counted: Snapshot = {}  # the counters of workers that have ended

    def run(self) -> None:
        """Run until told to stop.

        Raises WorkerError if one of the first workers can't start. After that, failed workers are replaced for ever.
        """
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._signals: asyncio.Queue[int] = asyncio.Queue()
        with self._handled_signals():
            try:
                for sockets in self._listeners:
                    self._add_slot(sockets, is_first=True)
                self._start_task(self._obey())
                await self._stopped
            finally:
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*(worker.stop(self._stop_timeout) for worker in self._workers))

    @contextmanager
    def _handled_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def pass_on(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._take_signal, signal.Signals(number))

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU)
        before = {number: signal.signal(number, pass_on) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take_signal(self, number: signal.Signals) -> None:
        _log.info("Received %s with %d workers running", number.name, len(self._slots))
        if number not in {signal.SIGINT, signal.SIGTERM}:
            self._signals.put_nowait(number)
        elif not self._stopped.done():
            self._stopped.set_result(None)
        else:  # told a second time: stop without waiting
            for worker in self._workers:
                worker.kill()

    async def _obey(self) -> None:
        """Act on signals, one at a time."""
        while True:
            number = await self._signals.get()
            if number == signal.SIGHUP:
                await self._restart()
            elif number == signal.SIGTTIN:
                self._add_worker()
            else:
                await self._remove_worker()

    async def _restart(self) -> bool:
        """Replace each worker once its successor is ready, and return whether all were replaced."""
        for slot in self._slots:
            try:
                new = self._start_worker(slot.sockets)
            except OSError as error:
                _log.error("Can't start another worker (%s); the current workers keep running", error.strerror)
                return False
            await _first(new.ready, new.ended)
            if not new.ready.is_set():
                _log.error("%s %s; the current workers keep running", new, new.describe_end())
                return False
            old, slot.worker = slot.worker, new
            await old.stop(self._stop_timeout)
        return True

    def _add_worker(self) -> None:
        if len(self._slots) == _MAX_WORKERS:
            _log.warning("Already running %d workers, which is the maximum", _MAX_WORKERS)
            return
        own, *shared = self._slots[0].sockets
        try:
            own = self._orphans[-1] if self._orphans else open_another(own)
            self._add_slot([own, *shared])
        except OSError as error:
            _log.error("Can't start another worker (%s)", error.strerror)
        else:
            self._orphans = self._orphans[:-1]

    async def _remove_worker(self) -> None:
        """Stop the last worker, once the others have taken over its socket.

        Linux keeps adding connections to the backlog of a listening socket, and resets them when it is closed.
        """
        if len(self._slots) == 1:
            _log.warning("Only one worker is running; it keeps running")
            return
        removed = self._slots.pop()
        shared = [one for slot in self._slots for one in slot.sockets]
        orphans = [one for one in removed.sockets if one not in shared]
        self._orphans += orphans
        if orphans and not await self._restart():
            del self._orphans[-len(orphans) :]
            self._slots.append(removed)
            return
        if removed.keeping:
            removed.keeping.cancel()
        await removed.worker.stop(self._stop_timeout)

    def _add_slot(self, sockets: Sockets, *, is_first: bool = False) -> None:
        slot = _WorkerSlot(sockets, self._start_worker(sockets))
        self._slots.append(slot)
        slot.keeping = self._start_task(self._keep(slot, is_first=is_first))

    async def _keep(self, slot: _WorkerSlot, *, is_first: bool) -> None:
        """Replace the slot's worker whenever it stops accepting connections or ends."""
        quick_deaths = 0
        while True:
            worker = slot.worker
            await worker.leaving.wait()
            if worker is not slot.worker:  # a restart has replaced it
                continue
            if is_first and not worker.ready.is_set() and not worker.was_told_to_stop:
                raise WorkerError(f"A worker {worker.describe_end()}; the log above may say why.")
            is_first = False
            quick_deaths = 0 if time.monotonic() - worker.started_at > _STABLE_AFTER else quick_deaths + 1
            pause = _BACKOFF[min(quick_deaths, len(_BACKOFF)) - 1] if quick_deaths else 0
            _log.error("%s %s; starting another in %g s", worker, worker.describe_end(), pause)
            await self._replace(slot, pause)

    async def _replace(self, slot: _WorkerSlot, pause: float) -> None:
        gone = slot.worker
        await asyncio.sleep(pause)
        while slot.worker is gone:  # else a restart came first
            try:
                slot.worker = self._start_worker(slot.sockets)
            except OSError as error:
                _log.error("Can't start another worker (%s)", error.strerror)
                await asyncio.sleep(_BACKOFF[-1])

    def _start_worker(self, sockets: Sockets) -> Worker:
        worker = Worker(self._work, list(dict.fromkeys([*sockets, *self._orphans])), self._heartbeat_timeout)
        self._workers.add(worker)
        worker.attending = asyncio.create_task(self._attend(worker))
        return worker

    async def _attend(self, worker: Worker) -> None:
        await worker.attend(self._merged)
        self._workers.remove(worker)
        self._counted = merge([self._counted, without_gauges(worker.snapshot)])

    def _merged(self) -> Snapshot:
        return merge([self._counted, *(worker.snapshot for worker in self._workers)])

    def _start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a background task; an error in it ends the supervisor."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)
        return task

    def _end_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._stopped.done():
            self._stopped.set_exception(error)


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
