"""From rows to records: what each value must be, and why a row is rejected."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from localidades_api.errors import CatalogueError
from localidades_api.importer.extract import COLUMNS, Layout, Table, split_line
from localidades_api.importer.values import (
    NO_DATA,
    RowError,
    read_ambito,
    read_count,
    read_degrees,
    read_integer,
    read_name,
    read_text,
)

_LAST_STATE = 32
_CLAVES = {f"{number:04d}": number for number in range(1, 10_000)}
_CHUNK = 5000  # rows between two words to whoever watches


class State(NamedTuple):
    """An estado."""

    id: int
    clave: str
    nombre: str
    abreviatura: str | None


class Municipality(NamedTuple):
    """A municipio."""

    id: int
    estado_id: int
    clave: str
    nombre: str


class Locality(NamedTuple):
    """A locality, its fields in the order of the table's columns."""

    id: int
    municipio_id: int
    clave: str
    nombre: str
    ambito: str | None
    latitud: float | None
    longitud: float | None
    altitud: int | None
    carta: str | None
    poblacion: int | None
    poblacion_masculina: int | None
    poblacion_femenina: int | None
    viviendas: int | None


class Rejected(NamedTuple):
    """A line that is no locality, and why."""

    line: int
    reason: str


class _Withdrawn(Exception):  # noqa: N818  # not an error: the locality is no longer there
    """This row is of a locality that INEGI has withdrawn."""


@dataclass(slots=True)
class Catalogue:
    """A whole catalogue, checked: no key twice, every municipio and estado known, localities in the list's order."""

    states: dict[int, State] = field(default_factory=dict)
    municipalities: dict[int, Municipality] = field(default_factory=dict)
    localities: list[Locality] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    withdrawn: int = 0


def transform(table: Table, advance: Callable[[int], None]) -> Catalogue:
    """Read a table to its end.

    Raises CatalogueError where the file is refused as a whole: no localities or too few, cut short, a key twice,
    an estado outside 01 to 32, a municipio or estado under two names.
    """
    catalogue = Catalogue()
    reader = _RowReader(table.layout, catalogue)
    line, number = "\n", 1
    for number, line in enumerate(table.lines, 2):
        try:
            catalogue.localities.append(reader.read(line.rstrip("\n"), number))
        except RowError as fault:
            catalogue.rejected.append(Rejected(number, str(fault)))
        except _Withdrawn:
            catalogue.withdrawn += 1
        if number % _CHUNK == 0:
            advance(_CHUNK)
    _check_whole(line, number, table.layout)
    _check_yield(catalogue)
    catalogue.localities.sort(key=itemgetter(0))
    _check_unique(catalogue.localities)
    catalogue.localities.sort(key=itemgetter(2))  # stable: clave, then id
    return catalogue


def _check_whole(last_line: str, number: int, layout: Layout) -> None:
    """Refuse a file that stops in the middle of a row; a last line that is no row at all is only rejected."""
    begins_as_row = re.match(r'"([0-9]|$)|[0-9]+([,\t]|$)', last_line)
    if last_line.endswith("\n") or not begins_as_row:
        return
    whole = last_line.endswith('"') and len(split_line(last_line, layout.separator)) == layout.width
    if not whole:
        raise CatalogueError(f"The file is cut short: line {number}, the last one, stops in the middle of a row.")


def _check_yield(catalogue: Catalogue) -> None:
    accepted, rejected = len(catalogue.localities), len(catalogue.rejected)
    if not accepted and not rejected:
        raise CatalogueError("The file holds no localities.")
    if rejected * 10 > accepted + rejected:
        line, reason = catalogue.rejected[0]
        raise CatalogueError(
            f"This is no sound catalogue: {rejected} of {accepted + rejected} rows can't be read;"
            f" the first is line {line}: {reason}."
        )


def _check_unique(localities: Sequence[Locality]) -> None:
    for locality, following in pairwise(localities):
        if locality.id == following.id:
            raise CatalogueError(f"The key {locality.id:09d} stands in the file twice; a catalogue has each key once.")


class _RowReader:
    """Turns the lines of one layout into records, and keeps the estados and municipios that they name."""

    def __init__(self, layout: Layout, catalogue: Catalogue) -> None:
        self._layout = layout
        self._states = catalogue.states
        self._municipalities = catalogue.municipalities
        # A column that the file lacks is read from an empty value that is appended to every row.
        self._pick = itemgetter(*(layout.indexes.get(column, layout.width) for column in COLUMNS))
        self._municipality_ids: dict[tuple[str, ...], int] = {}

    def read(self, line: str, number: int) -> Locality:
        """Read a line; raise RowError, _Withdrawn, or CatalogueError for what condemns the whole file."""
        values = split_line(line, self._layout.separator)
        if len(values) != self._layout.width:
            raise RowError(f"it has {len(values)} values, the header {self._layout.width}")
        values.append("")
        (
            cvegeo, estatus, cve_ent, nom_ent, nom_abr, cve_mun, nom_mun, clave, nombre, ambito, latitud, longitud,
            altitud, carta, poblacion, masculina, femenina, viviendas,
        ) = self._pick(values)  # fmt: skip
        if estatus:
            _check_status(estatus)
        parents = (cve_ent, nom_ent, nom_abr, cve_mun, nom_mun)
        municipio_id = self._municipality_ids.get(parents)
        if municipio_id is None:
            municipio_id = self._municipality_ids[parents] = self._read_parents(*parents, number)
        return Locality(
            _read_key(municipio_id, clave, cvegeo),
            municipio_id,
            clave,
            read_name(nombre),
            read_ambito(ambito),
            read_degrees(latitud, "LAT_DECIMAL", 90),
            read_degrees(longitud, "LON_DECIMAL", 180),
            read_integer(altitud, "ALTITUD"),
            read_text(carta),
            read_count(poblacion, "POB_TOTAL"),
            read_count(masculina, "POB_MASCULINA"),
            read_count(femenina, "POB_FEMENINA"),
            read_count(viviendas, "TOTAL DE VIVIENDAS HABITADAS"),
        )

    def _read_parents(self, cve_ent: str, nom_ent: str, nom_abr: str, cve_mun: str, nom_mun: str, number: int) -> int:
        """Keep an estado and a municipio that are named for the first time; return the municipio's id."""
        if not re.fullmatch(r"[0-9]{2}", cve_ent):
            raise RowError("CVE_ENT is not two digits")
        if not 1 <= int(cve_ent) <= _LAST_STATE:
            raise CatalogueError(f"Line {number} names an estado {cve_ent}; there are 01 to {_LAST_STATE}.")
        if not re.fullmatch(r"[0-9]{3}", cve_mun) or cve_mun == "000":
            raise RowError("CVE_MUN is not three digits from 001")
        state = State(int(cve_ent), cve_ent, read_name(nom_ent), read_text(nom_abr))
        municipality = Municipality(int(cve_ent + cve_mun), state.id, cve_mun, read_name(nom_mun))
        if (
            self._states.setdefault(state.id, state) != state
            or self._municipalities.setdefault(municipality.id, municipality) != municipality
        ):
            raise CatalogueError(
                f"Line {number} names estado {cve_ent} or municipio {cve_ent}{cve_mun} otherwise than a line before it."
            )
        return municipality.id


def _check_status(estatus: str) -> None:
    status = estatus.strip().lower()
    if status == "baja":
        raise _Withdrawn
    if status not in NO_DATA:
        raise RowError("Estatus is neither empty nor Baja")


def _read_key(municipio_id: int, clave: str, cvegeo: str) -> int:
    number = _CLAVES.get(clave)
    if number is None:
        raise RowError("CVE_LOC is not four digits from 0001")
    key = municipio_id * 10_000 + number
    if cvegeo and not (len(cvegeo) < 10 and cvegeo.isdecimal() and int(cvegeo) == key):  # noqa: PLR2004
        raise RowError("CVEGEO is not made of CVE_ENT, CVE_MUN and CVE_LOC")
    return key
