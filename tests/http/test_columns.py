"""The table of columns, held against everything that a new column touches."""

from localidades_api.catalogue.columns import ATTRIBUTES, COLUMNS, ColumnType, LocalityRow
from localidades_api.database.queries.places import PARENTS
from tests.support.postgres import run_sql

# What Postgres calls the type of a column.
DATABASE_TYPES: dict[ColumnType, str] = {
    "key": "text", "integer": "integer", "count": "integer", "latitude": "double precision",
    "longitude": "double precision", "ambito": "text", "text": "text", "boolean": "boolean",
}  # fmt: skip


async def test_every_column_has_its_type_and_its_values_in_the_database(seeded_database: str) -> None:
    for column in COLUMNS.values():
        [row] = await run_sql(
            seeded_database,
            f"SELECT min(pg_typeof({column.sql})::text) AS type, bool_or({column.sql} IS NULL) AS has_null"  # noqa: S608
            f" FROM localities AS l {PARENTS}",
        )
        assert row["type"] == DATABASE_TYPES[column.type]
        assert column.nullable or not row["has_null"]


async def test_every_imported_column_is_in_the_table_of_localities(database: str) -> None:
    found = await run_sql(
        database,
        "SELECT attname AS name, NOT attnotnull AS nullable, col_description(attrelid, attnum) AS comment"
        " FROM pg_attribute WHERE attrelid = 'localities'::regclass AND attnum > 0 AND NOT attisdropped",
    )
    stored = {row["name"]: row for row in found}
    assert stored.keys() == {*LocalityRow._fields} | {"release_id", "position", "folded", "prominence"}
    for name, column in ATTRIBUTES.items():
        assert (stored[name]["nullable"], stored[name]["comment"]) == (column.nullable, column.comment)


IN_SPANISH = {2: "dos", 3: "tres", 4: "cuatro", 5: "cinco", 9: "nueve"}


def test_every_column_has_words_of_its_own() -> None:
    assert len({(column.label, column.meaning_es) for column in COLUMNS.values()}) == len(COLUMNS)
    for column in COLUMNS.values():
        assert column.label
        assert (column.meaning.endswith("."), column.meaning_es.endswith(".")) == (True, False)
        assert (column.type == "key") == bool(column.digits)
        assert not column.digits or f"{IN_SPANISH[column.digits]} dígitos" in column.meaning_es
