import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from localidades_api.database.models import metadata
from tests.importer.imports import started
from tests.support.application import import_into
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import alembic_config, execute, new_database, own_name
from tests.support.waiting import eventually, in_thread
from tests.support.wire import ROOT, environment, run

OF_EXTENSIONS = {"outline_edition", "outlines", "outline_rings"}
TABLES = {*metadata.tables, *OF_EXTENSIONS, "localidades_alembic_version"}
SEEDED = [("2020-01", 132, 132, True)]
REVISIONS = [script.revision for script in ScriptDirectory(str(ROOT / "migrations")).walk_revisions()]
HEAD = REVISIONS[0]


def alembic(function: Callable[..., Any], config: Config, *arguments: str) -> None:
    """Run a command of Alembic, which starts an event loop of its own."""
    in_thread(lambda: function(config, *arguments))


def fetch(url: str, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in execute(url, query)[0]]


def tables_of(url: str) -> set[str]:
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    return {name for (name,) in fetch(url, query)}


def releases_of(url: str) -> list[tuple[Any, ...]]:
    """Return the name and size of each release, and whether it is the current one."""
    query = "SELECT name, r.localities, (SELECT count(*) FROM localities WHERE release_id = r.id), r.id = c.release_id"
    return fetch(url, f"{query} FROM releases AS r, current_release AS c ORDER BY r.id")


def is_pending(url: str) -> bool:
    return bool(fetch(url, "SELECT FROM pending_seed"))


def version_of(url: str) -> list[tuple[Any, ...]]:
    return fetch(url, "SELECT version_num FROM localidades_alembic_version")


@pytest.fixture
def config(empty_database: str, small_catalogue: Path) -> Config:
    """Return the project's configuration for an empty database and the small catalogue."""
    return alembic_config(empty_database, seed=small_catalogue)


# Upgrade


def test_upgrade_of_an_empty_database_makes_the_schema_and_loads_the_catalogue_once(
    empty_database: str, config: Config, tmp_path: Path
) -> None:
    alembic(command.upgrade, config, "head")
    assert tables_of(empty_database) == {*TABLES, "localities_r1"}
    assert releases_of(empty_database) == SEEDED
    assert not is_pending(empty_database)
    before = fetch(empty_database, "SELECT * FROM releases")
    other = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", many(100))
    for again in (config, alembic_config(empty_database, seed=other)):
        alembic(command.upgrade, again, "head")
        assert fetch(empty_database, "SELECT * FROM releases") == before


@pytest.mark.tail
def test_upgrade_with_the_demo_named_loads_all_of_it(empty_database: str) -> None:
    alembic(command.upgrade, alembic_config(empty_database, seed=Path("demo")), "head")
    assert releases_of(empty_database) == [("demo", 304_400, 304_400, True)]


@pytest.mark.parametrize("steps", [["0001", "head"], [f"+{len(REVISIONS)}"]])
def test_upgrade_loads_at_the_head_whatever_it_is_called(empty_database: str, config: Config, steps: list[str]) -> None:
    for step in steps[:-1]:
        alembic(command.upgrade, config, step)
        assert tables_of(empty_database) <= TABLES
        assert not releases_of(empty_database)
    alembic(command.upgrade, config, steps[-1])
    assert releases_of(empty_database) == SEEDED


def test_upgrade_with_a_file_that_tells_no_date_names_the_release_seed(
    empty_database: str, small_catalogue: Path, tmp_path: Path
) -> None:
    (undated := tmp_path / "catalogue.csv").write_bytes(small_catalogue.read_bytes())
    alembic(command.upgrade, alembic_config(empty_database, seed=undated), "head")
    assert releases_of(empty_database) == [("seed", 132, 132, True)]


def test_upgrade_without_a_named_seed_leaves_the_note_for_the_next(empty_database: str, config: Config) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    assert (tables_of(empty_database), releases_of(empty_database)) == (TABLES, [])
    alembic(command.check, config)
    alembic(command.current, config)
    assert is_pending(empty_database)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == SEEDED
    assert not is_pending(empty_database)


async def test_upgrade_after_an_import_of_the_users_takes_the_note_back(
    empty_database: str, config: Config, tmp_path: Path
) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    await import_into(empty_database, write_catalogue(tmp_path / "2020-02.csv", many(100)))
    alembic(command.upgrade, config, "head")
    assert [name for name, *_ in releases_of(empty_database)] == ["2020-02"]
    assert not is_pending(empty_database)


def test_version_table_of_another_program_is_left_alone(empty_database: str, config: Config) -> None:
    execute(
        empty_database,
        "CREATE TABLE alembic_version (version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY)",
        f"INSERT INTO alembic_version VALUES ('{HEAD}')",  # noqa: S608  # ours
    )
    alembic(command.upgrade, config, "head")
    assert fetch(empty_database, "SELECT * FROM alembic_version") == version_of(empty_database) == [(HEAD,)]
    assert releases_of(empty_database) == SEEDED
    alembic(command.downgrade, config, "base")
    assert tables_of(empty_database) == {"alembic_version", "localidades_alembic_version"}


def test_downgrade_and_up_again_gives_the_same(empty_database: str, config: Config) -> None:
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    columns += " ORDER BY 1, ordinal_position"
    alembic(command.upgrade, config, "head")
    before = fetch(empty_database, columns)
    alembic(command.downgrade, config, "0001")
    assert (version_of(empty_database), releases_of(empty_database)) == ([("0001",)], SEEDED)
    alembic(command.upgrade, config, "head")
    assert (is_pending(empty_database), releases_of(empty_database)) == (False, SEEDED)
    alembic(command.downgrade, config, "base")
    assert tables_of(empty_database) == {"localidades_alembic_version"}
    alembic(command.upgrade, config, "head")
    assert fetch(empty_database, columns) == before
    assert releases_of(empty_database) == SEEDED


# Drift


def test_check_finds_no_drift_with_and_without_releases(migrated: str, seeded: str) -> None:
    for url in (migrated, seeded):
        alembic(command.check, alembic_config(url))


@pytest.mark.parametrize(
    "change", ["ALTER TABLE releases ADD surplus int", "ALTER TABLE releases ALTER COLUMN published_at DROP DEFAULT"]
)
def test_check_finds_a_drift_where_there_is_one(seeded_database: str, change: str) -> None:
    execute(seeded_database, change)
    with pytest.raises(CommandError, match="New upgrade operations detected"):
        alembic(command.check, alembic_config(seeded_database))


def test_collations_are_those_of_the_models(migrated: str) -> None:
    """Alembic's comparison leaves them out."""
    query = "SELECT table_name, column_name, collation_name FROM information_schema.columns"
    found = {(table, column): collation for table, column, collation in fetch(migrated, query)}
    expected = {
        (table.name, column.name): getattr(column.type, "collation", None)
        for table in metadata.tables.values()
        for column in table.columns
    }
    assert {key: found[key] for key in expected} == expected
    assert "C" in expected.values()


# What fails


def test_indexes_of_names_have_the_rights_and_the_owner_of_releases(migrated: str, server: str) -> None:
    reader, owner = own_name("reader"), own_name("owner")
    with new_database(server, migrated) as url:
        config = alembic_config(url)
        alembic(command.downgrade, config, "0005")
        execute(url, *(f"CREATE ROLE {role}" for role in (reader, owner)))
        try:
            execute(url, f"ALTER TABLE releases OWNER TO {owner}", f"GRANT SELECT ON releases TO PUBLIC, {reader}")
            alembic(command.upgrade, config, "head")
            rights = (
                "SELECT relowner::regrole::text, array_agg(x.grantee || x.privilege_type ORDER BY x) FROM pg_class,"
            )
            rights += " aclexplode(relacl) AS x WHERE oid = to_regclass('{}') GROUP BY 1"
            assert fetch(url, rights.format("name_index")) == fetch(url, rights.format("releases")) != []
        finally:
            execute(url, *(f"DROP OWNED BY {role} CASCADE" for role in (reader, owner)))
            execute(url, *(f"DROP ROLE {role}" for role in (reader, owner)))


def test_upgrade_of_a_database_out_of_reach_says_so(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="The database does not answer"):
        alembic(command.upgrade, alembic_config(f"postgresql://postgres@/nowhere?host={tmp_path}"), "head")


def test_upgrade_killed_while_it_loads_is_made_good_by_the_next(empty_database: str, config: Config) -> None:
    locks = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
    locks += " WHERE d.datname = current_database() AND locktype = 'advisory'"
    alembic_command = [sys.executable, "-m", "alembic"]
    with started(empty_database, "upgrade", "head", command=alembic_command, LOCALIDADES_SEED="demo") as upgrading:
        # Its own and that of its import; the demo takes seconds.
        eventually(lambda: upgrading.poll() is not None or fetch(empty_database, locks) == [(2,)])
        assert upgrading.poll() is None
    eventually(lambda: fetch(empty_database, locks) == [(0,)])
    assert tables_of(empty_database) == TABLES
    assert is_pending(empty_database)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == SEEDED
    assert not is_pending(empty_database)


# By the command of ours, which needs no clone


def migrate(url: str, catalogue: Path | None = None, *options: str) -> subprocess.CompletedProcess[str]:
    return run("migrate", *options, env=environment(url, LOCALIDADES_SEED=str(catalogue or "")))


def test_migrate_says_from_which_revision_to_which_and_loads_the_seed(
    empty_database: str, small_catalogue: Path, config: Config
) -> None:
    ended = migrate(empty_database)
    said = f"Migrated an empty database to revision {HEAD}.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")
    assert (version_of(empty_database), releases_of(empty_database)) == ([(HEAD,)], [])
    alembic(command.downgrade, config, "0001")
    ended = migrate(empty_database, small_catalogue)
    assert (ended.returncode, ended.stdout) == (0, f"Migrated the database from revision 0001 to {HEAD}.\n")
    assert "published release 2020-01 in " in ended.stderr
    assert releases_of(empty_database) == SEEDED
    alembic(command.check, config)
    ended = migrate(empty_database, small_catalogue)
    said = f"The database is up to date, at revision {HEAD}.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")


def test_two_migrations_at_once_both_succeed_and_load_once(empty_database: str, small_catalogue: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        ended = [*pool.map(lambda seed: migrate(empty_database, seed), [small_catalogue] * 2)]
    said = {f"Migrated an empty database to revision {HEAD}.\n", f"The database is up to date, at revision {HEAD}.\n"}
    assert ({one.returncode for one in ended}, {one.stdout for one in ended}) == ({0}, said), ended
    assert sum("published release 2020-01" in one.stderr for one in ended) == 1
    assert releases_of(empty_database) == SEEDED


def test_migrate_with_a_bad_seed_keeps_the_schema_for_another_seed(
    empty_database: str, small_catalogue: Path, tmp_path: Path
) -> None:
    absent, bad = tmp_path / "absent.zip", tmp_path / "2020-01.csv"
    bad.write_bytes(b"%PDF-1.7")
    for seed, fault in ((absent, f"There is no file {absent}"), (bad, "The file is a PDF: save its table")):
        ended = migrate(empty_database, seed)
        assert ended.returncode == 1
        assert f"error: {fault}" in ended.stderr
        assert (tables_of(empty_database), version_of(empty_database)) == (TABLES, [(HEAD,)])
        assert is_pending(empty_database)
    assert migrate(empty_database, absent, "--seed", str(small_catalogue)).returncode == 0
    assert releases_of(empty_database) == SEEDED
    assert not is_pending(empty_database)


def test_migrate_at_an_unknown_revision_is_refused_with_a_sentence(seeded_database: str, small_catalogue: Path) -> None:
    execute(seeded_database, "UPDATE localidades_alembic_version SET version_num = '9999'")
    ended = migrate(seeded_database, small_catalogue)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "error: The database is at revision 9999, which this version of localidades-api doesn't know: install the"
        " version that migrated it, or use another database.\n"
    )
    assert releases_of(seeded_database) == SEEDED
