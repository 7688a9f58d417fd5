"""The columns of a table, the role of each, and its first rows, for a person who checks what was understood."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from localidades_api.bulk.rows import unique

SAMPLE_ROWS = 5
_MAX_CELL = 200  # characters

Sample = dict[str, Any]  # members on the wire, such as `columns`, `roles` and `rows`


def describe_sample(headers: Sequence[str], roles: Mapping[str, str], rows: Iterable[Sequence[str]]) -> Sample:
    """Return the names of columns, the name of the column of each role, and rows with a cell for each column."""
    width = len(headers)
    return {
        "columns": unique(headers),
        "roles": dict(roles),
        "rows": [
            [cell[:_MAX_CELL] for cell in row[:width]] + [""] * (width - len(row)) for row in islice(rows, SAMPLE_ROWS)
        ],
    }
