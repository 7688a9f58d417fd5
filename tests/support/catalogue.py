"""Writes small catalogues in INEGI's layout, and reads files as the importer does."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.errors import CatalogueError
from localidades_api.importer.extract import open_table
from localidades_api.importer.source import open_source
from localidades_api.importer.transform import CatalogueRecords, transform
from localidades_api.observability.progress import StepProgress

HEADER = (
    "CVEGEO", "Estatus", "CVE_ENT", "NOM_ENT", "NOM_ABR", "CVE_MUN", "NOM_MUN", "CVE_LOC", "NOM_LOC",
    "LATITUD", "LONGITUD", *(attribute.header for attribute in ATTRIBUTES.values()),
)  # fmt: skip
NO_DATA = "-"


@dataclass(frozen=True)
class Place:
    """A row of a catalogue; columns of `ATTRIBUTES` without a field here are empty."""

    cvegeo: str
    nombre: str
    nom_ent: str = "Aguascalientes"
    nom_abr: str = "Ags."
    nom_mun: str = ""
    estatus: str = ""
    ambito: str = "R"
    latitud: str = "21.880833"
    longitud: str = "-102.296111"
    altitud: str = "1885"
    carta: str = "F13D19"
    poblacion: str = "-"
    poblacion_masculina: str = "-"
    poblacion_femenina: str = "-"
    viviendas: str = "-"

    def values(self) -> tuple[str, ...]:
        ent, mun, loc = self.cvegeo[:2], self.cvegeo[2:5], self.cvegeo[5:]
        return (
            self.cvegeo, self.estatus, ent, self.nom_ent, self.nom_abr, mun, self.nom_mun or f"Municipio {mun}", loc,
            self.nombre, '21°52´50.999"N', '102°17´46.000"W', *map(self.text_of, ATTRIBUTES),
        )  # fmt: skip

    def text_of(self, column: str) -> str:
        return str(getattr(self, column, NO_DATA))


# Traps of the real data: homonyms, marks of every kind, names that look like markup or code.
TRAPS = (
    Place("010010001", "Aguascalientes", ambito="U", poblacion="863893", poblacion_masculina="419168",
          poblacion_femenina="444725"),
    Place("010010002", "Ninguno", altitud="-"),
    Place("010010003", "Ninguno", altitud="*"),
    Place("010010004", "Ardillas de Abajo (Las Ardillas)", altitud="-12"),
    Place("010010005", "Los Arbolitos [Rancho]"),
    Place("010010006", "Peñón Ñandú  Doble", carta="-"),
    Place("010010007", "San José\N{NO-BREAK SPACE}del Río"),
    Place("010010008", "Concepci½n"),
    Place("010010009", "Rancho `El Güero´"),
    Place("010010010", "D'Artagnan N° 5, El"),
    Place("010010011", "<script>alert(1)</script>"),
    Place("010010012", "\N{RIGHT DOUBLE QUOTATION MARK}onmouseover="),
    Place("010020001", "Asientos", latitud="-", longitud="-"),
    Place("090020001", "Azcapotzalco", nom_ent="Ciudad de México", nom_mun="San Juan, Mixtepec -Dto. 08 -"),
    Place("320580044", "El Bellaco [Rancho]", nom_ent="Zacatecas", nom_abr="Zac."),
)  # fmt: skip


def many(count: int) -> list[Place]:
    """Return `count` places ordered by key: the traps and ordinary ones."""
    ordinary = (
        Place(f"{2 + n % 7:02d}{1 + n % 11:03d}{1 + n:04d}", f"Lugar {n}", nom_ent=f"Estado {2 + n % 7:02d}")
        for n in range(count - len(TRAPS))
    )
    return sorted([*(replace(trap) for trap in TRAPS if trap.cvegeo[:2] in {"01", "09", "32"}), *ordinary],
                  key=lambda place: place.cvegeo)  # fmt: skip


def lines_of(rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER, separator: str = ",") -> list[str]:
    """Write rows as INEGI does: every value quoted, none escaped."""
    return [separator.join(f'"{value}"' for value in row) for row in (header, *rows)]


def write_catalogue(path: Path, places: Iterable[Place], *, encoding: str = "utf-8-sig") -> Path:
    """Write a CSV file with INEGI's line endings."""
    text = "".join(f"{line}\r\n" for line in lines_of(place.values() for place in places))
    path.write_bytes(text.encode(encoding))
    return path


def unwatched(amount: int) -> None: ...


def read_catalogue(path: Path) -> CatalogueRecords:
    """Read a file as the importer does."""
    with open_table(path) as table:
        return transform(table, unwatched)


def refusal_of(source: str) -> str:
    """Open a catalogue that must be refused, and return the error message."""
    with pytest.raises(CatalogueError) as caught, open_source(source, StepProgress()):
        pass
    return str(caught.value)
