"""Tables of rows as people hold them: DataFrames of pandas or polars, and lists of dicts.

It imports pandas or polars only when it is given such a table.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

_NUMBERS = ("_score", "_margin")  # ends of the names of columns


def _library(rows: object) -> str | None:
    """Return whose table rows are, pandas or polars; None for a list."""
    homes = (one.__module__.partition(".")[0] for one in type(rows).__mro__)  # a GeoDataFrame is one of pandas, too
    return next((home for home in homes if home in {"pandas", "polars"}), None)


def _table(rows: Any) -> tuple[list[str], Iterator[Sequence[object]]]:  # noqa: ANN401  # a table of either, or a list
    """Return the header and the lines of rows; a missing value is None."""
    if (library := _library(rows)) == "pandas":
        known = rows.astype(object).where(rows.notna(), None)
        return list(map(str, rows.columns)), known.itertuples(index=False, name=None)
    if library == "polars":
        return list(rows.columns), rows.iter_rows()
    header = list(dict.fromkeys(name for row in rows for name in row))
    return header, ([row.get(name) for name in header] for row in rows)


def _cell(value: object) -> object:
    """Return a key that became a float because of missing values (14.0) as text."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _value(name: str, cell: str) -> str | float | None:
    return None if cell == "" else float(cell) if name.endswith(_NUMBERS) else cell


def _beside(rows: Any, added: Mapping[str, list[Any]]) -> Any:  # noqa: ANN401  # as above
    """Return rows with columns added: text, even where all of it is missing, and numbers."""
    if (library := _library(rows)) == "pandas":
        array = import_module(library).array
        return rows.assign(
            **{
                name: array(values, "float64" if name.endswith(_NUMBERS) else "string")
                for name, values in added.items()
            }
        )
    if library == "polars":
        polars = import_module(library)
        return rows.with_columns(
            polars.Series(name, values, polars.Float64 if name.endswith(_NUMBERS) else polars.String)
            for name, values in added.items()
        )
    return [{**row, **{name: values[at] for name, values in added.items()}} for at, row in enumerate(rows)]
