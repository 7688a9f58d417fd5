"""Rows as people have them: lists of texts or dicts, and tables of pandas and polars.

It imports pandas or polars only when it is given one of their tables.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

TEXT_COLUMN = "nombre"  # of texts, of a Series without a name, and of tables without columns

# The numbers among the columns of answers, by their names after `match_`, `match2_` or `nearest_`; others are text.
NUMBERS: Mapping[str, type[int] | type[float]] = {
    "score": float,
    "margin": float,
    "distancia": float,
    "latitud": float,
    "longitud": float,
    "id": int,
    "altitud": int,
    "poblacion": int,
    "poblacion_masculina": int,
    "poblacion_femenina": int,
    "viviendas": int,
    "localidades": int,
    "municipio_id": int,
    "estado_id": int,
}
_PANDAS_TYPES = {int: "Int64", float: "float64", str: "string"}
_POLARS_TYPES = {int: "Int64", float: "Float64", str: "String"}
_EXPECTED = "a list of texts or of dicts, a DataFrame or Series of pandas or polars, or a LazyFrame"

Columns: TypeAlias = Mapping[str, Sequence[str]]  # cells by the name of their column; a missing value is empty


class _DataFrame(Protocol):
    """Has what tables of pandas and polars have, and no other kind of rows."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def columns(self) -> Any: ...  # noqa: ANN401  # an Index of pandas, or a list


Frame = TypeVar("Frame", bound=_DataFrame)
Answered: TypeAlias = Any  # a DataFrame for a Series or a LazyFrame, a list of dicts for all else


class Table(NamedTuple):
    """Rows as text: the header, the lines, and a function that returns the first columns as they came, with more."""

    header: list[str]
    lines: Iterator[list[str]]
    with_columns: Callable[[int, Columns], Any]


def read_table(rows: object) -> Table:
    """Read rows, once; raise TypeError if they are neither a table nor a list of texts or dicts."""
    library = _library(rows)
    if library == "pandas":
        pandas = import_module(library)
        if isinstance(rows, pandas.Series):
            rows = rows.to_frame(rows.name if isinstance(rows.name, str) else TEXT_COLUMN)
        if isinstance(rows, pandas.DataFrame):
            return _read_pandas(rows, pandas)
    elif library == "polars":
        polars = import_module(library)
        if isinstance(rows, polars.Series):
            rows = rows.to_frame(rows.name or TEXT_COLUMN)
        elif isinstance(rows, polars.LazyFrame):
            rows = rows.collect()
        if isinstance(rows, polars.DataFrame):
            return _read_polars(rows, polars)
    return _read_list(rows)


def write_csv(lines: Iterable[Sequence[str]]) -> bytes:
    """Return rows as CSV, every cell quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
    return text.getvalue().encode()


def _library(rows: object) -> str | None:
    """Return the library that the class of rows, or one that it extends, is from: pandas or polars."""
    homes = (base.__module__.partition(".")[0] for base in type(rows).__mro__)  # a GeoDataFrame is one of pandas, too
    return next((home for home in homes if home in {"pandas", "polars"}), None)


def _read_pandas(rows: Any, pandas: Any) -> Table:  # noqa: ANN401  # a DataFrame, and its library
    def with_columns(kept: int, added: Columns) -> Any:  # noqa: ANN401  # a DataFrame, too
        kept_rows = rows.iloc[:, :kept] if kept < rows.shape[1] else rows  # which may be a GeoDataFrame
        return kept_rows.assign(
            **{name: pandas.array(_values(name, cells), _PANDAS_TYPES[_type(name)]) for name, cells in added.items()}
        )

    header = list(map(str, rows.columns)) or [TEXT_COLUMN]
    return Table(header, _as_text(rows.itertuples(index=False, name=None)), with_columns)


def _read_polars(rows: Any, polars: Any) -> Table:  # noqa: ANN401  # a DataFrame, and its library
    def with_columns(kept: int, added: Columns) -> Any:  # noqa: ANN401  # a DataFrame, too
        return rows.select(rows.columns[:kept]).with_columns(
            polars.Series(name, _values(name, cells), getattr(polars, _POLARS_TYPES[_type(name)]))
            for name, cells in added.items()
        )

    return Table(rows.columns or [TEXT_COLUMN], _as_text(rows.iter_rows()), with_columns)


def _read_list(rows: object) -> Table:
    dicts = _as_dicts(list(_check_list(rows)))
    names = list(dict.fromkeys(name for row in dicts for name in row))

    def with_columns(kept: int, added: Columns) -> list[dict[str, Any]]:
        values = {name: _values(name, cells) for name, cells in added.items()}
        own = [{name: row[name] for name in names[:kept] if name in row} for row in dicts]
        return [{**row, **{name: column[at] for name, column in values.items()}} for at, row in enumerate(own)]

    return Table(list(map(str, names)), _as_text([row.get(name) for name in names] for row in dicts), with_columns)


def _check_list(rows: object) -> Iterable[Any]:
    # A DataFrame of yet another library would yield the names of its columns.
    if isinstance(rows, str | bytes | Mapping) or hasattr(rows, "columns") or not isinstance(rows, Iterable):
        raise TypeError(f"Rows are {_EXPECTED}, not {_describe(rows)}.")
    return rows


def _as_dicts(rows: list[Any]) -> Sequence[Mapping[Any, object]]:
    """Return rows as dicts, also those that are texts; raise TypeError for a row that is not what the first one is."""
    are_dicts = bool(rows) and isinstance(rows[0], Mapping)
    for at, row in enumerate(rows):
        if not (isinstance(row, Mapping) if are_dicts else isinstance(row, str) or _is_missing(row)):
            raise TypeError(f"Rows are {_EXPECTED}: the item at {at} is {_describe(row)}.")
    return rows if are_dicts else [{TEXT_COLUMN: row} for row in rows]


def _describe(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")


def _as_text(lines: Iterable[Sequence[object]]) -> Iterator[list[str]]:
    return (list(map(_text, line)) for line in lines)


def _text(value: object) -> str:
    """Return a value as the text of a cell, a key that became a float because of missing values (14.0) as well."""
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or the NA or NaT of pandas."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  # only NaN and NaT differ from themselves
    except TypeError:  # from NA, which is neither true nor false
        return True
    except ValueError:  # from an array
        return False


def _type(name: str) -> type[int] | type[float] | type[str]:
    return NUMBERS.get(name.partition("_")[2], str)


def _values(name: str, cells: Sequence[str]) -> list[Any]:
    convert = _type(name)
    return [convert(cell) if cell else None for cell in cells]
