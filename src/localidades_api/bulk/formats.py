"""The formats of rows, and the reader of each."""

from typing import IO, Final, Literal, TypeAlias

from localidades_api.bulk.input_rows import ROLES, Named, Roles
from localidades_api.bulk.options import MatchReadingOptions
from localidades_api.bulk.readers import CsvReader, JsonReader, NdjsonReader, RowReader
from localidades_api.bulk.sampled_cells import AnswerRows
from localidades_api.bulk.workbook_reader import XlsxReader
from localidades_api.errors import UnreadableBodyError
from localidades_api.files.kinds import ZIP
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
    no doubt.
    """
    if media_type in {XLSX, "text/csv"}:
        start = file.tell()
        media_type = XLSX if file.read(len(ZIP)) == ZIP else "text/csv"
        file.seek(start)
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
