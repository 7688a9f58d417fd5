"""Records for downloads: lines of CSV, NDJSON and GeoJSON and rows of sheets, written by Postgres, or rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal

from sqlalchemy import Row, text

from localidades_api.catalogue.columns import COLUMNS, Kind, LocalityColumn
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import at_positions
from localidades_api.database.queries.formulas import key_as_formula, text_without_formula
from localidades_api.database.queries.places import PARENTS

LineFormat = Literal["csv", "excel", "ndjson", "geojson"]


def select_list(names: Iterable[str]) -> str:
    """Write the expressions of columns with their names."""
    return ", ".join(f"{COLUMNS[name].sql} AS {name}" for name in names)


_FROM = f"FROM localities AS l {PARENTS} WHERE l.release_id = :release_id AND"
_RECORDS = f"SELECT {select_list(COLUMNS)} {_FROM}"


def _csv() -> str:
    """Write a line of CSV (RFC 4180); keys are quoted, so that readers that respect quotes keep the zeros."""
    return _joined(
        f"""coalesce('"' || replace({column.sql}, '"', '""') || '"', '')"""
        if column.kind in {"text", "key"}
        else _plain(column.sql)
        for column in COLUMNS.values()
    )


def _excel() -> str:
    return _joined(
        key_as_formula(column.sql)
        if column.kind == "key"
        else text_without_formula(column.sql)
        if column.kind == "text"
        else _plain(column.sql)
        for column in COLUMNS.values()
    )


def _joined(values: Iterable[str]) -> str:
    return " || ',' || ".join(values) + " || E'\\r\\n'"


def _plain(sql: str) -> str:
    return f"coalesce({sql}::text, '')"


def json_object(names: Iterable[str]) -> str:
    """Write a JSON object with these columns.

    Postgres writes the JSON, which saves the worker that work and several values a row (docs/decisions/pages.md).
    """
    members = " || ',' || ".join(f"'\"{name}\":' || {_json(COLUMNS[name])}" for name in names)
    return f"'{{' || {members} || '}}'".replace("' || '", "")  # neighbouring literals are one


def _json(column: LocalityColumn) -> str:
    if column.kind == "key":  # digits, which need no escaping
        written = f"'\"' || {column.sql} || '\"'"
    else:
        written = f"to_json({column.sql})::text" if column.kind == "text" else f"{column.sql}::text"
    return f"coalesce({written}, 'null')" if column.nullable else written


def _feature() -> str:
    """Write a feature (RFC 7946); its geometry is null where the coordinates are unknown."""
    point = """'{"type":"Point","coordinates":[' || l.longitud || ',' || l.latitud || ']}'"""
    return (
        f"""'{{"type":"Feature","id":' || l.id || ',"geometry":' || coalesce({point}, 'null')"""
        f""" || ',"properties":' || {json_object(COLUMNS)} || '}}'"""
    )


_LINES: Mapping[LineFormat, tuple[str, str]] = {
    "csv": (_csv(), ""),
    "excel": (_excel(), ""),
    "ndjson": (json_object(COLUMNS) + " || E'\\n'", ""),
    "geojson": (_feature(), ",\n"),
}


_ROW_NUMBER = "(:after + row_number() OVER (ORDER BY l.position))"
_ESCAPED_IN_XML = "replace(replace(replace({}, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"


def _sheet_row() -> str:
    """Write a row of a sheet (SpreadsheetML); it keeps control characters, which XML can't hold."""
    cells = " || ".join(
        f"""coalesce('<c r="{letter}' || {_ROW_NUMBER} || {_cell(column.sql, column.kind)} || '</c>', '')"""
        for letter, column in zip(ascii_uppercase[: len(COLUMNS)], COLUMNS.values(), strict=True)
    )
    return f"""'<row r="' || {_ROW_NUMBER} || '">' || {cells} || '</row>'"""


def _cell(sql: str, kind: Kind) -> str:
    if kind == "key":
        return f"""'" t="inlineStr"><is><t>' || {sql} || '</t></is>'"""
    if kind == "text":
        text_ = _ESCAPED_IN_XML.format(sql)
        return f"""'" t="inlineStr"><is><t xml:space="preserve">' || {text_} || '</t></is>'"""
    if kind == "boolean":
        return f"""'" t="b"><v>' || ({sql})::int || '</v>'"""
    return f"""'"><v>' || {sql} || '</v>'"""


_SHEET_ROW = _sheet_row()


async def list_lines(
    database: Database, release: Release, positions: Sequence[int], format_: LineFormat
) -> tuple[int, bytes]:
    """Return how many localities are at these positions, and their lines in UTF-8."""
    line, between = _LINES[format_]
    chosen, parameters = at_positions(positions)
    lines, parameters = f"{line}, :between ORDER BY l.position", {**parameters, "between": between}
    return await _join(database, release, lines, f"{_FROM} {chosen}", parameters)


async def list_sheet_rows(
    database: Database, release: Release, positions: Sequence[int], after: int
) -> tuple[int, bytes]:
    """Return how many localities are at these positions, and their rows of a sheet below row `after`, in UTF-8."""
    chosen, parameters = at_positions(positions)
    numbered = f"FROM (SELECT l.position, {_SHEET_ROW} AS line {_FROM} {chosen}) AS rows"
    return await _join(database, release, "line, '' ORDER BY position", numbered, {**parameters, "after": after})


async def _join(
    database: Database, release: Release, lines: str, source: str, parameters: Mapping[str, object]
) -> tuple[int, bytes]:
    joined = f"coalesce(convert_to(string_agg({lines}), 'UTF8'), '')"
    statement = text(f"SELECT count(*) AS quantity, {joined} AS lines {source}")
    [row] = await database.fetch_from(release, statement, parameters)
    return row.quantity, bytes(row.lines)


async def list_records(database: Database, release: Release, positions: Sequence[int]) -> Sequence[Row[Any]]:
    """Return the localities at these positions, with every column."""
    chosen, parameters = at_positions(positions)
    return await database.fetch_from(release, text(f"{_RECORDS} {chosen} ORDER BY l.position"), parameters)


async def list_records_with_keys(database: Database, release: Release, ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return the localities that have these keys, with every column, in any order."""
    return await database.fetch_from(release, text(f"{_RECORDS} l.id = ANY(:ids)"), {"ids": list(ids)})
