"""Five workbooks such as offices send, made of INEGI's places of Hidalgo, with the right key of each row."""

import csv
import io
import random
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import openpyxl
from openpyxl.styles import Font, PatternFill

from tests.support.workbooks import workbook_of

CATALOGUE = Path(__file__).parents[1] / "data" / "ageeml_2024-10_hidalgo.zip"


class Office(NamedTuple):
    """A workbook: its name, its bytes, and the right keys of its rows in order."""

    name: str
    content: bytes
    keys: Sequence[str]


def offices(seed: int = 63, misspelt: int = 3000) -> Iterator[Office]:
    """Yield the workbooks; the last has as many rows as `misspelt` says, a third of them with a letter wrong."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    with zipfile.ZipFile(CATALOGUE) as archive:
        text = archive.read(archive.namelist()[0]).decode("utf-8-sig")
    places = [one for one in csv.DictReader(io.StringIO(text)) if not one["Estatus"]]
    large = sorted(places, key=lambda one: -int(one["POB_TOTAL"].strip("*-") or 0))

    titles = chance.sample(large[:400], 30)
    rows = [(at, one["NOM_LOC"].upper(), one["NOM_MUN"].upper(), "HGO.") for at, one in enumerate(titles, 1)]
    head = ("SECRETARÍA DE BIENESTAR",), ("Padrón de localidades",), (), ("No.", "LOCALIDAD", "MUNICIPIO", "ENTIDAD")
    yield Office("titulos.xlsx", workbook_of(*head, *rows, (None, "TOTAL", len(rows)), change=_bold), _keys(titles))

    grouped = sorted(chance.sample(large[:600], 30), key=lambda one: one["CVE_MUN"])
    typed = [(one["NOM_MUN"], _misspell(_misspell(one["NOM_LOC"], chance), chance), 1) for one in grouped]
    rows_of_merged = [("Municipio", "Localidad", "Visitas"), *typed]
    yield Office("combinadas.xlsx", workbook_of(*rows_of_merged, change=_merge), _keys(grouped))

    municipios = [*{one["CVE_MUN"]: one for one in places}.values()]
    named = [(_misspell(one["NOM_MUN"].upper(), chance), chance.randrange(9)) for one in municipios]
    yield Office(
        "municipios.xlsx", workbook_of(("Municipio", "Casos"), *named), [one["CVEGEO"][:5] for one in municipios]
    )

    wide = chance.sample(large[:800], 30)
    columns = [f"Dato {number}" for number in range(1, 15)]
    cells = [(one["NOM_LOC"].lower(), None, "Hidalgo", *range(13), "=SUM(D2:P2)") for one in wide]
    header = ("Localidad", "Municipio", "Estado", *columns)
    yield Office("columnas.xlsx", workbook_of(header, *cells, change=_colour), _keys(wide))

    many = [chance.choice(places) for _ in range(misspelt)]
    written = [
        (at, _misspell(one["NOM_LOC"], chance) if at % 3 == 0 else one["NOM_LOC"].upper(), one["NOM_MUN"], "Hgo")
        for at, one in enumerate(many)
    ]
    yield Office("miles.xlsx", workbook_of(("Folio", "Localidad", "Municipio", "Estado"), *written), _keys(many))


def _keys(places: Sequence[dict[str, str]]) -> list[str]:
    return [one["CVEGEO"] for one in places]


def _misspell(name: str, chance: random.Random) -> str:
    """Return a name with a letter changed, left out or doubled."""
    at = chance.randrange(len(name))
    return name[:at] + chance.choice(["", name[at] * 2, chance.choice("aeiounlrs")]) + name[at + 1 :]


def _bold(book: openpyxl.Workbook) -> None:
    book.worksheets[0]["A1"].font = Font(bold=True, size=14)
    book.worksheets[0].merge_cells("A1:D1")


def _colour(book: openpyxl.Workbook) -> None:
    book.worksheets[0]["A1"].fill = PatternFill("solid", fgColor="FFFF00")


def _merge(book: openpyxl.Workbook) -> None:
    """Merge the cells of equal municipios."""
    sheet, first = book.worksheets[0], 2
    for row in range(3, sheet.max_row + 2):
        if sheet.cell(row, 1).value != sheet.cell(first, 1).value:
            if row - first > 1:
                sheet.merge_cells(start_row=first, end_row=row - 1, start_column=1, end_column=1)
            first = row
