"""Readers of rows on bytes, and the same answer to each row."""

import io
from tempfile import TemporaryFile
from typing import Any

from localidades_api.bulk.answer_columns import MATCH_COLUMNS, AnswerColumns
from localidades_api.bulk.columns import AnswerRows, Reading
from localidades_api.bulk.formats import MediaType, reader
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.readers import RowReader
from localidades_api.bulk.roles import ROLES, Named, Roles
from localidades_api.bulk.workbook_writers import Summary
from localidades_api.bulk.writers import writer
from localidades_api.catalogue.keys import PlaceKind

CSV: MediaType = "text/csv"
NDJSON: MediaType = "application/x-ndjson"
JSON: MediaType = "application/json"


class _Body(io.BytesIO):
    """A body in memory whose copy on the disk has the descriptor that the reader of a workbook needs."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._copy = TemporaryFile()  # noqa: SIM115  # closed with the body
        self._copy.write(data)
        self._copy.flush()

    def fileno(self) -> int:
        return self._copy.fileno()

    def close(self) -> None:
        self._copy.close()
        super().close()


def open_rows(
    data: bytes,
    media_type: MediaType = CSV,
    *,
    roles: Roles = ROLES,
    named: Named | None = None,
    kind: PlaceKind | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    answer: AnswerRows | None = None,
) -> RowReader:
    """Return the reader of a body that has been checked."""
    source = reader(media_type, _Body(data), Reading(roles.of_kind(kind), named or {}, sheet, header_row, answer))
    for _ in source.check():
        pass
    return source


def rows_in(data: bytes, media_type: MediaType = CSV, **options: Any) -> list[Row]:  # noqa: ANN401  # passed on
    return list(open_rows(data, media_type, **options))


def answer_all(
    source: RowReader,
    answer: Answer,
    wanted: MediaType,
    columns: AnswerColumns = MATCH_COLUMNS,
    summary: Summary | None = None,
) -> bytes:
    """Write the same answer beside each row."""
    target = writer(wanted, source, columns, summary)
    return b"".join([target.begin(), *(target.write(row, answer) for row in source), target.end()])
