"""Measures how clients of two workers notice a publication under load."""

import asyncio
import gc
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import uvloop

from benchmarks.contenders import COMMAND, OURS
from benchmarks.database import environment, read_value
from benchmarks.lab import Lab, await_pages_held
from benchmarks.paced import Sample, load_steadily, p99_ms, read_answer
from benchmarks.processes import PATH, ROOT, BenchmarkError
from benchmarks.series import Series

_RELEASE = "published"
SUGGESTIONS = f"{PATH}suggest/?q=a"
_WORKERS = 2
_INTERVAL = 0.02  # seconds between two checks
_SETTLED = 3.0  # seconds without an answer from the release before, after which none is expected
_PATIENCE = 90.0  # seconds; a new release is searched after a minute at most (docs/decisions/names.md)


@dataclass(slots=True)
class Watch:
    """Answers to new connections, which go to one worker or the other, around a publication."""

    release: str
    last_old: float = 0.0  # Unix time of the last request that was answered with another release
    new: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def failed(self) -> int:
        """The number of requests that were not answered, or with an error."""
        return self.faults.total()


def measure_publication(lab: Lab) -> dict[str, Series]:
    """Return p99 before and during an import, failed requests, and seconds until both workers have the release."""
    figures = defaultdict(list)
    lab.catalogue()  # written first, so that the clients don't wait for it
    gc.disable()  # a collection of 50,000 samples would take a tenth of a second
    for number in range(lab.options.rounds):
        url = lab.copy(f"publication_{number}")
        # Each round has to index names again: with the same TMPDIR it would find the index of an earlier round.
        with (
            TemporaryDirectory() as folder,
            lab.start(OURS, url, "--workers", str(_WORKERS), settings={"TMPDIR": folder}) as server,
        ):
            await_pages_held(server, workers=_WORKERS)
            await_tiles = partial(server.wait_for, "The tile cache holds", patience=_PATIENCE)
            await_tiles(times=_WORKERS)  # the last cache that a worker fills
            phases, samples, listed, searched = uvloop.run(
                _publish_under_load(lab, url, server.base, partial(await_tiles, times=2 * _WORKERS))
            )
        for name, value in _judge(samples, listed, searched, phases, _published_at(url)).items():
            figures[name].append(value)
        print("  round", number + 1, *(f"{name} {values[-1]:,.2f}" for name, values in figures.items()), flush=True)
    gc.enable()
    return {name: Series.of(values) for name, values in figures.items()}


@dataclass(frozen=True, slots=True)
class _Phases:
    """Unix times: when another process began to take a processor, when it ended, when the import began."""

    busy: float
    idle: float
    importing: float


async def _publish_under_load(
    lab: Lab, url: str, base: str, await_ready: Callable[[], None]
) -> tuple[_Phases, list[Sample], Watch, Watch]:
    """Return when each phase began, and the clients' results for the list and for suggestions."""
    ended, listed, searched = asyncio.Event(), Watch(_RELEASE), Watch(_RELEASE)
    async with asyncio.TaskGroup() as tasks:
        load = tasks.create_task(load_steadily(base, lab.pages, ended))
        tasks.create_task(keep_asking(base, PATH, listed, ended))
        tasks.create_task(keep_asking(base, SUGGESTIONS, searched, ended))
        await asyncio.sleep(lab.options.seconds)
        busy = time.time()
        await _take_a_processor(lab.options.seconds)
        idle = time.time()
        await asyncio.sleep(1)
        phases = _Phases(busy, idle, importing=time.time())
        await _import(lab, url)
        await await_new(listed, searched)
        await asyncio.to_thread(await_ready)
        ended.set()
    return phases, load.result(), listed, searched


async def await_new(*watches: Watch) -> None:
    """Wait until new connections have got only the new release for a while, or time out."""
    deadline = time.time() + _PATIENCE
    while time.time() < deadline and any(  # noqa: ASYNC110  # another task sets it
        not watch.new or time.time() - watch.last_old < _SETTLED for watch in watches
    ):
        await asyncio.sleep(_INTERVAL)


async def _take_a_processor(seconds: float) -> None:
    """Run a process that only keeps a processor busy, which is the least that any import costs."""
    loop = f"import time\nend = time.time() + {seconds}\nwhile time.time() < end: pass"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", loop)
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()


def _judge(
    samples: list[Sample], listed: Watch, searched: Watch, phases: _Phases, published: float
) -> dict[str, float]:
    if not listed.new or not searched.new:
        raise BenchmarkError("A publication was not seen.")
    during = [sample for sample in samples if sample.at >= phases.importing]
    return {
        "before_p99_ms": p99_ms(sample for sample in samples if sample.at < phases.busy),
        "busy_p99_ms": p99_ms(sample for sample in samples if phases.busy <= sample.at < phases.idle),
        "during_p99_ms": p99_ms(during),
        "importing_p99_ms": p99_ms(sample for sample in during if sample.at < published),
        "published_p99_ms": p99_ms(sample for sample in during if sample.at >= published),
        "during_max_ms": max(sample.seconds for sample in during) * 1000,
        "failed": listed.failed + searched.failed + sum(not sample.ok for sample in samples),
        "seconds_until_seen": max(0.0, listed.last_old - published),
        "seconds_until_searched": max(0.0, searched.last_old - published),
    }


async def keep_asking(base: str, path: str, watch: Watch, ended: asyncio.Event) -> None:
    """Send requests over new connections until stopped, and record which release answers."""
    address = urlsplit(base)
    while not ended.is_set():
        asked = time.time()
        try:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n".encode())
            status, headers, _ = await read_answer(reader)
            writer.close()
        except (OSError, EOFError) as error:
            watch.faults[type(error).__name__] += 1
        else:
            if status != HTTPStatus.OK:
                watch.faults[str(status)] += 1
            if headers.get("catalogue-release") == watch.release:
                watch.new += 1
            else:
                watch.last_old = asked
        await asyncio.sleep(_INTERVAL)


async def _import(lab: Lab, url: str) -> None:
    # A real catalogue would withdraw the demo, which could not be searched then.
    command = (*COMMAND, "import", str(lab.catalogue()), "--release", _RELEASE, "--keep-demo")
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment(url),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        if await process.wait():
            raise BenchmarkError("The import to be published has failed.")
    finally:
        if process.returncode is None:
            process.kill()


def _published_at(url: str) -> float:
    """Return when the release was published, as Unix time, by the clock of this machine."""
    found = read_value(url, f"SELECT extract(epoch FROM published_at)::float FROM releases WHERE name = '{_RELEASE}'")
    return float(str(found))
