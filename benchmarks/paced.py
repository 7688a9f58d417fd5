"""Load at a steady rate, for latencies: at full load they only show how many clients wait in the queue."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from random import Random
from urllib.parse import urlsplit

from benchmarks.processes import PATH
from benchmarks.wrk import CONNECTIONS

RATE = 1000  # requests a second, of all connections together


@dataclass(frozen=True, slots=True)
class Sample:
    """One request: when it was due (Unix time), and how long its client waited for the answer."""

    at: float
    seconds: float
    ok: bool


# Returns whether an answer is right, from the page, the time of the request (Unix time), the headers and the body.
Look = Callable[[int, float, Mapping[str, str], bytes], bool]


def p99_ms(samples: Iterable[Sample]) -> float:
    """Return the 99th percentile of the waits."""
    waits = sorted(sample.seconds for sample in samples)
    return waits[len(waits) * 99 // 100] * 1000


async def load_steadily(base: str, pages: int, ended: asyncio.Event, look: Look | None = None) -> list[Sample]:
    """Request random pages over kept connections until stopped.

    A request that is sent late, because the answer before it is late, has waited since it was due.
    """
    samples: list[Sample] = []
    async with asyncio.TaskGroup() as clients:
        for number in range(CONNECTIONS):
            clients.create_task(_ask_steadily(base, pages, number, samples, ended, look))
    return samples


async def _ask_steadily(
    base: str, pages: int, number: int, samples: list[Sample], ended: asyncio.Event, look: Look | None
) -> None:
    address = urlsplit(base)
    chance = Random(number)  # noqa: S311  # the same pages in every run
    interval = CONNECTIONS / RATE
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    due = time.time() + interval * number / CONNECTIONS
    while not ended.is_set():
        if (early := due - time.time()) > 0:
            await asyncio.sleep(early)
            due = time.time()
        page, asked = chance.randint(1, pages), time.time()
        writer.write(f"GET {PATH}?page={page} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        try:
            status, headers, body = await read_answer(reader)
        except (OSError, EOFError):
            ok = False
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
        else:
            ok = status == HTTPStatus.OK
            if headers.get("connection") == "close":  # as after every thousandth request
                writer.close()
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
        waited = time.time() - due
        samples.append(Sample(due, waited, ok and (look is None or look(page, asked, headers, body))))
        due += interval
    writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Return the status, headers and body of the next answer."""
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
