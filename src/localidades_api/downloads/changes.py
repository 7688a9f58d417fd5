"""Downloads of the changes between two releases, as NDJSON, CSV or an Excel workbook."""

import asyncio
import csv
import io
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple

import xlsxwriter
from pydantic_core import to_json
from sqlalchemy import Row
from xlsxwriter.worksheet import Worksheet

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.catalogue.schemas import CHANGE_KINDS, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.changes import list_localities_of_both
from localidades_api.errors import DatabaseUnavailableError

ChangesFormat = Literal["ndjson", "csv", "xlsx"]

_CHUNK = 2000  # changes read per statement
_BLOCK = 65536  # bytes of a workbook read at once
_WIDTH = 18  # letters of a column
_KEYS = "D1:E1048576"  # the cells of keys, which Excel would mark as numbers
_OPTIONS = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
_COMPARED = ("nombre", *ATTRIBUTES)
_HEADER = (
    *("change", "id", "municipio_id", "cvegeo", "clave", "nombre", "municipio", "estado", "differs"),
    *(f"{when}_{name}" for name in _COMPARED for when in ("before", "after")),
)
_NOT_RECORD = {"release_id", "municipio", "estado"}  # columns of a row that are not of the locality


class ChangedPlace(NamedTuple):
    """A change, as in JSON, and the names of the locality's municipio and estado."""

    content: dict[str, Any]
    municipio: str
    estado: str


async def describe_changes(database: Database, old: Release, new: Release, changes: "array[int]") -> list[ChangedPlace]:
    """Return changes with the locality's record in each of the two releases.

    `changes` is a flat array of pairs: the number of a kind, and a key.
    """
    if not changes:
        return []
    records = await list_localities_of_both(database, old, new, sorted(set(changes[1::2])))
    found = []
    for kind, id_ in zip(changes[0::2], changes[1::2], strict=True):
        before, after = records.get((old.id, id_)), records.get((new.id, id_))
        if (row := after or before) is None:
            raise DatabaseUnavailableError(f"The database has lost the record {id_} of a comparison.")
        content = {"change": CHANGE_KINDS[kind], "id": id_, "before": _record(before), "after": _record(after)}
        found.append(ChangedPlace(content, row.municipio, row.estado))
    return found


def _record(row: Row[Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: value for name, value in row._asdict().items() if name not in _NOT_RECORD}


def write_changes(
    database: Database, old: Release, new: Release, changes: "array[int]", format_: ChangesFormat
) -> AsyncGenerator[bytes, None]:
    """Write a file of changes.

    A table has a row for each change, with the whole record before and after, and the names of the columns that differ.
    Raises DatabaseUnavailableError if records are missing.
    """

    async def described() -> AsyncIterator[list[ChangedPlace]]:
        for start in range(0, len(changes), _CHUNK * 2):
            yield await describe_changes(database, old, new, changes[start : start + _CHUNK * 2])

    match format_:
        case "ndjson":
            return _write_ndjson(described())
        case "csv":
            return _write_csv(described())
        case "xlsx":
            return _write_xlsx(described(), f"{old.name} → {new.name}")


async def _write_ndjson(chunks: AsyncIterator[list[ChangedPlace]]) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        yield b"".join(to_json(change.content) + b"\n" for change in chunk)


async def _write_csv(chunks: AsyncIterator[list[ChangedPlace]]) -> AsyncGenerator[bytes, None]:
    head = _lines([_HEADER])
    async for chunk in chunks:
        yield head + _lines(map(_cells, chunk))
        head = b""
    yield head


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cells(change: ChangedPlace) -> list[object]:
    before, after = change.content["before"], change.content["after"]
    present = after or before
    keys = [present[name] for name in ("id", "municipio_id", "cvegeo", "clave", "nombre")]
    differs = [name for name in _COMPARED if before and after and before[name] != after[name]]
    return [
        *(change.content["change"], *keys, change.municipio, change.estado, ",".join(differs)),
        *(record and record[name] for name in _COMPARED for record in (before, after)),
    ]


async def _write_xlsx(chunks: AsyncIterator[list[ChangedPlace]], title: str) -> AsyncGenerator[bytes, None]:
    """Write the workbook to a temporary file, then send it: XlsxWriter completes it at the end."""
    with TemporaryFile() as file:
        workbook = xlsxwriter.Workbook(file, _OPTIONS)
        try:
            sheet = workbook.add_worksheet("Cambios")
            sheet.write_row(0, 0, _HEADER, workbook.add_format({"bold": True}))
            sheet.freeze_panes(1, 0)
            sheet.set_column(0, len(_HEADER) - 1, _WIDTH)
            sheet.ignore_errors({"number_stored_as_text": _KEYS})
            workbook.set_properties({"title": title})
            count = 0
            async for chunk in chunks:
                await asyncio.to_thread(_write_rows, sheet, count + 1, chunk)
                count += len(chunk)
            sheet.autofilter(0, 0, count, len(_HEADER) - 1)
        finally:
            await asyncio.to_thread(workbook.close)  # also deletes a temporary file of XlsxWriter's
        file.seek(0)
        while block := await asyncio.to_thread(file.read, _BLOCK):
            yield block


def _write_rows(sheet: Worksheet, first: int, changes: Sequence[ChangedPlace]) -> None:
    for number, change in enumerate(changes, start=first):
        sheet.write_row(number, 0, _cells(change))
