"""The formats of rows, and the reader of each."""

import weakref
from codecs import BOM_UTF8
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Final, Literal, TypeAlias

from localidades_api.bulk.columns import Reading
from localidades_api.bulk.readers import CsvReader, JsonReader, NdjsonReader, RowReader
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.kinds import START, ZIP, describe_kind
from localidades_api.files.web_page import WebPageError, write_workbook

XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MediaType: TypeAlias = Literal[
    "text/csv",
    "application/x-ndjson",
    "application/json",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
]


def reader(media_type: MediaType, file: IO[bytes], reading: Reading) -> RowReader:
    """Return the reader of a format.

    A workbook that is sent as CSV is read as one, and the other way round: it is the usual mistake, and the bytes leave
    no doubt. So is the table of a web page, which portals call `.xls`.
    """
    if media_type in {XLSX, "text/csv"}:
        start = file.tell()
        head = file.read(START)
        media_type = XLSX if head.startswith(ZIP) else "text/csv"
        file.seek(start)
        is_web_page = (describe_kind(head.removeprefix(BOM_UTF8)) or "").startswith("a web page")
        if is_web_page and (workbook := _workbook_of(file)):
            with ExitStack() as stack:
                stack.enter_context(workbook)
                rows = XlsxReader(workbook, reading)
                rows.layout.has_bom = True  # it was a table for Excel
                weakref.finalize(rows, stack.pop_all().close)
                return rows
    if media_type == XLSX:
        return XlsxReader(file, reading)
    if reading.sheet is not None:
        raise UnreadableBodyError("Only a workbook (.xlsx) has sheets: leave out `sheet`.")
    if reading.header_row and reading.header_row > 1:
        raise UnreadableBodyError("Only a workbook (.xlsx) may have rows above its header: leave out `header_row`.")
    if media_type == "text/csv":
        return CsvReader(file, reading)
    if reading.header_row is not None:
        raise UnreadableBodyError("Only CSV and workbooks have a header: leave out `header_row`.")
    return (JsonReader if media_type == "application/json" else NdjsonReader)(file, reading)


def _workbook_of(page: IO[bytes]) -> IO[bytes] | None:
    """Return the tables of a web page as a workbook; None if it has none, or too many, with the page as it was."""
    start, workbook = page.tell(), TemporaryFile()  # noqa: SIM115  # closed with its reader
    try:
        write_workbook(page, workbook)
    except WebPageError:
        workbook.close()
        page.seek(start)
        return None
    return workbook
