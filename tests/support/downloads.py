"""A catalogue large enough to interrupt its download, and clients that stop reading."""

import csv
import http.client
import io
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

from localidades_api.catalogue.columns import COLUMNS, Kind
from tests.support.catalogue import Place
from tests.support.records import Record
from tests.support.waiting import PATIENCE

DOWNLOAD = "/api/census/localidades/download/"
TEXTS = {name for name, column in COLUMNS.items() if column.kind in {"key", "text"}}


def read_csv(content: bytes) -> list[Record]:
    """Read CSV; empty values become None."""
    text = content.decode()
    assert text.endswith("\r\n")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    names = next(lines)
    return [dict(zip(names, map(value_of, names, line), strict=True)) for line in lines]


def value_of(name: str, text: str) -> object:
    if text == "":
        return None
    readers: Mapping[Kind, Callable[[str], object]] = {
        "key": str, "text": str, "number": float, "integer": int, "boolean": "true".__eq__,
    }  # fmt: skip
    return readers[COLUMNS[name].kind](text)


LARGE = 40_000
LETTERS = [letter for letter in map(chr, range(0x0376, 0x0800)) if letter.isalpha()]  # of two bytes, Greek to N'Ko


def large_places() -> list[Place]:
    """Return the same places every time, with charts that hardly compress, so a download doesn't fit into buffers.

    Names of that length would take seconds to index.
    """
    charts = random.Random(4)  # noqa: S311
    return [
        Place(
            f"{1 + number // 10_000:02d}{1 + number // 2000 % 5:03d}{1 + number % 2000:04d}",
            f"Lugar {number}",
            nom_ent=f"Estado {1 + number // 10_000}",
            carta="".join(charts.choices(LETTERS, k=150)),
        )
        for number in range(LARGE)
    ]


class Stalled(NamedTuple):
    """A download that a client has stopped reading after its beginning."""

    response: http.client.HTTPResponse
    beginning: bytes

    def read_on(self) -> bytes:
        return self.beginning + self.response.read()


@contextmanager
def stalled(base: str, query: str, coding: str = "identity") -> Iterator[Stalled]:
    with closing(http.client.HTTPConnection(urlsplit(base).netloc, timeout=PATIENCE)) as connection:
        connection.request("GET", f"{DOWNLOAD}?{query}", headers={"Accept-Encoding": coding})
        response = connection.getresponse()
        assert response.status == 200
        assert response.headers["transfer-encoding"] == "chunked"
        assert response.headers.get("content-encoding", "identity") == coding
        beginning = response.read(1000)
        time.sleep(0.4)  # until the buffers between are full
        yield Stalled(response, beginning)
