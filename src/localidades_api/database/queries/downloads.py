"""Records for downloads: lines of CSV, NDJSON and GeoJSON and rows of sheets, written by Postgres, or rows."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal

from sqlalchemy import Row, text

from localidades_api.catalogue.columns import COLUMNS, Kind, LocalityColumn
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.conditions import at_positions
from localidades_api.database.queries.places import PARENTS
from localidades_api.errors import DatabaseUnavailableError

LineFormat = Literal["csv", "ndjson", "geojson"]


def select_list(names: Iterable[str]) -> str:
    """Write the expressions of columns with their names."""
    return ", ".join(f"{COLUMNS[name].sql} AS {name}" for name in names)


_FROM = f"FROM localities AS l {PARENTS} WHERE l.release_id = :release_id AND"
_RECORDS = f"SELECT {select_list(COLUMNS)} {_FROM}"


def _csv() -> str:
    """Write a line of CSV (RFC 4180); keys are quoted, so that readers that respect quotes keep the zeros."""
    values = (
        f"""coalesce('"' || replace({column.sql}, '"', '""') || '"', '')"""
        if column.kind in {"text", "key"}
        else f"coalesce({column.sql}::text, '')"
        for column in COLUMNS.values()
    )
    return " || ',' || ".join(values) + " || E'\\r\\n'"


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


async def list_lines(database: Database, release: Release, positions: Sequence[int], format_: LineFormat) -> bytes:
    """Return the lines of the localities at these positions, in UTF-8; raise as `list_records` does."""
    line, between = _LINES[format_]
    chosen, parameters = at_positions(positions)
    lines = f"{line}, :between ORDER BY l.position"
    return await _join(database, release, positions, lines, f"{_FROM} {chosen}", {**parameters, "between": between})


async def list_sheet_rows(database: Database, release: Release, positions: Sequence[int], after: int) -> bytes:
    """Return the rows of a sheet below row `after`, in UTF-8; raise as `list_records` does."""
    chosen, parameters = at_positions(positions)
    numbered = f"FROM (SELECT l.position, {_SHEET_ROW} AS line {_FROM} {chosen}) AS rows"
    lines = "line, '' ORDER BY position"
    return await _join(database, release, positions, lines, numbered, {**parameters, "after": after})


async def _join(
    database: Database,
    release: Release,
    positions: Sequence[int],
    lines: str,
    source: str,
    parameters: Mapping[str, object],
) -> bytes:
    joined = f"coalesce(convert_to(string_agg({lines}), 'UTF8'), '')"
    statement = text(f"SELECT count(*) AS quantity, {joined} AS lines {source}")
    [row] = await database.fetch_from(release, statement, parameters)
    _check_whole(row.quantity, positions)
    return bytes(row.lines)


def _check_whole(count: int, positions: Sequence[int]) -> None:
    if count != len(positions):
        raise DatabaseUnavailableError(f"The database returned {count} of {len(positions)} records.")


async def list_records(database: Database, release: Release, positions: Sequence[int]) -> Sequence[Row[Any]]:
    """Return the localities at these positions, with every column; raise DatabaseUnavailableError if any is missing."""
    chosen, parameters = at_positions(positions)
    rows = await database.fetch_from(release, text(f"{_RECORDS} {chosen} ORDER BY l.position"), parameters)
    _check_whole(len(rows), positions)
    return rows


async def list_records_with_keys(database: Database, release: Release, ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return the localities that have these keys, with every column, in any order."""
    return await database.fetch_from(release, text(f"{_RECORDS} l.id = ANY(:ids)"), {"ids": list(ids)})
