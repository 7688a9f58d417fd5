"""A soak test: half of the service's capacity for minutes, with a publication every minute.

    .venv/bin/python -m benchmarks.soak --minutes 10

Two workers on a private Postgres answer a mixture of pages, filtered pages, suggestions, places near a point, single
records, changes and sometimes a download. Every minute a catalogue is imported and the release before the last one
is retired. First the capacity for this mixture is measured: half of it is the load, unless `--rate` gives another
rate. Most responses are cached, and none right after a publication. It prints, for every
minute, requests, failures, latencies and the anonymous memory, descriptors and connections of each worker. With
`--hostile`, clients that abort, trickle, flood and send the most expensive requests run at the same time (`hostile`).
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import uvloop

from benchmarks import requests
from benchmarks.hostile import attack
from benchmarks.import_vs_copy import write_catalogue
from benchmarks.servers import (
    COMMAND,
    DEPLOYED,
    PATH,
    ROOT,
    BenchmarkError,
    Contender,
    Server,
    count_localities,
    environment,
    fetch,
    run_command,
    seeded_postgres,
    start,
)

_CLIENTS = 16
_CAPACITY_SECONDS = 8.0
_PUBLICATION_INTERVAL = 60.0
_PATIENCE = 30.0
_DOWNLOAD_INTERVAL = 20.0
_KEPT = 2  # releases


class _Sample(NamedTuple):
    at: float
    seconds: float
    fault: str | None


class _Usage(NamedTuple):
    """Resources of a worker: anonymous memory in MB (1,000,000 bytes), descriptors, TCP connections."""

    memory: float
    descriptors: int
    connections: int


@dataclass(slots=True)
class _Run:
    """The results, and the event that ends the soak."""

    samples: list[_Sample] = field(default_factory=list)
    downloads: list[_Sample] = field(default_factory=list)
    usage: list[tuple[float, list[_Usage]]] = field(default_factory=list)
    attacks: Counter[str] = field(default_factory=Counter)
    published: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)


def _mixture(url: str, seed: int) -> list[str]:
    """Return targets in random order: half of them pages of the list."""
    chance = Random(seed)  # noqa: S311  # the same requests in every run
    places = requests.read_places(url)
    targets = [target for drawn in requests.draw(places, chance).values() for target in drawn]
    targets += [f"{PATH}{place.id}/" for place in chance.sample(places, 400)]
    pages = count_localities(url) // 50
    targets += [f"{PATH}?page={chance.randint(1, pages)}" for _ in range(len(targets))]
    chance.shuffle(targets)
    return targets


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Return the status, headers and body of the next answer."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def _still_open(writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> asyncio.StreamWriter | None:
    """Return a connection unless it ends with these headers, as after every thousandth request."""
    if headers.get("connection") != "close":
        return writer
    writer.close()
    return None


async def _client(base: str, targets: Sequence[str], number: int, rate: float, run: _Run) -> None:
    """Send requests at a steady rate (all clients together), or as fast as possible if the rate is infinite."""
    chance = Random(number)  # noqa: S311  # as above
    address = urlsplit(base)
    interval = _CLIENTS / rate
    due = time.time() + interval * number / _CLIENTS
    writer: asyncio.StreamWriter | None = None
    while not run.ended.is_set():
        if (early := due - time.time()) > 0:
            await asyncio.sleep(early)
        elif not interval:
            due = time.time()
        try:
            if writer is None:
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.write(f"GET {chance.choice(targets)} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            status, headers, body = await asyncio.wait_for(_read_answer(reader), _PATIENCE)
            fault = None if status == HTTPStatus.OK else f"{status} {json.loads(body)['title']}"
            writer = _still_open(writer, headers)
        except (OSError, EOFError) as error:  # a time-out is an OSError
            fault = f"{error!r} after {time.time() - due:.1f} s"
            if writer:
                writer.close()
            writer = None
        run.samples.append(_Sample(due, time.time() - due, fault))
        due += interval
    if writer:
        writer.close()


async def _download(base: str, rows: int, run: _Run) -> None:
    """Read the whole catalogue from time to time, and check that it is complete."""
    async with httpx.AsyncClient(base_url=base, timeout=_PATIENCE) as client:
        while not run.ended.is_set():
            started = time.time()
            try:
                lines = (await client.get(f"{PATH}download/?format=csv")).text.count("\r\n")
                fault = None if lines == rows + 1 else f"{lines} lines"
            except httpx.HTTPError as error:
                fault = f"{error!r} after {time.time() - started:.1f} s"
            run.downloads.append(_Sample(started, time.time() - started, fault))
            await asyncio.sleep(_DOWNLOAD_INTERVAL)


@asynccontextmanager
async def _load(base: str, targets: Sequence[str], rate: float, run: _Run) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        for number in range(_CLIENTS):
            tasks.create_task(_client(base, targets, number, rate, run))
        yield
        run.ended.set()


async def _capacity(base: str, targets: Sequence[str]) -> float:
    """Return the highest rate of the mixture that these clients reach, in requests a second."""
    run = _Run()
    async with _load(base, targets, float("inf"), run):
        await asyncio.sleep(_CAPACITY_SECONDS)
    if faults := [sample.fault for sample in run.samples if sample.fault]:
        raise BenchmarkError(f"Before the soak {len(faults)} requests failed: {sorted(set(faults))}")
    return len(run.samples) / _CAPACITY_SECONDS


async def _command(url: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, env=environment(url), cwd=ROOT, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, told = await process.communicate()
    if process.returncode:
        raise BenchmarkError(f"{arguments[0]} has failed: {told.decode()[-500:]}")


async def _publish(url: str, source: Path, run: _Run) -> None:
    names: list[str] = []
    started = time.monotonic()
    while True:
        due = started + _PUBLICATION_INTERVAL * (len(names) + 0.5)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        names.append(f"soak-{len(names) + 1}")
        await _command(url, "import", str(_variant(source, len(names))), "--release", names[-1])
        run.published += 1
        if len(names) > _KEPT:
            await _command(url, "releases", "retire", names[-1 - _KEPT])


def _variant(source: Path, number: int) -> Path:
    """Return the same rows as another file, because a published file is refused."""
    rows = source.read_bytes().rstrip(b"\r\n")
    rows = rows.replace(b"\r\n", b"\n") if number % 2 else rows
    path = source.with_name(f"catalogue-{number}.csv")
    path.write_bytes(rows + (b"\n" if number % 4 > 1 else b""))
    return path


async def _watch_usage(server: Server, run: _Run) -> None:
    while True:
        run.usage.append((time.time(), [_usage(pid) for pid in _workers(server)]))
        await asyncio.sleep(5)


def _workers(server: Server) -> list[int]:
    """Return the workers: children of the supervisor, without the helper that Python's spawn starts."""
    pid = server.process.pid
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _usage(pid: int) -> _Usage:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    kibibytes = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    names = []
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed meanwhile
            names.append(str(descriptor.readlink()))
    return _Usage(kibibytes * 1024 / 1e6, len(names), sum(name.startswith("socket:") for name in names))


async def _soak(server: Server, url: str, source: Path, minutes: float, rate: float | None, *, hostile: bool) -> None:
    targets = await asyncio.to_thread(_mixture, url, 1)
    capacity = await _capacity(server.base, targets)
    rate = rate or capacity / 2
    print(f"The mixture as fast as {_CLIENTS} clients ask: {capacity:,.0f} a second; the load: {rate:,.0f}")
    run, started = _Run(), time.time()
    rows = await asyncio.to_thread(count_localities, url)
    beside = [_watch_usage(server, run), _publish(url, source, run), _download(server.base, rows, run)]
    if hostile:
        beside.append(attack(server.base, run.attacks))
    tasks = [asyncio.create_task(one) for one in beside]
    try:
        async with _load(server.base, targets, rate, run):
            for minute in range(1, round(minutes) + 1):
                await asyncio.sleep(started + minute * 60 - time.time())
                _print_minute(run, started, minute - 1)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        _print_totals(run)


def _print_minute(run: _Run, started: float, minute: int) -> None:
    if not minute:
        print("minute  requests  failed  median ms  p99 ms  longest ms  each worker's most: anonymous MB/fds/sockets")
    samples = [sample for sample in run.samples if int((sample.at - started) // 60) == minute]
    waits = sorted(sample.seconds * 1000 for sample in samples) or [0.0]
    failed = sum(sample.fault is not None for sample in samples)
    seen = [usages for at, usages in run.usage if int((at - started) // 60) == minute]
    most = "  ".join("{:.0f}/{}/{}".format(*map(max, zip(*usages, strict=True))) for usages in zip(*seen, strict=False))
    print(
        f"{minute + 1:6} {len(samples):9,} {failed:7} {waits[len(waits) // 2]:10.1f}"
        f" {waits[len(waits) * 99 // 100]:7.1f} {waits[-1]:11.1f}  {most}",
        flush=True,
    )


def _print_totals(run: _Run) -> None:
    for name, samples in (("requests", run.samples), ("downloads", run.downloads)):
        faults = Counter(sample.fault for sample in samples if sample.fault)
        print(f"{len(samples):,} {name}, {faults.total()} failed {dict(faults)}")
    print(f"{run.published} publications")
    for kind, times in sorted(run.attacks.items()):
        print(f"{times:,} {kind}")


def main() -> None:
    """Run the soak and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--rate", type=float, help="requests a second (default: half of what the service answers)")
    parser.add_argument("--hostile", action="store_true", help="run hostile clients beside the ordinary load")
    arguments = parser.parse_args()
    limited = ("prlimit", "--nofile=1024:1024")  # fewer descriptors than a flood has connections
    command = (*limited, *DEPLOYED.command) if arguments.hostile else DEPLOYED.command

    def measure() -> None:
        with seeded_postgres(None) as (folder, url), start(Contender(DEPLOYED.title, command), url, folder) as server:
            server.await_pages_held(workers=2)
            while fetch(f"{server.base}/startupz").status != HTTPStatus.OK:  # the index of names is being fetched
                time.sleep(1)
            source = write_catalogue(folder / "catalogue.csv")
            uvloop.run(_soak(server, url, source, arguments.minutes, arguments.rate, hostile=arguments.hostile))

    run_command(measure)


if __name__ == "__main__":
    main()
