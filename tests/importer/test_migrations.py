import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from localidades_api.database.models import metadata
from tests.support.application import import_into
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import alembic_config
from tests.support.waiting import PATIENCE, eventually, in_thread
from tests.support.wire import COMMAND, ROOT, environment, run

TABLES = {
    "comparisons", "current_release", "localidades_alembic_version", "localities", "municipalities", "pending_seed",
    "publications", "releases", "states",
}  # fmt: skip
REVISIONS = [script.revision for script in ScriptDirectory(str(ROOT / "migrations")).walk_revisions()]
HEAD = REVISIONS[0]
LATER = f'''
"""A column of a later day."""

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{HEAD}"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("localities", sa.Column("tomorrow", sa.Text))


def downgrade():
    op.drop_column("localities", "tomorrow")
'''


def alembic(function: Callable[..., Any], config: Config, *arguments: str) -> None:
    """Run a command of Alembic, which starts an event loop of its own."""
    in_thread(lambda: function(config, *arguments))


def fetch(url: str, query: str) -> list[tuple[Any, ...]]:
    async def run() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url)
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return in_thread(lambda: asyncio.run(run()))


def tables_of(url: str) -> set[str]:
    query = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    return {name for (name,) in fetch(url, query)}


def releases_of(url: str) -> list[tuple[Any, ...]]:
    """Return the name and size of each release, and whether it is the current one."""
    return fetch(
        url,
        "SELECT name, r.localities, (SELECT count(*) FROM localities WHERE release_id = r.id), r.id = c.release_id"
        " FROM releases AS r, current_release AS c ORDER BY r.id",
    )


def is_pending(url: str) -> bool:
    return bool(fetch(url, "SELECT FROM pending_seed"))


def version_of(url: str) -> list[tuple[Any, ...]]:
    return fetch(url, "SELECT version_num FROM localidades_alembic_version")


@pytest.fixture
def config(empty_database: str, small_catalogue: Path) -> Config:
    """Lend the project's configuration for an empty database and the small catalogue."""
    return alembic_config(empty_database, seed=small_catalogue)


# Upgrade


def test_upgrade_of_an_empty_database_makes_the_schema_and_loads_the_catalogue(
    empty_database: str, config: Config
) -> None:
    alembic(command.upgrade, config, "head")
    assert tables_of(empty_database) == {*TABLES, "localities_r1"}
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert not is_pending(empty_database)


def test_upgrade_without_a_named_seed_loads_nothing(empty_database: str) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    assert tables_of(empty_database) == TABLES
    assert releases_of(empty_database) == []


@pytest.mark.tail
def test_upgrade_with_the_demo_named_loads_all_of_it(empty_database: str) -> None:
    alembic(command.upgrade, alembic_config(empty_database, seed=Path("demo")), "head")
    assert releases_of(empty_database) == [("demo", 304_400, 304_400, True)]


def test_upgrade_a_second_time_does_nothing(empty_database: str, config: Config, tmp_path: Path) -> None:
    alembic(command.upgrade, config, "head")
    before = fetch(empty_database, "SELECT * FROM releases")
    alembic(command.upgrade, config, "head")
    other = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", many(100))
    alembic(command.upgrade, alembic_config(empty_database, seed=other), "head")
    assert fetch(empty_database, "SELECT * FROM releases") == before


def test_upgrade_step_by_step_loads_at_the_end(empty_database: str, config: Config) -> None:
    alembic(command.upgrade, config, "0001")
    assert tables_of(empty_database) == TABLES
    assert releases_of(empty_database) == []
    assert not is_pending(empty_database)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


@pytest.mark.parametrize("target", ["heads", HEAD, f"+{len(REVISIONS)}"])
def test_upgrade_to_the_head_by_another_word_loads_too(empty_database: str, config: Config, target: str) -> None:
    alembic(command.upgrade, config, target)
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_upgrade_with_a_file_that_tells_no_date_names_the_release_seed(
    empty_database: str, small_catalogue: Path, tmp_path: Path
) -> None:
    undated = tmp_path / "catalogue.csv"
    undated.write_bytes(small_catalogue.read_bytes())
    alembic(command.upgrade, alembic_config(empty_database, seed=undated), "head")
    assert releases_of(empty_database) == [("seed", 132, 132, True)]


def test_upgrade_without_a_named_seed_leaves_the_note_for_the_next(empty_database: str, config: Config) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    assert is_pending(empty_database)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert not is_pending(empty_database)


async def test_upgrade_after_an_import_of_the_users_takes_the_note_back(
    empty_database: str, config: Config, tmp_path: Path
) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    await import_into(empty_database, write_catalogue(tmp_path / "2020-02.csv", many(100)))
    alembic(command.upgrade, config, "head")
    assert [name for name, *_ in releases_of(empty_database)] == ["2020-02"]
    assert not is_pending(empty_database)


# The table of the version


@pytest.mark.parametrize("version", ["1ae9f0c3d2b7", HEAD])
def test_version_table_of_another_program_is_left_alone(empty_database: str, config: Config, version: str) -> None:
    other = "CREATE TABLE alembic_version (version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    fetch(empty_database, other)
    fetch(empty_database, f"INSERT INTO alembic_version VALUES ('{version}')")  # noqa: S608  # ours
    for _ in range(2):
        alembic(command.upgrade, config, "head")
        assert fetch(empty_database, "SELECT * FROM alembic_version") == [(version,)]
        assert version_of(empty_database) == [(HEAD,)]
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    alembic(command.downgrade, config, "base")
    assert tables_of(empty_database) == {"alembic_version", "localidades_alembic_version"}


# Downgrade


def test_downgrade_to_base_and_up_again_gives_the_same(empty_database: str, config: Config) -> None:
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    columns += " ORDER BY 1, ordinal_position"
    alembic(command.upgrade, config, "head")
    before = fetch(empty_database, columns)
    alembic(command.downgrade, config, "base")
    assert tables_of(empty_database) == {"localidades_alembic_version"}
    alembic(command.upgrade, config, "head")
    assert fetch(empty_database, columns) == before
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_downgrade_of_the_seed_keeps_what_is_published(empty_database: str, config: Config) -> None:
    alembic(command.upgrade, config, "head")
    alembic(command.downgrade, config, "0001")
    assert version_of(empty_database) == [("0001",)]
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert not is_pending(empty_database)


# Drift


def test_check_finds_no_drift_with_and_without_releases(migrated: str, seeded: str) -> None:
    for url in (migrated, seeded):
        alembic(command.check, alembic_config(url))


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE releases ADD COLUMN surplus text",
        "ALTER TABLE localities ALTER COLUMN nombre DROP NOT NULL",
        "CREATE TABLE surplus (id int)",
        "ALTER TABLE releases DROP CONSTRAINT releases_name_key",
        "ALTER TABLE releases ALTER COLUMN published_at DROP DEFAULT",
        "ALTER TABLE states ALTER COLUMN nombre TYPE varchar(80)",
    ],
)
def test_check_finds_a_drift_where_there_is_one(seeded_database: str, change: str) -> None:
    fetch(seeded_database, change)
    with pytest.raises(CommandError, match="New upgrade operations detected"):
        alembic(command.check, alembic_config(seeded_database))


def test_collations_are_those_of_the_models(migrated: str) -> None:
    """Alembic's comparison leaves them out."""
    query = (
        "SELECT table_name, column_name, collation_name FROM information_schema.columns WHERE table_schema = 'public'"
    )
    found = {(table, column): collation for table, column, collation in fetch(migrated, query)}
    expected = {
        (table.name, column.name): getattr(column.type, "collation", None)
        for table in metadata.tables.values()
        for column in table.columns
    }
    assert {key: found[key] for key in expected} == expected
    assert "C" in expected.values()


def test_check_and_current_seed_nothing(empty_database: str, config: Config) -> None:
    alembic(command.upgrade, alembic_config(empty_database), "head")
    alembic(command.check, config)
    alembic(command.current, config)
    assert is_pending(empty_database)


# A seed that fails


def test_seed_that_fails_leaves_the_schema_and_is_tried_again(
    empty_database: str, config: Config, tmp_path: Path
) -> None:
    absent = tmp_path / "absent.zip"
    with pytest.raises(CommandError, match=f"There is no file {absent}"):
        alembic(command.upgrade, alembic_config(empty_database, seed=absent), "head")
    assert tables_of(empty_database) == TABLES
    assert version_of(empty_database) == [(HEAD,)]
    assert is_pending(empty_database)
    alembic(command.check, config)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert not is_pending(empty_database)


def test_seed_that_is_no_catalogue_leaves_no_release(empty_database: str, tmp_path: Path) -> None:
    path = tmp_path / "2020-01.csv"
    path.write_bytes(b"%PDF-1.7")
    with pytest.raises(CommandError, match="The file is a PDF: save its table as CSV"):
        alembic(command.upgrade, alembic_config(empty_database, seed=path), "head")
    assert tables_of(empty_database) == TABLES
    assert is_pending(empty_database)


def test_upgrade_of_a_database_out_of_reach_says_so(tmp_path: Path) -> None:
    url = f"postgresql://postgres@/nowhere?host={tmp_path}"
    with pytest.raises(CommandError, match="The database does not answer"):
        alembic(command.upgrade, alembic_config(url), "head")


# By the command


def start_alembic(url: str, catalogue: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "alembic", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "DATABASE_URL": url, "LOCALIDADES_SEED": str(catalogue)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_upgrade_command_reads_the_environment_and_says_what_it_did(empty_database: str, small_catalogue: Path) -> None:
    with start_alembic(empty_database, small_catalogue, "upgrade", "head") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert out == ""
    assert "Running upgrade 0001 -> 0002" in err
    assert "published release 2020-01" in err
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_upgrade_command_with_a_bad_seed_fails_with_a_sentence(empty_database: str, tmp_path: Path) -> None:
    with start_alembic(empty_database, tmp_path / "absent.zip", "upgrade", "head") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode not in {0, None}
    assert f"There is no file {tmp_path / 'absent.zip'}" in out + err
    assert "Traceback" not in out + err
    assert is_pending(empty_database)


def test_two_upgrades_at_once_both_succeed_and_load_once(empty_database: str, tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "2020-01.csv", many(6_000))
    with (
        start_alembic(empty_database, path, "upgrade", "head") as one,
        start_alembic(empty_database, path, "upgrade", "head") as other,
    ):
        outputs = [process.communicate(timeout=PATIENCE) for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), outputs
    assert sum("published release" in err for _, err in outputs) == 1
    assert releases_of(empty_database) == [("2020-01", 6_000, 6_000, True)]
    assert version_of(empty_database) == [(HEAD,)]


def test_upgrade_killed_while_it_loads_is_made_good_by_the_next(empty_database: str, config: Config) -> None:
    locks = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
    locks += " WHERE d.datname = current_database() AND locktype = 'advisory'"
    with start_alembic(empty_database, Path("demo"), "upgrade", "head") as process:
        while fetch(empty_database, locks) != [(3,)]:  # its own and its import's two; the demo takes seconds
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.kill()
    eventually(lambda: fetch(empty_database, locks) == [(0,)])
    assert tables_of(empty_database) == TABLES
    assert is_pending(empty_database)
    alembic(command.upgrade, config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert not is_pending(empty_database)


def test_upgrade_offline_prints_sql_that_makes_the_same_schema(
    empty_database: str, config: Config, small_catalogue: Path
) -> None:
    with start_alembic("postgresql://nobody@nowhere/none", small_catalogue, "upgrade", "head", "--sql") as process:
        sql, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "INSERT INTO pending_seed" in sql

    async def run() -> None:
        connection = await asyncpg.connect(empty_database)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    in_thread(lambda: asyncio.run(run()))
    alembic(command.check, config)
    alembic(command.upgrade, config, "head")  # follows the note
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


# By the command of ours, which needs no clone


def migrate(url: str, catalogue: Path | None = None, *options: str) -> subprocess.CompletedProcess[str]:
    return run("migrate", *options, env=environment(url, LOCALIDADES_SEED=str(catalogue or "")))


def test_migrate_makes_the_schema_loads_the_catalogue_and_says_so(
    empty_database: str, small_catalogue: Path, config: Config
) -> None:
    ended = migrate(empty_database, small_catalogue)
    assert (ended.returncode, ended.stdout) == (0, f"Migrated an empty database to revision {HEAD}.\n")
    assert "published release 2020-01 in " in ended.stderr
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    alembic(command.check, config)
    again = migrate(empty_database, small_catalogue)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == f"The database is up to date, at revision {HEAD}.\n"


def test_migrate_of_an_earlier_revision_says_from_which_to_which(
    empty_database: str, config: Config, small_catalogue: Path
) -> None:
    alembic(command.upgrade, config, "0001")
    ended = migrate(empty_database, small_catalogue)
    said = f"Migrated the database from revision 0001 to {HEAD}.\n"
    assert (ended.returncode, ended.stdout) == (0, said), ended.stderr
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_migrate_without_a_named_seed_loads_nothing(empty_database: str, small_catalogue: Path) -> None:
    ended = migrate(empty_database)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert version_of(empty_database) == [(HEAD,)]
    assert releases_of(empty_database) == []
    assert migrate(empty_database, small_catalogue).returncode == 0
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_migrate_with_an_option_loads_that_seed_instead(
    empty_database: str, small_catalogue: Path, tmp_path: Path
) -> None:
    ended = migrate(empty_database, tmp_path / "absent.zip", "--seed", str(small_catalogue))
    assert ended.returncode == 0, ended.stderr
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


def test_migrate_with_a_bad_seed_fails_with_a_sentence_and_keeps_the_schema(
    empty_database: str, tmp_path: Path
) -> None:
    ended = migrate(empty_database, tmp_path / "absent.zip")
    assert ended.returncode == 1
    assert ended.stdout == f"Migrated an empty database to revision {HEAD}.\n"
    assert ended.stderr.startswith(f"error: There is no file {tmp_path / 'absent.zip'}")
    assert is_pending(empty_database)


def test_migrate_at_an_unknown_revision_is_refused_with_a_sentence(seeded_database: str, small_catalogue: Path) -> None:
    fetch(seeded_database, "UPDATE localidades_alembic_version SET version_num = '9999'")
    ended = migrate(seeded_database, small_catalogue)
    assert (ended.returncode, ended.stdout) == (1, "")
    sentence = (
        "This database is at revision 9999, which this version of localidades-api doesn't know: install the version"
        " that migrated it, or set DATABASE_URL to another database."
    )
    assert ended.stderr == f"error: {sentence}\n"
    assert releases_of(seeded_database) == [("2020-01", 132, 132, True)]


def test_migrate_that_cannot_write_what_it_did_has_done_it(empty_database: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*COMMAND, "migrate"],
            env=environment(empty_database),
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (
        74, "error: The output can't be written (No space left on device): send it somewhere else.\n",
    )  # fmt: skip
    assert version_of(empty_database) == [(HEAD,)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lend the command of an environment that holds the built wheel and what it needs, and nothing of the clone."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, timeout=PATIENCE, check=True)
    [wheel] = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], timeout=PATIENCE, check=True)
    install = [str(venv / "bin" / "pip"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, capture_output=True, timeout=PATIENCE, check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    # What it needs is there already. A .pth file in a folder that one names is not read: the clone stays out.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return venv / "bin" / "localidades-api"


@pytest.mark.tail
def test_installed_package_migrates_a_database_without_the_clone(
    installed: Path, empty_database: str, small_catalogue: Path, tmp_path: Path, config: Config
) -> None:
    env = environment(empty_database, LOCALIDADES_SEED=str(small_catalogue), PYTHONPATH="")

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(installed), *arguments],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    advised = call("import", str(small_catalogue))
    assert advised.returncode == 1
    assert "run `localidades-api migrate` first" in advised.stderr
    migrated = call("migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert migrated.stdout == f"Migrated an empty database to revision {HEAD}.\n"
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    alembic(command.check, config)
    fetch(empty_database, "UPDATE localidades_alembic_version SET version_num = '9999'")
    refused = call("migrate")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: This database is at revision 9999, which this version of")
    located = [str(installed.with_name("python")), "-c", "import localidades_api; print(localidades_api.__file__)"]
    where = subprocess.run(located, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert Path(where.stdout.strip()).is_relative_to(installed.parents[1])


# Later migrations


@pytest.fixture
def later_config(config: Config, tmp_path: Path) -> Config:
    """Lend a configuration whose migrations have one more than the project's, which adds a column."""
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "migrations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_later.py").write_text(LATER)
    config.set_main_option("script_location", str(folder))
    return config


COLUMN = (
    """SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'tomorrow' AND NOT attisdropped ORDER BY 1"""
)


def test_upgrade_straight_to_a_later_schema_loads_into_that(empty_database: str, later_config: Config) -> None:
    alembic(command.upgrade, later_config, "head")
    assert version_of(empty_database) == [("9999",)]
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]
    assert fetch(empty_database, COLUMN) == [("localities",), ("localities_r1",)]


def test_upgrade_to_the_seed_alone_waits_for_the_later_schema(empty_database: str, later_config: Config) -> None:
    alembic(command.upgrade, later_config, "0002")
    assert is_pending(empty_database)
    assert releases_of(empty_database) == []
    alembic(command.upgrade, later_config, "head")
    assert releases_of(empty_database) == [("2020-01", 132, 132, True)]


async def test_upgrade_of_published_releases_to_a_later_schema_keeps_them(
    seeded_database: str, later_config: Config, tmp_path: Path
) -> None:
    later_config.attributes["settings"] = alembic_config(seeded_database).attributes["settings"]
    alembic(command.upgrade, later_config, "head")
    assert releases_of(seeded_database) == [("2020-01", 132, 132, True)]
    await import_into(seeded_database, write_catalogue(tmp_path / "2020-02.csv", many(140)))
    assert releases_of(seeded_database) == [("2020-01", 132, 132, False), ("2020-02", 140, 140, True)]
    assert fetch(seeded_database, COLUMN) == [("localities",), ("localities_r1",), ("localities_r2",)]
    alembic(command.downgrade, later_config, "base")
    assert tables_of(seeded_database) == {"localidades_alembic_version"}
