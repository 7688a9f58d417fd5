"""The formats of rows, and the reader of each."""

import weakref
from codecs import BOM_UTF8
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Final, Literal, TypeAlias

from localidades_api.bulk.columns import AnswerRows
from localidades_api.bulk.options import MatchReadingOptions
from localidades_api.bulk.readers import CsvReader, JsonReader, NdjsonReader, RowReader
from localidades_api.bulk.roles import ROLES, Named, Roles
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.kinds import START, ZIP, describe_kind
from localidades_api.files.web_page import WebPageError, write_workbook
from localidades_api.names.reading.areas import AreaBook

XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MediaType: TypeAlias = Literal[
    "text/csv",
    "application/x-ndjson",
    "application/json",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
]


def match_roles(options: MatchReadingOptions, areas: AreaBook | None) -> tuple[Roles, Named]:
    """Return the roles of the columns and the headers named for some; without `areas`, any text may be a municipio."""
    return ROLES.of_kind(options.kind).with_areas(options.columns, options.header_row, areas)


def reader(
    media_type: MediaType,
    file: IO[bytes],
    roles: Roles,
    named: Named | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    answer: AnswerRows | None = None,
) -> RowReader:
    """Return the reader of a format; `named` has the header of each role that the sender names.

    `answer` answers some of the first rows, to find the columns of places by their cells.

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
                rows = XlsxReader(workbook, roles, named or {}, sheet, header_row, answer)
                rows.layout.has_bom = True  # it was a table for Excel
                weakref.finalize(rows, stack.pop_all().close)
                return rows
    if media_type == XLSX:
        return XlsxReader(file, roles, named or {}, sheet, header_row, answer)
    if sheet is not None:
        raise UnreadableBodyError("Only a workbook (.xlsx) has sheets: leave out `sheet`.")
    if header_row and header_row > 1:
        raise UnreadableBodyError("Only a workbook (.xlsx) may have rows above its header: leave out `header_row`.")
    if media_type == "text/csv":
        return CsvReader(file, roles, named or {}, header_row, answer)
    if header_row is not None:
        raise UnreadableBodyError("Only CSV and workbooks have a header: leave out `header_row`.")
    return (JsonReader if media_type == "application/json" else NdjsonReader)(file, roles, named or {}, answer)


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
