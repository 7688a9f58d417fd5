"""Reads the first sheet of an Excel workbook, row by row.

Libraries hold a sheet as a rectangle, python-calamine in twice the memory that an import takes, and a stray cell at the
end of the sheet, which takes 5 kB of a file, as one of 17 billion cells. This reader takes the memory of a row and of
the workbook's texts.
"""

import csv
import io
import posixpath
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from typing import IO
from zipfile import ZipFile

WORKBOOK = "xl/workbook.xml"
_RELATIONS = "xl/_rels/workbook.xml.rels"
_TEXTS = "xl/sharedStrings.xml"
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # ECMA-376 part 1, 22.9.2.19: ST_Xstring
_MAX_COLUMNS = 16_384

Open = Callable[[str], IO[bytes]]  # a member of the workbook by its name


def write_csv(archive: ZipFile, open_: Open, out: IO[bytes]) -> None:
    """Write the first sheet as CSV in UTF-8, every value quoted, and every row as wide as the first."""
    texts = list(_read_texts(open_)) if _TEXTS in archive.namelist() else []
    text = io.TextIOWrapper(out, "utf-8", newline="")
    rows = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    width = 0
    for row in _read_rows(open_, texts):
        width = width or len(row)
        rows.writerow([*row, *[""] * (width - len(row))])
    text.detach()  # which writes what it holds


def _read_texts(open_: Open) -> Iterator[str]:
    for element in _elements(open_, _TEXTS, "si"):
        yield _text_of(element)


def _read_rows(open_: Open, texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows that have a value, without empty cells at their end."""
    for element in _elements(open_, _first_sheet(open_), "row"):
        row: list[str] = []
        for cell in element:
            at = _column_of(cell.get("r", "")) if cell.get("r") else len(row)
            if (value := _value_of(cell, texts)) and len(row) <= at < _MAX_COLUMNS:
                row += [""] * (at - len(row))
                row.append(value)
        if row:
            yield row


def _first_sheet(open_: Open) -> str:
    """Return the name of the member with the first sheet."""
    sheet = next(_elements(open_, WORKBOOK, "sheet"), None)
    id_ = next((value for name, value in (sheet.items() if sheet is not None else ()) if name.endswith("}id")), None)
    for relation in _elements(open_, _RELATIONS, "Relationship"):
        if relation.get("Id") == id_:
            return posixpath.normpath(posixpath.join("/xl", relation.get("Target", ""))).lstrip("/")
    raise KeyError("the workbook has no sheet")


def _elements(open_: Open, member: str, name: str) -> Iterator[ET.Element]:
    """Yield the elements of a name as they are read; each is emptied afterwards."""
    with open_(member) as file:
        # Expat bounds what entities expand to, and ElementTree fetches none.
        for _, element in ET.iterparse(file, events=("end",)):  # noqa: S314
            if element.tag.rpartition("}")[2] == name:
                yield element
                element.clear()


def _column_of(reference: str) -> int:
    """Return the column of a cell such as `AB12`, from 0."""
    column = 0
    for letter in reference.rstrip("0123456789"):
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1


def _value_of(cell: ET.Element, texts: Sequence[str]) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text_of(cell)
    value = next((child.text for child in cell if child.tag.endswith("}v")), None) or ""
    if kind == "s":
        return texts[int(value)] if value else ""
    return _number(value) if kind == "n" and value else _unescape(value)


def _number(text: str) -> str:
    """Return a number as people write it: `21.880833000000001` is 21.880833."""
    number = float(text)
    return str(int(number)) if number.is_integer() else f"{number:.15g}"


def _text_of(element: ET.Element) -> str:
    return _unescape("".join(part.text or "" for part in element.iter() if part.tag.endswith("}t")))


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text).replace("\n", " ").replace("\r", " ")
