"""The two roles of a database: a reader for the service, and an owner of the tables for imports and migrations.

Passwords are not set here: they would show on a command line, in an environment or in a log. The changes are one
transaction, and repeating them changes nothing.
"""

import re

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from localidades_api.database.import_lock import lock_imports
from localidades_api.database.models import VERSION_TABLE, metadata, pending_seed
from localidades_api.database.pool import Database
from localidades_api.database.sessions import session_settings
from localidades_api.errors import RoleError

_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_OF_EXTENSIONS = ("outline_edition", "outlines", "outline_rings")
_TABLES = [*metadata.tables, *_OF_EXTENSIONS, VERSION_TABLE]
_READ = {*metadata.tables, *_OF_EXTENSIONS} - {pending_seed.name}


async def grant_roles(database: Database, *, reader: str, importer: str, deadline: float) -> str:
    """Create or update the two roles; return the name of the database.

    `deadline` is the seconds that the service waits for a statement of the reader.

    Raises RoleError, ImportRunningError or DatabaseUnavailableError, and then changes nothing.
    """
    for name in (reader, importer):
        if not _NAME.fullmatch(name):
            raise RoleError(
                "A role's name must have up to 63 lower-case letters, digits and underscores, and must not"
                " begin with pg_."
            )
    if reader == importer:
        raise RoleError("The reader and the importer must be different roles: one only reads, the other writes.")
    async with database.connect() as connection:
        # While ALTER TABLE ... OWNER waits for its lock, readers queue behind it.
        await connection.execute(text("SET LOCAL lock_timeout = '500ms'"))
        await lock_imports(connection)
        for name in (reader, importer):
            await _make_role(connection, name)
        names = await connection.execute(text("SELECT quote_ident(current_database()), quote_ident(current_schema())"))
        database_name, schema = names.one()
        await _grant_ownership(connection, importer, database_name, schema)
        await _grant_reading(connection, reader, importer, database_name, schema)
        for setting, value in session_settings(deadline).items():
            await connection.execute(text(f'ALTER ROLE "{reader}" IN DATABASE {database_name} SET {setting} = {value}'))
        await _refuse_writer(connection, reader)
        await connection.commit()
    return str(database_name)


async def _make_role(connection: AsyncConnection, name: str) -> None:
    """Create a role, or let an existing one log in; raise RoleError if it has other privileges."""
    found = await connection.execute(
        text(
            """
            SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
                   OR EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid)
              FROM pg_roles AS r WHERE rolname = :name
            """
        ),
        {"name": name},
    )
    has_extra_privileges = found.scalar_one_or_none()
    if has_extra_privileges:
        raise RoleError(
            f"Role {name} is a superuser, or has other rights or memberships: name a role made for this service."
        )
    if has_extra_privileges is None:
        await connection.execute(text(f'CREATE ROLE "{name}" LOGIN'))
    else:
        await connection.execute(text(f'ALTER ROLE "{name}" LOGIN'))


async def _grant_ownership(connection: AsyncConnection, importer: str, database: str, schema: str) -> None:
    """Make the importer the owner of the tables, since only the owner of a table can attach a partition."""
    if not await connection.scalar(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")):
        await connection.execute(text(f'GRANT "{importer}" TO CURRENT_USER'))  # required to transfer a table
    await connection.execute(text(f'GRANT CONNECT ON DATABASE {database} TO "{importer}"'))
    await connection.execute(text(f'GRANT USAGE, CREATE ON SCHEMA {schema} TO "{importer}"'))
    others = await connection.execute(
        text(
            """
            SELECT quote_ident(relname) FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
               AND (relname = ANY(:names) OR relname ~ '^localities_r[0-9]+$')
               AND pg_get_userbyid(relowner) <> :importer
            """
        ),
        {"names": _TABLES, "importer": importer},
    )
    for table in others.scalars():
        await connection.execute(text(f'ALTER TABLE {schema}.{table} OWNER TO "{importer}"'))


async def _grant_reading(connection: AsyncConnection, reader: str, importer: str, database: str, schema: str) -> None:
    """Grant SELECT on the tables of the service, including those of later migrations, and no other right."""
    # Up to Postgres 14 everyone could create tables in `public`; everyone can still create temporary ones.
    await connection.execute(text(f'REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, "{reader}"'))
    await connection.execute(text(f'REVOKE CREATE, TEMPORARY ON DATABASE {database} FROM PUBLIC, "{reader}"'))
    await connection.execute(text(f'GRANT CONNECT ON DATABASE {database} TO "{reader}"'))
    await connection.execute(text(f'GRANT USAGE ON SCHEMA {schema} TO "{reader}"'))
    await connection.execute(
        text(f'ALTER DEFAULT PRIVILEGES FOR ROLE "{importer}" IN SCHEMA {schema} GRANT SELECT ON TABLES TO "{reader}"')
    )
    existing = await connection.execute(
        text("SELECT name FROM unnest(CAST(:names AS text[])) AS name WHERE to_regclass(name) IS NOT NULL"),
        {"names": _TABLES},
    )
    for table in existing.scalars():
        await connection.execute(text(f'REVOKE ALL ON {schema}.{table} FROM PUBLIC, "{reader}"'))
        if table in _READ:
            await connection.execute(text(f'GRANT SELECT ON {schema}.{table} TO "{reader}"'))


async def _refuse_writer(connection: AsyncConnection, reader: str) -> None:
    """Raise RoleError if the reader can still write, as an owner or by a grant of somebody else."""
    writable = await connection.execute(
        text(
            """
            SELECT c.oid::regclass::text
              FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
             WHERE n.nspname !~ '^pg_|^information_schema$' AND relkind IN ('r', 'p', 'v', 'm', 'f')
               AND (pg_get_userbyid(relowner) = :reader
                    OR has_table_privilege(:reader, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
                    OR has_any_column_privilege(:reader, c.oid, 'INSERT, UPDATE'))
            UNION
            SELECT 'schema ' || nspname FROM pg_namespace WHERE has_schema_privilege(:reader, oid, 'CREATE')
            UNION
            SELECT 'database ' || current_database()
             WHERE has_database_privilege(:reader, current_database(), 'CREATE, TEMPORARY')
             LIMIT 1
            """
        ),
        {"reader": reader},
    )
    if what := writable.scalar_one_or_none():
        raise RoleError(f"Role {reader} can still write to {what}: revoke that right, or name another role.")
