"""Downloads of a whole release through the HTTP server, beside COPY of the same columns of the same rows."""

import http.client
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal
from urllib.parse import urlsplit

import asyncpg
import uvloop

from benchmarks.contenders import OURS_COLD
from benchmarks.lab import Lab
from benchmarks.processes import PATH, BenchmarkError, Server
from benchmarks.series import Series
from localidades_api.catalogue.columns import COLUMNS
from localidades_api.database.queries.downloads import select_list

CSV, NDJSON = "csv", "ndjson"
COPY_CSV, COPY_JSON = "COPY as CSV", "COPY of row_to_json"
WORKER = "worker"
_ENCODINGS = ("zstd", "br", "gzip")
_BLOCK = 256 * 1024
_ROWS = f"""
    SELECT {select_list(COLUMNS)}
      FROM current_release JOIN localities AS l USING (release_id)
      JOIN municipalities AS m ON m.release_id = l.release_id AND m.id = l.municipio_id
      JOIN states AS s ON s.release_id = m.release_id AND s.id = m.estado_id
     ORDER BY l.position
"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Time and size of one transfer; a megabyte is 1,000,000 bytes."""

    seconds: float
    mb: float
    rows_per_second: float
    mb_per_second: float


def measure_downloads(lab: Lab) -> dict[str, dict[str, Series]]:
    """Return figures by transfer, and how much the worker's memory grew during the downloads of a round."""
    url = lab.copy("downloads")
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(lab.options.rounds):
        with lab.start(OURS_COLD, url) as server:  # a new one: memory grows in the first download
            before = server.resident()
            for name, run in _in_turn(_transfers(server, url), number):
                seconds, size = run()
                transfer = Transfer(seconds, size / 1e6, lab.localities / seconds, size / 1e6 / seconds)
                print(f"  round {number + 1}  {name:20} {seconds:6.2f} s {transfer.mb:8,.1f} MB", flush=True)
                for figure, value in asdict(transfer).items():
                    figures[name][figure].append(value)
            figures[WORKER]["growth_mb"].append(server.peak() - before)
    return {name: {figure: Series.of(values) for figure, values in kinds.items()} for name, kinds in figures.items()}


Run = Callable[[], tuple[float, int]]  # seconds and bytes


def _transfers(server: Server, url: str) -> list[tuple[str, Run]]:
    """Return the transfers; those that are compared are neighbours."""
    as_json = f"SELECT row_to_json(record) FROM ({_ROWS}) AS record"
    return [
        (CSV, partial(_download, server, CSV)),
        (COPY_CSV, lambda: uvloop.run(_copy(url, _ROWS, "csv"))),
        (NDJSON, partial(_download, server, NDJSON)),
        (COPY_JSON, lambda: uvloop.run(_copy(url, as_json, "text"))),
        *(
            (f"{name}, {encoding}", partial(_download, server, name, encoding))
            for name in (CSV, NDJSON)
            for encoding in _ENCODINGS
        ),
    ]


def _in_turn(transfers: list[tuple[str, Run]], number: int) -> list[tuple[str, Run]]:
    """Rotate the transfers, so that each round begins with another one."""
    begin = number % len(transfers)
    return transfers[begin:] + transfers[:begin]


def _download(server: Server, name: str, encoding: str = "identity") -> tuple[float, int]:
    size = lines = 0
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=60)) as connection:
        started = time.perf_counter()
        connection.request("GET", f"{PATH}download/?format={name}", headers={"Accept-Encoding": encoding})
        response = connection.getresponse()
        while block := response.read(_BLOCK):
            size += len(block)
            lines += block.count(b"\n")
        seconds = time.perf_counter() - started
    if response.headers.get("Content-Encoding", "identity") != encoding:
        raise BenchmarkError(f"A download was not encoded as {encoding}.")
    if encoding == "identity" and lines != int(response.headers["Catalogue-Records"]) + (name == CSV):
        raise BenchmarkError(f"A download as {name} had {lines} lines.")
    return seconds, size


async def _copy(url: str, query: str, format_: Literal["csv", "text"]) -> tuple[float, int]:
    size = 0

    async def count(data: bytes) -> None:
        nonlocal size
        size += len(data)

    connection = await asyncpg.connect(url)
    try:
        started = time.perf_counter()
        await connection.copy_from_query(query, output=count, format=format_)
        return time.perf_counter() - started, size
    finally:
        await connection.close()
