"""The files of an index: fixed records, texts, and a table of hashes, read through memory maps that processes share.

A row is the rank of a place, from 0: places are ranked by population, with a minimum for cabeceras and urban places.
"""

import json
import mmap
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

# Add 1 when an index of the same releases changes: its files, or what folding, keys, the rows that are read from a file
# or the database, and the records of `offline` put into them. Then `migrate` builds those of all releases.
FORMAT = 1

RECORDS, TEXTS, LOOKUP, BLOCKS, BLOCK_ROWS = "records", "texts", "lookup", "blocks", "block_rows"
ORDER = "order"  # the row at each position of the list
FILES = (RECORDS, TEXTS, LOOKUP, BLOCKS, BLOCK_ROWS, ORDER)
WORDS, TOP_WORDS, META = "words", "top_words", "meta.json"

# id, population (-1: unknown), latitude, longitude (NaN: unknown), altitude, dwellings (-1: unknown), offset of the
# text, flags
FIXED_PART = struct.Struct("<IiddiiIB3x")
_ID_AND_OFFSET = struct.Struct("<I28xI")  # of the same
UNKNOWN_ALTITUDE = -(1 << 31)
SEAT, URBAN, HOMONYM, MUNICIPIO_HOMONYM = 1, 2, 4, 8
# People use the name for a town of the municipio, or of the estado, for short.
SHORT_OF_TOWN, SHORT_OF_TOWN_IN_STATE = 16, 32
PART_OF_MUNICIPIO = 64  # the place is not a seat, and every word of its name is in the name of its municipio
RURAL = 128  # neither this nor URBAN: unknown

# An entry of the table is one integer: 42 bits of hash, 22 of row. Entries of one name are adjacent, the first row
# first. Two names share a hash once in some thousands of indexes, so readers of a row compare its name.
ENTRY_SIZE = 8  # bytes
_ROW_BITS = 22
MAX_ROWS = 1 << _ROW_BITS
_ROW_MASK = MAX_ROWS - 1

EVERYWHERE = 0  # the scope of names in the whole country; other scopes are keys of estados and municipios
# Scopes of keys, of labels, of names without their spaces, and of what earlier releases had: beyond all keys.
KEY, LABEL, JOINED, WITHDRAWN = range(100_000, 100_004)
_BITS = (1 << 64) - 1
_SPREAD, MIX = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9  # odd constants that spread bits (SplitMix64)
PREFIX_MASK = _BITS & ~_ROW_MASK
MAX_TOP = 16_000  # the first rows, whose words are also in a smaller index
MAX_JOINED = 20_000  # the first rows, whose names are also found without their spaces

# Separators of the parts of a text (name, names, former names), of the items of a list, and of the parts of an item.
PART, ITEM, FIELD = "\x1f", "\x1e", "\x1d"
_PART = PART.encode()


def digest(name: str) -> int:
    """Return 64 bits of a name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def entry_prefix(scope: int, name_digest: int) -> int:
    """Return the upper bits of the entries of a name within a scope."""
    return (name_digest ^ spread(scope)) * MIX & PREFIX_MASK


def spread(scope: int) -> int:
    """Return 64 bits of a scope."""
    return scope * _SPREAD & _BITS


class IndexUnreadableError(Exception):
    """The folder does not hold a readable index of names: build it again."""


class IndexFiles:
    """An index's files, mapped."""

    def __init__(self, folder: Path) -> None:
        """Raise IndexUnreadableError if the folder does not hold a complete index."""
        self.folder = folder
        with ExitStack() as stack:
            try:
                self.meta: Mapping[str, Any] = json.loads((folder / META).read_bytes())
                maps = [self._map(folder / name, stack) for name in FILES]
            except (OSError, ValueError) as error:
                raise IndexUnreadableError(f"{folder} holds no index of names: build it again.") from error
            if {name: len(file) for name, file in zip(FILES, maps, strict=True)} != self.meta.get("sizes"):
                raise IndexUnreadableError(f"{folder} holds an index with an incomplete file: build it again.")
            self._stack = stack.pop_all()
        self._records, self._texts, lookup, self._blocks, block_rows, order = maps
        self._lookup = self._stack.enter_context(memoryview(lookup).cast("Q"))
        self._block_rows = self._stack.enter_context(memoryview(block_rows).cast("I"))
        self._order = self._stack.enter_context(memoryview(order).cast("I"))
        self.rows: int = self.meta["rows"]

    @staticmethod
    def _map(path: Path, stack: ExitStack) -> mmap.mmap | bytes:
        with path.open("rb") as file:
            if not path.stat().st_size:  # an empty file can't be mapped
                return b""
            return stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def close(self) -> None:
        """Close the maps."""
        self._stack.close()

    def find(self, scope: int, name: str, limit: int = 1 << 30) -> list[int]:
        """Return the rows of a name within a scope, in order."""
        wanted = entry_prefix(scope, digest(name))
        lookup = self._lookup
        at, end = bisect_left(lookup, wanted), len(lookup)
        rows: list[int] = []
        while at < end and len(rows) < limit and (entry := lookup[at]) - wanted < MAX_ROWS:
            rows.append(entry & _ROW_MASK)
            at += 1
        return rows

    def row_of(self, id_: int) -> int:
        """Return the row of the place that has a key today; raise KeyError if there is none."""
        for row in self.find(KEY, str(id_)):  # also places that had it, or a key with the same hash
            if self.record(row)[0] == id_:
                return row
        raise KeyError(id_)

    def record(self, row: int) -> tuple[int, int, float, float, int, int, int, int]:
        """Return the fixed part of a row, as in `FIXED_PART`."""
        return FIXED_PART.unpack_from(self._records, row * FIXED_PART.size)

    def text(self, offset: int) -> str:
        """Return the text that begins at an offset."""
        return self._texts[offset : self._texts.find(b"\n", offset)].decode()

    def name(self, row: int) -> tuple[int, str, int]:
        """Return the key, the name and the flags of a row, without the rest."""
        id_, *_, offset, flags = self.record(row)
        return id_, self.name_at(offset), flags

    def name_at(self, offset: int) -> str:
        """Return the name with which the text at an offset begins."""
        return self._texts[offset : self._texts.find(_PART, offset)].decode()

    def at(self, positions: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield the key and the name of the place at each position of the list, from 1."""
        records, texts, order = self._records, self._texts, self._order
        for position in positions:
            id_, offset = _ID_AND_OFFSET.unpack_from(records, order[position - 1] * FIXED_PART.size)
            yield id_, texts[offset : texts.find(_PART, offset)].decode()

    def block(self, municipio_id: int) -> tuple[list[str], Sequence[int]]:
        """Return the normalised names of a municipio's places, and the row of each."""
        span = self.meta["blocks"].get(str(municipio_id))
        if span is None:
            return [], []
        begin, end, first = span
        names = self._blocks[begin:end].decode().split("\n")
        return names, self._block_rows[first : first + len(names)].tolist()
