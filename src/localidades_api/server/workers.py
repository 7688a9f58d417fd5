"""One worker process, as the supervisor sees it: started, monitored by heartbeats, stopped or killed."""

import asyncio
import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from localidades_api.observability.metrics import Snapshot
from localidades_api.server import link

Sockets = Sequence[socket.socket]
Work = Callable[[Sockets, socket.socket], None]

START_TIMEOUT = 60.0  # seconds for a new worker to be ready
_RECHECK_TIMEOUT = 1.0  # seconds; if the supervisor itself was suspended, heartbeats are waiting to be read
_EXIT_TIMEOUT = 15.0  # seconds for the process to exit after its last message

_SUPERVISORS = {signal.SIGINT, signal.SIGHUP}

_spawn = multiprocessing.get_context("spawn")
_log = logging.getLogger(__name__)


class Worker:
    """A process that runs `work(sockets, link)`."""

    def __init__(self, work: Work, sockets: Sockets, heartbeat_timeout: float) -> None:
        self.started_at = time.monotonic()
        self.snapshot: Snapshot = {}
        self.ready = asyncio.Event()
        self.leaving = asyncio.Event()  # it accepts no more connections, or has ended
        self.ended = asyncio.Event()
        self.attending: asyncio.Task[None] | None = None
        self._failure = ""  # why it can't start, as it reported
        self._heartbeat_timeout = heartbeat_timeout
        self._end, theirs = socket.socketpair()
        with theirs:
            self._process = _spawn.Process(target=work, args=(sockets, theirs), daemon=True)
            # A terminal sends these to all of its processes. Workers inherit the signal mask, so only the supervisor
            # acts on them.
            signal.pthread_sigmask(signal.SIG_BLOCK, _SUPERVISORS)
            try:
                self._process.start()
            except OSError:
                self._end.close()
                raise
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SUPERVISORS)

    def __str__(self) -> str:
        return f"Worker [{self._process.pid}]"

    @property
    def was_told_to_stop(self) -> bool:
        """Whether it ended because of SIGTERM, from any sender."""
        return self._process.exitcode in {0, -signal.SIGTERM}

    def describe_end(self) -> str:
        """Return how it ended, as the predicate of a sentence about it."""
        if self._failure:
            return f"can't start ({self._failure.rstrip('.')})"
        if (code := self._process.exitcode) is None:
            return "is leaving"
        return f"was killed by {_name(-code)}" if code < 0 else f"ended with exit code {code}"

    async def attend(self, merged: Callable[[], Snapshot]) -> None:
        """Read its messages, and answer its questions with `merged()`, until it has ended; kill it if it hangs."""
        try:
            await self._listen(merged)
        except TimeoutError:
            _log.error("%s does not respond: killing it", self)
            self._process.kill()
        except Exception:  # noqa: BLE001  # whatever it is, a new worker may do better
            _log.exception("%s sent an invalid message: killing it", self)
            self._process.kill()
        await self._join()
        self.leaving.set()
        self.ended.set()

    async def _listen(self, merged: Callable[[], Snapshot]) -> None:
        reader, writer = await link.connect(self._end)
        timeout = START_TIMEOUT
        try:
            while message := await _read(reader, timeout):
                timeout = self._heartbeat_timeout
                if message.failure:
                    self._failure = message.failure
                    continue
                self.snapshot = message.snapshot
                self.ready.set()
                if message.is_leaving:
                    self.leaving.set()
                if message.is_question:
                    writer.write(link.Message(merged()).encode())
        finally:
            writer.close()

    async def _join(self) -> None:
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.sentinel, gone.set)
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT):
                await gone.wait()
        except TimeoutError:
            self._process.kill()
            await gone.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()

    async def stop(self, seconds: float) -> None:
        """Let it finish its requests in flight and exit; kill it after `seconds`."""
        self._process.terminate()
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            _log.error("%s did not stop in %g s: killing it", self, seconds)
            self.kill()
            await self.ended.wait()

    def kill(self) -> None:
        """Kill it without waiting."""
        self._process.kill()


async def _read(reader: asyncio.StreamReader, limit: float) -> link.Message | None:
    for seconds in (limit, _RECHECK_TIMEOUT):
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await link.read(reader)
    raise TimeoutError


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name
        return f"signal {number}"
