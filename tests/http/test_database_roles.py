"""The rights of the two roles, which the command `roles` gives."""

import pytest

from localidades_api.database.pool import Database
from localidades_api.database.roles import grant_roles
from localidades_api.errors import RoleError
from tests.support.database import connected
from tests.support.postgres import own_name

OF_MIGRATIONS = {"localidades_alembic_version", "pending_seed"}


async def grant(url: str, reader: str, importer: str) -> None:
    database = Database.for_writing(url)
    try:
        await grant_roles(database, reader=reader, importer=importer, deadline=20)
    finally:
        await database.dispose()


_RIGHTS = """
    SELECT relname::text AS name, (SELECT array_agg(one ORDER BY one) FROM unnest($2::text[]) AS one
                                    WHERE has_table_privilege($1, oid, one)) AS rights
      FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
"""
_ALL = ["DELETE", "INSERT", "REFERENCES", "SELECT", "TRIGGER", "TRUNCATE", "UPDATE"]


async def test_reader_only_reads_and_importer_owns_the_tables_of_the_service(seeded_database: str) -> None:
    reader, importer = own_name("reader_of_rights"), own_name("importer_of_rights")
    others = {"somebody_elses", "alembic_version"}
    async with connected(seeded_database) as connection:
        await connection.execute(
            "CREATE TABLE somebody_elses (id int); CREATE TABLE alembic_version (version_num text)"
        )
        for _ in range(2):
            await grant(seeded_database, reader, importer)
            reads = {row["name"]: row["rights"] for row in await connection.fetch(_RIGHTS, reader, _ALL)}
            writes = {row["name"]: row["rights"] for row in await connection.fetch(_RIGHTS, importer, _ALL)}
            assert reads == {name: None if name in others | OF_MIGRATIONS else ["SELECT"] for name in reads}
            assert writes == {name: None if name in others else _ALL for name in writes}
            assert len(writes) > len(others) + 5


async def test_names_of_roles_are_checked(seeded: str) -> None:
    for reader, importer, sentence in (
        ("same", "same", "must be different roles"),
        *(
            (name, "importer", "up to 63 lower-case letters")
            for name in ("pg_x", "Upper", "1a", "", "a" * 64, "a-b", "año", 'x"; --')
        ),
        ("reader", "pg_x", "up to 63 lower-case letters"),
    ):
        with pytest.raises(RoleError, match=sentence):
            await grant(seeded, reader, importer)


async def test_role_with_another_right_is_refused(seeded_database: str) -> None:
    reader, importer = own_name("reader_of_rights"), own_name("importer_of_rights")
    async with connected(seeded_database) as connection:
        for right in ("SUPERUSER", "CREATEDB", "CREATEROLE", "REPLICATION", "BYPASSRLS", "IN ROLE pg_monitor"):
            await connection.execute(f"CREATE ROLE {reader} {right}")
            try:
                with pytest.raises(RoleError, match=f"Role {reader} is a superuser, or has other rights or member"):
                    await grant(seeded_database, reader, importer)
            finally:
                await connection.execute(f"DROP ROLE {reader}")


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("GRANT INSERT ON somebody_elses TO {}", "somebody_elses"),
        ("GRANT UPDATE (id) ON somebody_elses TO {}", "somebody_elses"),
        ("ALTER TABLE somebody_elses OWNER TO {}", "somebody_elses"),
        ("CREATE SCHEMA other; GRANT CREATE ON SCHEMA other TO {}", "schema other"),
    ],
)
async def test_reader_that_can_write_elsewhere_is_refused(seeded_database: str, given: str, where: str) -> None:
    reader, importer = own_name("reader_of_rights"), own_name("importer_of_rights")
    async with connected(seeded_database) as connection:
        await connection.execute(f"CREATE ROLE {reader}; CREATE TABLE somebody_elses (id int); {given.format(reader)}")
        with pytest.raises(RoleError, match=f"^Role {reader} can still write to {where}: revoke"):
            await grant(seeded_database, reader, importer)
        assert not await connection.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", importer)
