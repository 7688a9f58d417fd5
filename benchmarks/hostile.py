"""Hostile clients, as on the open Internet: they abort, trickle, flood, and send the most expensive requests.

Each kind runs by itself at a bounded rate. Their own answers are not judged. Ordinary requests must be
answered meanwhile, and memory, descriptors and connections of the workers must stay flat (`soak --hostile`).
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from benchmarks.servers import PATH

FLOOD = 1500  # connections at once; more than the usual soft limit of 1,024 descriptors
_FLOOD_INTERVAL = 30.0
_FLOOD_SECONDS = 10.0
_ABORT_INTERVAL = 1.0
_COSTLY_INTERVAL = 0.25
_SLOWLORIS = 50
_TRICKLERS = 4  # slow readers of downloads
_TRICKLE_BYTES, _TRICKLE_INTERVAL, _TRICKLE_SECONDS = 2048, 1.0, 600
_TIMEOUT = 30.0

_DOWNLOADS = tuple(
    itertools.product(("csv", "ndjson", "geojson", "parquet", "xlsx", "gpkg"), ("zstd", "br", "gzip", "identity"))
)
_WORDS = ("san", "la", "el", "jose", "de", "x", "q", "9", "rancho", "nueva", "sta", "qz", "los", "km", "col", "ej")


class _Client(NamedTuple):
    """The state of the hostile clients: the address, the random numbers, and counts of their actions."""

    base: str
    chance: Random
    done: "Counter[str]"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.base)
        return await asyncio.wait_for(asyncio.open_connection(address.hostname, address.port), _TIMEOUT)

    def head(self, target: str, **headers: str) -> bytes:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        return f"GET {target} HTTP/1.1\r\nHost: {urlsplit(self.base).netloc}\r\n{lines}\r\n".encode()


async def _abort_downloads(client: _Client) -> None:
    """Begin a download of each format and encoding in turn, and hang up after its first bytes."""
    for format_, encoding in itertools.cycle(_DOWNLOADS):
        reader, writer = await client.connect()
        writer.write(client.head(f"{PATH}download/?format={format_}", Accept_Encoding=encoding))
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(4096), _TIMEOUT)
        writer.transport.abort()
        client.done["aborted downloads"] += 1
        await asyncio.sleep(_ABORT_INTERVAL)


async def _trickle_download(client: _Client) -> None:
    """Read a download as slowly as the service allows."""
    reader, writer = await client.connect()
    writer.write(client.head(f"{PATH}download/?format=csv", Accept_Encoding="br"))
    async with asyncio.timeout(_TRICKLE_SECONDS):
        for _ in range(_TRICKLE_SECONDS):
            if not await reader.read(_TRICKLE_BYTES):
                break
            await asyncio.sleep(_TRICKLE_INTERVAL)
    writer.transport.abort()
    client.done["trickled downloads"] += 1


async def _send_slowly(client: _Client) -> None:
    """Send a request byte by byte (Slowloris)."""
    _, writer = await client.connect()
    for byte in client.head(f"{PATH}?page=1", Cookie="a" * 1000):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(_TRICKLE_INTERVAL)
    writer.close()


async def _flood(client: _Client) -> None:
    """Open many connections at once, send nothing on most of them, and disconnect."""
    while True:
        opened = await asyncio.gather(*(client.connect() for _ in range(FLOOD)), return_exceptions=True)
        writers = [one[1] for one in opened if not isinstance(one, BaseException)]
        for writer in writers[::10]:
            writer.write(client.head(f"{PATH}?page=2"))
        client.done["flooding connections"] += len(writers)
        await asyncio.sleep(_FLOOD_SECONDS)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(_FLOOD_INTERVAL - _FLOOD_SECONDS)


async def _ask_far_away(client: _Client) -> None:
    """Ask for the places nearest to points anywhere on Earth."""
    await _ask_forever(
        client,
        "far nearest",
        lambda: f"{PATH}nearest/?lat={client.chance.uniform(-90, 90):.4f}&lon={client.chance.uniform(-180, 180):.4f}",
    )


async def _ask_many_words(client: _Client) -> None:
    """Ask for suggestions for as many words as fit."""

    def target() -> str:
        words = " ".join(client.chance.choices(_WORDS, k=60))[:100]
        return f"{PATH}suggest/?{urlencode({'q': words})}"

    await _ask_forever(client, "many words", target)


async def _ask_forever(client: _Client, kind: str, target: Callable[[], str]) -> None:
    reader, writer = await client.connect()
    while True:
        writer.write(client.head(target()))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _TIMEOUT)
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        client.done[f"{kind}, {head.split()[1].decode()}"] += 1
        await asyncio.sleep(_COSTLY_INTERVAL)


_KINDS: tuple[tuple[Callable[[_Client], Awaitable[None]], int], ...] = (
    (_abort_downloads, 1),
    (_trickle_download, _TRICKLERS),
    (_send_slowly, _SLOWLORIS),
    (_flood, 1),
    (_ask_far_away, 1),
    (_ask_many_words, 1),
)


async def attack(base: str, done: "Counter[str]") -> None:
    """Run every hostile client until cancelled, and count their actions in `done`."""

    async def again(act: Callable[[_Client], Awaitable[None]], number: int) -> None:
        client = _Client(base, Random(number), done)  # noqa: S311  # the same attack in every run
        while True:
            # Refused or cut off: try again. uvloop raises RuntimeError for a connection that is closed already.
            with suppress(OSError, EOFError, RuntimeError):
                await act(client)
            await asyncio.sleep(_TRICKLE_INTERVAL)

    async with asyncio.TaskGroup() as tasks:
        for act, count in _KINDS:
            for number in range(count):
                tasks.create_task(again(act, number))
