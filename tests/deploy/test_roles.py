"""The roles that deploy/postgres/roles.sql makes: the reader only reads; the importer migrates, imports and retires."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from alembic import command

from localidades_api.database.models import VERSION_TABLE, metadata
from tests.support.catalogue import many, write_catalogue
from tests.support.database import connected
from tests.support.postgres import alembic_config, execute, grant_roles, locked, name_of, new_database, own_name
from tests.support.waiting import in_thread
from tests.support.wire import ask, await_names, environment, run, serving

# Attempts of a reader; each fails even after it has disabled the read-only mode.
WRITES = (
    "INSERT INTO releases (name, source, sha256, states, municipalities, localities) VALUES ('x', 'x', 'x', 0, 0, 0)",
    "INSERT INTO comparisons VALUES (1, 1, 0, 0, 0, 0, 0)",
    "UPDATE current_release SET release_id = 1",
    "UPDATE states SET nombre = 'x'",
    "TRUNCATE localities",
    "CREATE TABLE x (id int)",
    "CREATE TEMPORARY TABLE x (id int)",
    "CREATE SCHEMA x",
    "CREATE EXTENSION citext",
    "SELECT nextval('releases_id_seq')",
    "SELECT * FROM releases FOR UPDATE",
    "SELECT * FROM somebody_elses",
    "SET ROLE {importer}",
)
# What a reader may have been given before.
EXTRA_RIGHTS = (
    "GRANT ALL ON localities, releases TO {reader}",
    "GRANT INSERT ON comparisons TO PUBLIC",
    "GRANT UPDATE (nombre) ON states TO {reader}",
    "GRANT CREATE ON SCHEMA public TO {reader}, PUBLIC",
)

KEY = 10010001
TARGETS = (
    "/readyz", "/api/census/", "/api/census/localidades/?format=api", "/api/census/localidades/?search=ningnuo",
    "/api/census/localidades/?estado_id=1&ambito=R", "/api/census/localidades/nearest/?lat=21.8&lon=-102.2",
    f"/api/census/localidades/{KEY}/?format=api", "/api/census/localidades/download/?format=parquet",
    "/api/census/municipios/1001/", "/api/census/releases/2020-01/changes/?since=2020-01",
)  # fmt: skip


@dataclass(frozen=True)
class Roles:
    """The two roles of a database, and its URL for each of them and for their creator."""

    reader: str
    importer: str
    owner: str

    def url(self, role: str) -> str:
        """Return the URL for a role."""
        return self.owner.replace("//postgres@", f"//{role}@")

    def make(self) -> str:
        """Run the file; return psql's error."""
        return grant_roles(self.owner, reader=self.reader, importer=self.importer)


def new_roles(url: str) -> Roles:
    """Return unique names, because roles belong to the server, not to a database."""
    return Roles(own_name("reader"), own_name("importer"), url)


@pytest.fixture(scope="module")
def roles(server: str, seeded: str) -> Iterator[Roles]:
    """Yield the roles of a database with the small catalogue, created by its superuser, and made anew."""
    with new_database(server, seeded) as url:
        execute(url, "CREATE TABLE somebody_elses (id int)", "CREATE TABLE alembic_version (version_num text)")
        made = new_roles(url)
        assert made.make() == ""
        execute(url, *(statement.format(reader=made.reader) for statement in EXTRA_RIGHTS))
        assert made.make() == ""
        yield made


# -- The reader


async def test_reader_can_write_nothing(roles: Roles) -> None:
    refusals = (asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError)
    async with connected(roles.url(roles.reader)) as connection:
        assert await connection.fetchval("SHOW default_transaction_read_only") == "on"
        for mode, refused in (("on", refusals), ("off", refusals[:1])):
            await connection.execute(f"SET default_transaction_read_only = {mode}")
            for statement in (attempt.replace("{importer}", roles.importer) for attempt in WRITES):
                with pytest.raises(refused):
                    await connection.execute(statement)


@pytest.mark.tail
def test_service_works_as_the_reader(roles: Roles, live_server: str) -> None:
    with serving(roles.url(roles.reader)) as live:
        await_names(live.base)
        for target in TARGETS:
            answer, expected = ask(live.base, target), ask(live_server, target)
            assert answer.status == 200, (target, answer.text)
            # The index contains its own URL, and readiness the age of the release.
            assert answer.body == expected.body or target in {"/api/census/", "/readyz"}, target


_RIGHTS = """
    SELECT relname::text, pg_get_userbyid(relowner)::text, array(
               SELECT held FROM unnest('{DELETE,INSERT,REFERENCES,SELECT,TRIGGER,TRUNCATE,UPDATE}'::text[]) AS held
                WHERE has_table_privilege($1, oid, held))
      FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
"""


async def test_every_table_of_the_service_is_the_importers_and_no_other(roles: Roles) -> None:
    async with connected(roles.owner) as connection:
        rights_of = {name: (owner, rights) for name, owner, rights in await connection.fetch(_RIGHTS, roles.reader)}
    others = {"somebody_elses", "alembic_version"}
    assert rights_of.keys() >= {*metadata.tables, VERSION_TABLE, "localities_r1", *others}
    for name, held in rights_of.items():
        assert held == (("postgres", []) if name in others else (roles.importer, ["SELECT"])), name


# -- The importer


@pytest.mark.tail
@pytest.mark.parametrize("superuser", [True, False], ids=["superuser", "owner of the database"])
def test_importer_can_migrate_import_and_retire(server: str, tmp_path: Path, *, superuser: bool) -> None:
    """In an empty database, created by a superuser or by a database owner with CREATEROLE."""
    with new_database(server) as url:
        made = new_roles(url)
        owner = made if superuser else with_owner(made)
        assert owner.make() == ""
        importer, reader = made.url(made.importer), made.url(made.reader)
        in_thread(lambda: command.upgrade(alembic_config(importer), "head"))
        for year in ("2020", "2021"):
            path = write_catalogue(tmp_path / f"catun_localidad_{year}-01.csv", many(132 + int(year)))
            ended = run("import", str(path), "--allow-shrink", env=environment(importer))
            assert ended.returncode == 0, ended.stderr
        assert owner.make() == ""
        with serving(reader) as live:
            page = ask(live.base, "/api/census/localidades/?release=2020-01&page=2")
            assert page.status == 200
            retire = run("releases", "retire", "2020-01", env=environment(importer))
            assert retire.returncode == 0, retire.stderr
            assert ask(live.base, "/api/census/localidades/?release=2020-01&page=2").status == 404
            assert ask(live.base, "/api/census/localidades/?clave=0001").status == 200
        in_thread(lambda: command.check(alembic_config(importer)))
        in_thread(lambda: command.downgrade(alembic_config(importer), "base"))
        in_thread(lambda: command.upgrade(alembic_config(importer, seed=path), "head"))
        with serving(reader) as live:
            assert ask(live.base, "/api/census/localidades/?clave=0001").status == 200


def with_owner(roles: Roles) -> Roles:
    """Give the database to a role with CREATEROLE that is not a superuser."""
    name = f"owner_of_{roles.reader}"
    execute(
        roles.owner,
        f"CREATE ROLE {name} LOGIN CREATEROLE",
        f"ALTER DATABASE {name_of(roles.owner)} OWNER TO {name}",
        f"ALTER SCHEMA public OWNER TO {name}",
    )
    return Roles(roles.reader, roles.importer, roles.url(name))


# -- Refusals, after which nothing has changed


_MORE = "role {reader} is a superuser, or has other rights or memberships"


@pytest.mark.tail
@pytest.mark.parametrize(
    ("rights", "refusal"),
    [
        *((f"ALTER ROLE {{reader}} {right}", _MORE) for right in ("SUPERUSER", "CREATEDB", "REPLICATION", "BYPASSRLS")),
        ("ALTER ROLE {importer} CREATEROLE", _MORE.replace("reader", "importer")),
        ("GRANT {importer} TO {reader}", _MORE),
        ("GRANT INSERT ON somebody_elses TO {reader}", "role {reader} can write to somebody_elses"),
        ("GRANT UPDATE (id) ON somebody_elses TO {reader}", "role {reader} can write to somebody_elses"),
        ("ALTER TABLE somebody_elses OWNER TO {reader}", "role {reader} can write to somebody_elses"),
        ("GRANT CREATE ON SCHEMA others TO {reader}", "role {reader} can create tables in schema others"),
    ],
)
def test_role_with_more_rights_is_refused(server: str, migrated: str, rights: str, refusal: str) -> None:
    with new_database(server, migrated) as url:
        made = new_roles(url)
        names = {"reader": made.reader, "importer": made.importer}
        execute(url, "CREATE TABLE somebody_elses (id int)", "CREATE SCHEMA others")
        execute(url, *(f"CREATE ROLE {name}" for name in names.values()), rights.format(**names))
        assert refusal.format(**names) in made.make()
        owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE tablename = 'releases'"
        assert execute(url, owners)[0] == [("postgres",)]


def test_one_role_for_both_is_refused(server: str, migrated: str) -> None:
    with new_database(server, migrated) as url:
        name = own_name("both")
        assert f"role {name} can write to " in Roles(name, name, url).make()


def test_locked_tables_are_left_alone(server: str, migrated: str) -> None:
    with new_database(server, migrated) as url, locked(url):
        assert "canceling statement due to lock timeout" in new_roles(url).make()
