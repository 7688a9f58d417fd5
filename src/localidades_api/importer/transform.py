"""Turns rows into records, and rejects invalid rows."""

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from localidades_api.catalogue.columns import ATTRIBUTES, POINT, LocalityRow
from localidades_api.catalogue.keys import STATE_KEYS
from localidades_api.errors import CatalogueError
from localidades_api.importer.cells import (
    NO_DATA,
    InvalidFileError,
    InvalidRowError,
    pair,
    read_clave,
    read_key,
    read_name,
    read_text,
    reader_of,
    refuse_sums,
)
from localidades_api.importer.extract import COLUMNS, CatalogueText, Layout, split_line, split_lines

_BATCH = 250  # lines read at once; few enough for their values to fit a processor's cache
_CHUNK = 5000  # rows between two reports of progress, a multiple of the batch


class StateRow(NamedTuple):
    """An estado."""

    id: int
    clave: str
    nombre: str
    abreviatura: str | None


class MunicipalityRow(NamedTuple):
    """A municipio."""

    id: int
    estado_id: int
    clave: str
    nombre: str


class Rejected(NamedTuple):
    """A row that is not a valid locality, and the reason."""

    line: int  # as an editor counts; the header is line 1
    reason: str


class _Withdrawn(Exception):  # noqa: N818  # not an error: INEGI lists withdrawn localities too
    """The row is that of a withdrawn locality."""


@dataclass(slots=True)
class CatalogueRecords:
    """A checked catalogue: unique keys, known municipios and estados, localities in the order of the list."""

    states: dict[int, StateRow] = field(default_factory=dict)
    municipalities: dict[int, MunicipalityRow] = field(default_factory=dict)
    localities: list[LocalityRow] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    withdrawn: int = 0


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turn off the garbage collector: records have no cycles, and it would take half of the reading time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def transform(table: CatalogueText, advance: Callable[[int], None]) -> CatalogueRecords:
    """Read a table to its end.

    Raises CatalogueError if the file as a whole is invalid: no localities or too few valid rows, a truncated end,
    a duplicate key, an estado outside 01 to 32, or a municipio or estado with two names.
    """
    catalogue = CatalogueRecords()
    reader = _LineReader(table, catalogue)
    lines, line, number = iter(table.lines), "\n", 1
    while batch := list(islice(lines, _BATCH)):
        reader.read(split_lines(batch, table.layout.separator), number + 1)
        line, number = batch[-1], number + len(batch)
        if (number - 1) % _CHUNK == 0:
            advance(_CHUNK)
    if rest := (number - 1) % _CHUNK:
        advance(rest)
    _check_whole(line, number, table.layout)
    _check_yield(catalogue)
    catalogue.localities.sort(key=itemgetter(0))
    _check_unique(catalogue.localities)
    catalogue.localities.sort(key=itemgetter(2))  # stable: clave, then id
    return catalogue


def _check_whole(last_line: str, number: int, layout: Layout) -> None:
    """Refuse a file that ends in the middle of a row; a last line that isn't a row at all is only rejected."""
    begins_as_row = re.match(r'"([0-9]|$)|[0-9]+([,\t]|$)', last_line)
    if last_line.endswith("\n") or not begins_as_row:
        return
    whole = last_line.endswith('"') and len(split_line(last_line, layout.separator)) == layout.width
    if not whole:
        raise CatalogueError(
            f"The file is cut short: line {number}, the last one, stops in the middle of a row; download it again."
        )


def _check_yield(catalogue: CatalogueRecords) -> None:
    accepted, rejected = len(catalogue.localities), len(catalogue.rejected)
    if not accepted and not rejected:
        raise CatalogueError("The file has no localities: use INEGI's AGEEML file.")
    if rejected * 10 > accepted + rejected:
        line, reason = catalogue.rejected[0]
        raise CatalogueError(
            f"This is not a valid catalogue: {rejected} of {accepted + rejected} rows can't be read;"
            f" the first is line {line}: {reason}."
        )


def _check_unique(localities: Sequence[LocalityRow]) -> None:
    for locality, following in pairwise(localities):
        if locality.id == following.id:
            raise CatalogueError(f"The key {locality.id:09d} appears twice in the file; a catalogue has each key once.")


class _LineReader:
    """Turns the lines of one layout into records, and collects the estados and municipios that they name.

    It works on batches, column by column: `map` and `zip` are several times faster than a loop over rows. It looks for
    the invalid row only if a batch fails, so each check is written once.
    """

    def __init__(self, table: CatalogueText, catalogue: CatalogueRecords) -> None:
        self._layout = layout = table.layout
        self._catalogue = catalogue
        # A missing column is read from an empty one that is appended to every batch.
        self._pick = itemgetter(*(layout.indexes.get(column, layout.width) for column in COLUMNS))
        self._read_municipality = cache(self._read_parents)
        self._read_state = cache(partial(read_clave, column="CVE_ENT", digits=2, described="two digits"))
        self._read_own = cache(partial(read_clave, column="CVE_MUN", digits=3, described="three digits from 001"))
        self._read_clave = cache(partial(read_clave, column="CVE_LOC", digits=4, described="four digits from 0001"))
        self._readers = {name: reader_of(column) for name, column in ATTRIBUTES.items()}

    def read(self, rows: Sequence[list[str]], number: int) -> None:
        """Add rows to the catalogue, the first from line `number` of the text.

        If one is invalid, the batch is halved until it is alone.
        """
        try:
            self._catalogue.localities += self._convert(rows)
        except (InvalidRowError, _Withdrawn, InvalidFileError) as fault:
            if len(rows) == 1:
                self._reject(number, fault)
            else:
                half = len(rows) // 2
                self.read(rows[:half], number)
                self.read(rows[half:], number + half)

    def _reject(self, number: int, fault: Exception) -> None:
        if isinstance(fault, InvalidFileError):
            raise CatalogueError(f"Line {number} {fault}") from None
        if isinstance(fault, _Withdrawn):
            self._catalogue.withdrawn += 1
        else:
            self._catalogue.rejected.append(Rejected(number, str(fault)))

    def _convert(self, rows: Sequence[list[str]]) -> list[LocalityRow]:
        """Return the records of rows; raise InvalidRowError, _Withdrawn or InvalidFileError if a row has none."""
        for width in set(map(len, rows)) - {self._layout.width}:
            raise InvalidRowError(f"it has {width} values, but the header has {self._layout.width}")
        cvegeo, estatus, cve_ent, nom_ent, nom_abr, cve_mun, nom_mun, cve_loc, nombre, *texts = self._pick(
            [*zip(*rows, strict=True), ("",) * len(rows)]
        )
        for status in set(estatus):
            _check_status(status)
        claves = list(map(self._read_clave, cve_loc))
        refuse_sums(claves)  # first: a total is in no municipio
        cve_ent = list(map(self._read_state, cve_ent))
        cve_mun = list(map(self._read_own, cve_mun))
        areas = zip(cve_ent, nom_ent, nom_abr, cve_mun, nom_mun, strict=True)
        municipalities = list(map(self._read_municipality, areas))
        records = zip(
            map(read_key, cve_ent, cve_mun, claves, cvegeo),
            municipalities,
            claves,
            map(read_name, nombre),
            *self._read_attributes(texts),
            strict=True,
        )
        return list(map(LocalityRow._make, records))

    def _read_attributes(self, texts: Sequence[Sequence[str]]) -> Iterable[Iterable[object]]:
        """Read the columns of attributes, in their order; a point needs both coordinates."""
        values: dict[str, Iterable[object]] = {
            name: map(read, column) for (name, read), column in zip(self._readers.items(), texts, strict=True)
        }
        points = [list(values[name]) for name in POINT]
        if any(None in column for column in points):
            points = [list(column) for column in zip(*map(pair, *points), strict=True)]
        return (values | dict(zip(POINT, points, strict=True))).values()

    def _read_parents(self, names: tuple[str, ...]) -> int:
        """Collect an estado and a municipio that are new; return the id of the municipio."""
        cve_ent, nom_ent, nom_abr, cve_mun, nom_mun = names
        if int(cve_ent) not in STATE_KEYS:
            raise InvalidFileError(f"names an unknown estado {cve_ent}; estados go from 01 to {STATE_KEYS[-1]}.")
        if cve_mun == "000":
            raise InvalidRowError("CVE_MUN is not three digits from 001")
        state = StateRow(int(cve_ent), cve_ent, read_name(nom_ent), read_text(nom_abr))
        municipality = MunicipalityRow(int(cve_ent + cve_mun), state.id, cve_mun, read_name(nom_mun))
        states, municipalities = self._catalogue.states, self._catalogue.municipalities
        if (
            states.setdefault(state.id, state) != state
            or municipalities.setdefault(municipality.id, municipality) != municipality
        ):
            raise InvalidFileError(
                f"gives estado {cve_ent} or municipio {cve_ent}{cve_mun} another name than an earlier row does."
            )
        return municipality.id


def _check_status(estatus: str) -> None:
    status = estatus.strip().lower()
    if status == "baja":
        raise _Withdrawn
    if status not in NO_DATA:
        raise InvalidRowError("Estatus is neither empty nor Baja")
