"""Loads a running service with three times its capacity.

`python -m benchmarks.overload URL [TARGET]`; `{}` in the target is replaced with a number.

Requests come at a fixed rate, as from a crowd, whether or not answers arrive: a client that waits for each answer would
slow down with the service. Capacity is measured between the rounds, because other people use the machine too.
"""

import asyncio
import statistics
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import cast
from urllib.parse import urlsplit

import uvloop

PAGE = "/api/census/localidades/?page={}&page_size=49"  # not a cached page, so each needs the database
NUMBERS = 6000
CONNECTIONS = 1000  # of the crowd
BUSY = 12  # clients, just enough to keep the service busy
ROUNDS = 2
ABLE, CROWDED, AFTER = 2.0, 6.0, 2.0  # seconds: at capacity, beyond it, and after the crowd
FACTOR = 3


@dataclass(slots=True)
class Load:
    """Requests that are sent when they are due, and their results."""

    address: tuple[str, int]
    target: str
    seconds: float
    rate: float = 0  # a second; 0: one after the other on each connection
    due: deque[float] = field(default_factory=deque)
    idle: deque["Connection"] = field(default_factory=deque)  # by turns: the service would close a silent one
    answers: list[tuple[int, float]] = field(default_factory=list)  # status, seconds since it was due
    chance: Random = field(default_factory=lambda: Random(1))  # noqa: S311  # the same pages in every run

    async def run(self, connections: int) -> "Load":
        """Send requests for the load's time; requests without an answer by then are not counted."""
        loop = asyncio.get_running_loop()
        opened = [
            (await loop.create_connection(lambda: Connection(self), *self.address))[1] for _ in range(connections)
        ]
        self.idle.extend(opened)
        began, sent = time.perf_counter(), 0
        while (now := time.perf_counter() - began) < self.seconds:
            count = int(now * self.rate) if self.rate else sent + len(self.idle)
            self.due.extend(began + number / self.rate if self.rate else began + now for number in range(sent, count))
            sent = count
            while self.due and self.idle:
                self.idle.popleft().ask(self.due.popleft())
            await asyncio.sleep(0.001)
        for connection in opened:
            connection.transport.abort()
        return self

    def answered(self, connection: "Connection", status: int, seconds: float) -> None:
        """Record an answer, and send the next request that is due."""
        self.answers.append((status, seconds))
        if not self.rate:
            connection.ask(time.perf_counter())
        elif self.due:
            connection.ask(self.due.popleft())
        else:
            self.idle.append(connection)


class Connection(asyncio.Protocol):
    """One client, whose parser does only what it needs, so that it takes little of the processor."""

    transport: asyncio.Transport

    def __init__(self, load: Load) -> None:
        self._load = load
        self._received = b""
        self._due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def ask(self, due: float) -> None:
        """Send a request."""
        self._due = due
        target = self._load.target.format(self._load.chance.randint(1, NUMBERS))
        self.transport.write(f"GET {target} HTTP/1.1\r\nHost: {self._load.address[0]}\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Read until the answer is whole."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            status, self._received = int(head[9:12]), b""
            self._load.answered(self, status, time.perf_counter() - self._due)


def quantile(waits: Sequence[float], share: float) -> str:
    """Return the longest wait of that share of requests, in milliseconds."""
    ordered = sorted(waits)
    return f"{ordered[int((len(ordered) - 1) * share)] * 1000:.0f} ms" if ordered else "-"


def describe(name: str, loads: Sequence[Load]) -> float:
    """Print the results of loads of one kind; return the median of requests a second that were answered with 200."""
    rates = [sum(status == HTTPStatus.OK for status, _ in load.answers) / load.seconds for load in loads]
    counts = Counter(status for load in loads for status, _ in load.answers)
    waits = [seconds for load in loads for status, seconds in load.answers if status == HTTPStatus.OK]
    refused = [seconds for load in loads for status, seconds in load.answers if status != HTTPStatus.OK]
    rate = statistics.median(rates)
    print(f"{name:8} {rate:6.0f} answered a second, {dict(counts)}, p50 {quantile(waits, 0.5)},"
          f" p99 {quantile(waits, 0.99)}; refused within {quantile(refused, 0.99)}")  # fmt: skip
    return rate


async def main(url: str, target: str = PAGE) -> None:
    """Measure capacity and overload by turns, then the recovery."""
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or 80)
    able, over = [], []
    for _ in range(ROUNDS):
        able.append(await Load(address, target, ABLE).run(BUSY))
        rate = FACTOR * len(able[-1].answers) / ABLE
        over.append(await Load(address, target, CROWDED, rate).run(CONNECTIONS))
    after = await Load(address, target, AFTER, rate / FACTOR / 10).run(BUSY)
    capacity = describe("capacity", able)
    print(f"share    {describe(f'×{FACTOR}', over) / capacity:.0%} of the capacity")
    describe("after", [after])


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
