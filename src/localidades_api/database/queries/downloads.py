"""Whole records for downloads: lines of CSV, NDJSON and GeoJSON and rows of sheets that Postgres writes, or rows."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal

from sqlalchemy import Integer, Row, text

from localidades_api.catalogue.columns import COLUMNS, POINT, Kind, LocalityColumn
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import metadata
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import at_positions

LineFormat = Literal["csv", "excel", "ndjson", "geojson"]

_ALIASES = {"localities": "l", "municipalities": "m", "states": "s"}


def _sql(column: LocalityColumn) -> str:
    """Write the expression of a column."""
    table, _, name = column.source.partition(".")
    sql = f"{_ALIASES[table]}.{name}"
    is_number = isinstance(metadata.tables[table].c[name].type, Integer)
    return f"lpad({sql}::text, {column.digits}, '0')" if is_number and column.digits else sql


EXPRESSIONS: Mapping[str, str] = {name: _sql(column) for name, column in COLUMNS.items()}
_SELECTED = ", ".join(f"{sql} AS {name}" for name, sql in EXPRESSIONS.items())
_FROM = """
      FROM localities AS l
      JOIN municipalities AS m ON m.release_id = l.release_id AND m.id = l.municipio_id
      JOIN states AS s ON s.release_id = m.release_id AND s.id = m.estado_id
     WHERE l.release_id = :release_id AND
"""


def _typed_expressions() -> Iterator[tuple[str, Kind]]:
    """Yield the expression and the kind of each column."""
    return ((EXPRESSIONS[name], column.kind) for name, column in COLUMNS.items())


def _csv() -> str:
    """Write a line of CSV (RFC 4180); keys are quoted, so that readers that respect quotes keep the zeros."""
    return _joined(
        f"""coalesce('"' || replace({sql}, '"', '""') || '"', '')""" if kind in {"text", "key"} else _plain(sql)
        for sql, kind in _typed_expressions()
    )


# What a spreadsheet takes for the start of a formula, after any blanks; in Japanese, also the full-width signs.
_FORMULA = r"^([\u0001-\u0020\u00a0]*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n])"


def _excel() -> str:
    """Write a line for spreadsheets: keys are formulas of their text, and other texts can't be taken for formulas."""
    return _joined(
        f'\'"=""\' || {sql} || \'"""\''
        if kind == "key"
        else f"""coalesce('"' || regexp_replace(replace({sql}, '"', '""'), '{_FORMULA}', '''\\1') || '"', '')"""
        if kind == "text"
        else _plain(sql)
        for sql, kind in _typed_expressions()
    )


def _joined(values: Iterable[str]) -> str:
    return " || ',' || ".join(values) + " || E'\\r\\n'"


def _plain(sql: str) -> str:
    return f"coalesce({sql}::text, '')"


def json_object(names: Sequence[str]) -> str:
    """Write a JSON object with these columns."""
    members = " || ',' || ".join(
        f"'\"{name}\":' || " + f"coalesce({_json(EXPRESSIONS[name], COLUMNS[name].kind)}, 'null')" for name in names
    )
    return f"'{{' || {members} || '}}'"


def _json(sql: str, kind: Kind) -> str:
    return f"to_json({sql})::text" if kind in {"text", "key"} else f"{sql}::text"


def _feature() -> str:
    """Write a feature (RFC 7946); its geometry is null where the coordinates are unknown."""
    properties = json_object([name for name in COLUMNS if name not in {"id", *POINT}])
    point = """'{"type":"Point","coordinates":[' || l.longitud || ',' || l.latitud || ']}'"""
    return (
        f"""'{{"type":"Feature","id":' || l.id || ',"geometry":' || coalesce({point}, 'null')"""
        f""" || ',"properties":' || {properties} || '}}'"""
    )


_LINES: Mapping[LineFormat, tuple[str, str]] = {
    "csv": (_csv(), ""),
    "excel": (_excel(), ""),
    "ndjson": (json_object(list(COLUMNS)) + " || E'\\n'", ""),
    "geojson": (_feature(), ",\n"),
}


_ROW_NUMBER = "(:after + row_number() OVER (ORDER BY l.position))"
_ESCAPED_IN_XML = "replace(replace(replace({}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"


def _sheet_row() -> str:
    """Write a row of a sheet (SpreadsheetML); control characters, which XML can't hold, are left as they are."""
    cells = " || ".join(
        f"""coalesce('<c r="{letter}' || {_ROW_NUMBER} || {_cell(sql, kind)} || '</c>', '')"""
        for letter, (sql, kind) in zip(ascii_uppercase[: len(COLUMNS)], _typed_expressions(), strict=True)
    )
    return f"""'<row r="' || {_ROW_NUMBER} || '">' || {cells} || '</row>'"""


def _cell(sql: str, kind: Kind) -> str:
    if kind == "key":
        return f"""'" t="inlineStr"><is><t>' || {sql} || '</t></is>'"""
    if kind == "text":
        text_ = _ESCAPED_IN_XML.format(sql)
        return f"""'" t="inlineStr"><is><t xml:space="preserve">' || {text_} || '</t></is>'"""
    return f"""'"><v>' || {sql} || '</v>'"""


_SHEET_ROW = _sheet_row()


class RecordsRepository:
    """Reads records in chunks; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_lines(self, release: Release, places: Sequence[int], format_: LineFormat) -> tuple[int, bytes]:
        """Return how many localities are at these positions, and their lines in UTF-8."""
        line, between = _LINES[format_]
        chosen, parameters = at_positions(release, places)
        rows = await self._database.fetch_from(
            release,
            text(
                f"""
                SELECT count(*) AS quantity,
                       coalesce(convert_to(string_agg({escaped(line)}, :between ORDER BY l.position), 'UTF8'), '')
                       AS lines
                {_FROM} {chosen}
                """
            ),
            {**parameters, "between": between},
        )
        return rows[0].quantity, bytes(rows[0].lines)

    async def list_sheet_rows(self, release: Release, places: Sequence[int], after: int) -> tuple[int, bytes]:
        """Return how many localities are at these positions, and their rows of a sheet below row `after`, in UTF-8."""
        chosen, parameters = at_positions(release, places)
        rows = await self._database.fetch_from(
            release,
            text(
                f"""
                SELECT count(*) AS quantity,
                       coalesce(convert_to(string_agg(line, '' ORDER BY position), 'UTF8'), '') AS lines
                FROM (SELECT l.position, {_SHEET_ROW} AS line {_FROM} {chosen}) AS rows
                """
            ),
            {**parameters, "after": after},
        )
        return rows[0].quantity, bytes(rows[0].lines)

    async def list_rows(self, release: Release, places: Sequence[int]) -> Sequence[Row[Any]]:
        """Return the localities at these positions, with every column."""
        chosen, parameters = at_positions(release, places)
        statement = f"SELECT {_SELECTED} {_FROM} {chosen} ORDER BY l.position"
        return await self._database.fetch_from(release, text(statement), parameters)

    async def list_by_key(self, release: Release, ids: Collection[int]) -> Sequence[Row[Any]]:
        """Return the localities that have these keys, with every column, in any order."""
        return await self._database.fetch_from(
            release,
            text(f"SELECT {_SELECTED} {_FROM} l.id = ANY(:ids)"),
            {"release_id": release.id, "ids": list(ids)},
        )


def escaped(sql: str) -> str:
    """Escape `:word` in literals, which SQLAlchemy would take for a parameter."""
    return sql.replace('":', '"\\:')
