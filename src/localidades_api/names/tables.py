"""Writes the files that `layout` reads: records and texts, the table of names, and the names by municipio."""

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from localidades_api.names.layout import (
    BLOCK_ROWS,
    BLOCKS,
    FIELD,
    ITEM,
    LOOKUP,
    PART,
    RECORD,
    RECORDS,
    TEXTS,
    digest,
    place_in_table,
)
from localidades_api.names.naming import PlaceName
from localidades_api.names.places import IndexedPlace

_SHARE_BITS = 6
_SHARE_SHIFT = 64 - _SHARE_BITS


class Records:
    """Writes the records of places, and their texts."""

    def __init__(self, folder: Path) -> None:
        self._records = (folder / RECORDS).open("wb")
        self._texts = (folder / TEXTS).open("wb")
        self._offset = 0

    def add(self, place: IndexedPlace, names: Sequence[PlaceName], flags: int) -> None:
        """Write the next row."""
        population = -1 if place.poblacion is None else place.poblacion
        latitude = math.nan if place.latitud is None else place.latitud
        longitude = math.nan if place.longitud is None else place.longitud
        self._records.write(RECORD.pack(place.id, population, latitude, longitude, self._offset, flags))
        text = _text_of(place, names)
        self._texts.write(text)
        self._offset += len(text)

    def add_key(self, id_: int) -> None:
        """Write the next row for a key that has nothing else."""
        self._records.write(RECORD.pack(id_, -1, math.nan, math.nan, 0, 0))

    def close(self) -> None:
        """Complete the files; a map of a file needs a byte at least."""
        self._texts.write(b"\n")
        self._records.close()
        self._texts.close()


def _text_of(place: IndexedPlace, names: Sequence[PlaceName]) -> bytes:
    """Return the text of a place, with its line end; INEGI's names have no control characters."""
    told = ITEM.join(f"{kind}{' '.join(words)}{FIELD}{written}" for kind, words, written in names)
    former = ITEM.join(f"{former.nombre}{FIELD}{former.municipio}{FIELD}{former.id}" for former in place.former)
    return f"{place.nombre}{PART}{told}{PART}{former}".replace("\n", " ").encode() + b"\n"


class Table:
    """Collects the rows of names within scopes, and writes them sorted."""

    def __init__(self) -> None:
        self._shares = [array("Q") for _ in range(1 << _SHARE_BITS)]  # of the entries, by their first bits

    def add(self, row: int, scopes: Iterable[int], names: Iterable[str]) -> None:
        """Let a row be found under names in scopes."""
        for name in names:
            name_digest = digest(name)
            for scope in scopes:
                entry = place_in_table(scope, name_digest) | row
                self._shares[entry >> _SHARE_SHIFT].append(entry)

    def write(self, folder: Path) -> None:
        """Write the file, share by share: as Python's integers, all entries together would take 300 MB."""
        with (folder / LOOKUP).open("wb") as file:
            for entries in self._shares:
                array("Q", sorted(set(entries))).tofile(file)


class Blocks:
    """Collects the names of each municipio, and writes them one municipio after the other."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))

    def add(self, row: int, municipio_id: int, names: Iterable[str]) -> None:
        """Let a row have these names within a municipio."""
        names_of, rows_of = self._blocks[municipio_id]
        before = len(names_of)
        names_of.extend(sorted(names))
        rows_of.extend([row] * (len(names_of) - before))

    def write(self, folder: Path) -> dict[str, tuple[int, int, int]]:
        """Write the files; return where each municipio's names stand: first and last byte, and first row."""
        spans: dict[str, tuple[int, int, int]] = {}
        at = first = 0
        with (folder / BLOCKS).open("wb") as file, (folder / BLOCK_ROWS).open("wb") as rows_file:
            for municipio_id, (names, rows) in sorted(self._blocks.items()):
                block = "\n".join(names).encode()
                file.write(block + b"\n")
                array("I", rows).tofile(rows_file)
                spans[str(municipio_id)] = (at, at + len(block), first)
                at += len(block) + 1
                first += len(rows)
        return spans
