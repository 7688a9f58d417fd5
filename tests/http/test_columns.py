"""The table of columns, held against everything that a new column touches."""

import io
import types
from typing import Union, get_args, get_origin, get_type_hints

import asyncpg
import httpx
import openpyxl
import pytest

from localidades_api.api.reconcile.vocabulary import FETCHED, PROPERTIES
from localidades_api.catalogue.columns import (
    ATTRIBUTES,
    COLUMNS,
    RECORD,
    ColumnType,
    LocalityColumn,
    LocalityRow,
)
from localidades_api.catalogue.schemas import LocalityRecord
from localidades_api.database.models import metadata
from localidades_api.importer.extract import COLUMNS as IMPORTED
from tests.support.downloads import DOWNLOAD
from tests.support.wire import ROOT

# What Postgres calls the type of a column; a key comes from text, or from a number that gets its zeros back.
DATABASE_TYPES: dict[ColumnType, set[str]] = {
    "key": {"text", "integer"}, "integer": {"integer"}, "count": {"integer"}, "latitude": {"double precision"},
    "longitude": {"double precision"}, "ambito": {"text"}, "text": {"text"},
}  # fmt: skip
PYTHON_TYPES: dict[str, type] = {"key": str, "integer": int, "number": float, "text": str}


def type_of(column: LocalityColumn) -> set[object]:
    return {PYTHON_TYPES[column.kind], *([type(None)] if column.nullable else [])}


def options_of(hint: object) -> set[object]:
    """Return the types of a union, or the one type; a literal is of the type of its values."""
    options = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    values = [value for option in options for value in (get_args(option) or [option])]
    return {type(value) if isinstance(value, str) else value for value in values}


async def test_every_column_is_read_from_one_of_its_type_in_the_database(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        found = await connection.fetch(
            "SELECT table_name || '.' || column_name AS name, data_type, is_nullable, col_description("
            " format('%I', table_name)::regclass, ordinal_position::int) AS comment"
            " FROM information_schema.columns WHERE table_schema = 'public'"
        )
    finally:
        await connection.close()
    stored = {row["name"]: row for row in found}
    for column in COLUMNS.values():
        source = stored[column.source]
        assert source["data_type"] in DATABASE_TYPES[column.type]
        assert (source["is_nullable"] == "YES") == column.nullable
        assert not column.comment or source["comment"] == column.comment
    computed = {"release_id", "position", "folded", "prominence"}
    names = {name.partition(".")[2] for name in stored if name.startswith("localities.")}
    assert names == {*LocalityRow._fields} | computed


def test_every_stored_column_is_a_field_of_the_row_that_is_imported() -> None:
    assert LocalityRow._fields == ("id", "municipio_id", "clave", "nombre", *ATTRIBUTES)
    assert [column.name for column in metadata.tables["localities"].columns if column.name in ATTRIBUTES] == [
        *ATTRIBUTES
    ]
    for name, hint in get_type_hints(LocalityRow).items():
        assert options_of(hint) == type_of(COLUMNS[name])
    assert [*IMPORTED][-len(ATTRIBUTES) :] == [*ATTRIBUTES]


def test_every_column_of_a_record_is_a_field_of_its_schema() -> None:
    assert tuple(LocalityRecord.model_fields) == RECORD
    for name, field in LocalityRecord.model_fields.items():
        column = COLUMNS[name]
        assert options_of(field.annotation) == type_of(column)
        assert field.description == column.meaning
        assert field.examples in ([column.example], None)


IN_SPANISH = {2: "dos", 3: "tres", 4: "cuatro", 5: "cinco", 9: "nueve"}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=list(COLUMNS))
def test_every_column_has_its_words(column: LocalityColumn) -> None:
    assert COLUMNS[column.name] is column
    assert column.label
    assert column.meaning.endswith(".")
    assert column.meaning_es
    assert not column.meaning_es.endswith(".")
    assert (column.type == "key") == bool(column.digits)
    assert not column.digits or f"{IN_SPANISH[column.digits]} dígitos" in column.meaning_es
    same = (column.label, column.meaning_es)
    assert [one for one in COLUMNS.values() if (one.label, one.meaning_es) == same] == [column]
    for page in ("docs/guides/files.md", "docs/es/guides/files.md"):
        assert f"`{column.name}`" in (ROOT / page).read_text(encoding="utf-8")


async def test_sheet_gives_names_more_room_than_keys_and_numbers(client: httpx.AsyncClient) -> None:
    content = (await client.get(f"{DOWNLOAD}?format=xlsx&cvegeo=010010001")).content
    sheet = openpyxl.load_workbook(io.BytesIO(content))["Localidades"]
    widths = {
        number: one.width
        for one in sheet.column_dimensions.values()
        for number in range(one.min or 0, (one.max or 0) + 1)
    }
    for number, column in enumerate(COLUMNS.values(), 1):
        assert (widths[number] > 20) == (column.kind == "text")


def test_every_column_can_be_fetched_by_reconciliation_but_the_keys_for_joins() -> None:
    assert set(FETCHED["localidad"]) == COLUMNS.keys() - {"cve_ent", "cve_mun", "cvegeo_mun"}
    assert all(PROPERTIES[name].name == COLUMNS[name].label for name in FETCHED["localidad"])
