"""The table of columns, held against everything that a new column touches."""

from localidades_api.catalogue.columns import COLUMNS, RECORD, ColumnType, LocalityRow
from localidades_api.catalogue.schemas import LocalityRecord
from localidades_api.extensions.reconcile.vocabulary import FETCHED, PROPERTIES
from tests.support.postgres import run_sql
from tests.support.wire import ROOT

# What Postgres calls the type of a column; a key comes from text, or from a number that gets its zeros back.
DATABASE_TYPES: dict[ColumnType, set[str]] = {
    "key": {"text", "integer"}, "integer": {"integer"}, "count": {"integer"}, "latitude": {"double precision"},
    "longitude": {"double precision"}, "ambito": {"text"}, "text": {"text"},
}  # fmt: skip


async def test_every_column_is_read_from_one_of_its_type_in_the_database(database: str) -> None:
    found = await run_sql(
        database,
        "SELECT table_name || '.' || column_name AS name, data_type, is_nullable, col_description("
        " format('%I', table_name)::regclass, ordinal_position::int) AS comment"
        " FROM information_schema.columns WHERE table_schema = 'public'",
    )
    stored = {row["name"]: row for row in found}
    for column in COLUMNS.values():
        source = stored[column.source]
        assert source["data_type"] in DATABASE_TYPES[column.type]
        assert (source["is_nullable"] == "YES") == column.nullable
        assert not column.comment or source["comment"] == column.comment
    computed = {"release_id", "position", "folded", "prominence"}
    names = {name.partition(".")[2] for name in stored if name.startswith("localities.")}
    assert names == {*LocalityRow._fields} | computed
    assert tuple(LocalityRecord.model_fields) == RECORD


IN_SPANISH = {2: "dos", 3: "tres", 4: "cuatro", 5: "cinco", 9: "nueve"}


def test_every_column_has_words_of_its_own() -> None:
    assert len({(column.label, column.meaning_es) for column in COLUMNS.values()}) == len(COLUMNS)
    guides = [(ROOT / page).read_text(encoding="utf-8") for page in ("docs/guides/files.md", "docs/es/guides/files.md")]
    for name, column in COLUMNS.items():
        assert column.label
        assert (column.meaning.endswith("."), column.meaning_es.endswith(".")) == (True, False)
        assert (column.type == "key") == bool(column.digits)
        assert not column.digits or f"{IN_SPANISH[column.digits]} dígitos" in column.meaning_es
        assert all(f"`{name}`" in guide for guide in guides)


def test_every_column_can_be_fetched_by_reconciliation_but_the_keys_for_joins() -> None:
    assert set(FETCHED["localidad"]) == COLUMNS.keys() - {"cve_ent", "cve_mun", "cvegeo_mun"}
    assert all(PROPERTIES[name].name == COLUMNS[name].label for name in FETCHED["localidad"])
