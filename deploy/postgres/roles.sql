-- Creates the two roles of the service or brings them up to date, without passwords: the reader, for `serve`, and the
-- importer, for the commands that write. Run it in the service's database as a superuser, or as the database's owner
-- with CREATEROLE:
--
--   psql --dbname=localidades --file=deploy/postgres/roles.sql
--
-- `--set=reader=web --set=importer=loader` gives them other names. It is one transaction: if it fails, nothing changes.
\set ON_ERROR_STOP on
\set QUIET on
\if :{?reader}
\else
    \set reader localidades_reader
\endif
\if :{?importer}
\else
    \set importer localidades_importer
\endif

BEGIN;
-- While a change of owner waits for its lock, readers queue behind it.
SET LOCAL lock_timeout = '500ms';
SET LOCAL client_min_messages = warning;
SELECT current_schema() AS schema \gset

SELECT DISTINCT format('CREATE ROLE %I', name) FROM unnest(ARRAY[:'reader', :'importer']) AS name
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE :"reader" LOGIN;
ALTER ROLE :"importer" LOGIN;
ALTER ROLE :"reader" IN DATABASE :"DBNAME" SET default_transaction_read_only = on;

-- Everybody may create temporary tables, and up to Postgres 14 tables in `public`.
REVOKE CREATE, TEMPORARY ON DATABASE :"DBNAME" FROM PUBLIC, :"reader";
REVOKE CREATE ON SCHEMA :"schema" FROM PUBLIC, :"reader";
GRANT CONNECT ON DATABASE :"DBNAME" TO :"reader", :"importer";
GRANT USAGE ON SCHEMA :"schema" TO :"reader", :"importer";
GRANT CREATE ON SCHEMA :"schema" TO :"importer";

-- The importer owns the tables, because only the owner of a table can attach a partition. Whoever is no superuser has
-- to be a member of the role to which a table goes.
SELECT format('GRANT %I TO CURRENT_USER', :'importer') FROM pg_roles
 WHERE rolname = current_user AND rolname <> :'importer' AND NOT rolsuper \gexec
SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, :'importer') FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relowner <> :'importer'::regrole
   AND (relname ~ '^localities_r[0-9]+$' OR relname = ANY ('{
            localidades_alembic_version, releases, current_release, publications, comparisons, name_index, pending_seed,
            states, municipalities, localities, outline_edition, outlines, outline_rings}'))
\gexec

-- The reader may SELECT from its tables, also from those that it makes later, and has no other right.
SELECT format('REVOKE ALL ON %s FROM PUBLIC, %I', oid::regclass, :'reader'),
       format('GRANT SELECT ON %s TO %I', oid::regclass, :'reader')
  FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relowner = :'importer'::regrole
\gexec
ALTER DEFAULT PRIVILEGES FOR ROLE :"importer" IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"reader";

-- Refuse roles that have more rights than that, from elsewhere.
WITH excess (what) AS (
    SELECT format('role %I is a superuser, or has other rights or memberships', rolname)
      FROM pg_roles AS r
     WHERE rolname IN (:'reader', :'importer')
       AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls
            OR EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid))
    UNION ALL
    SELECT format('role %I can write to %s', :'reader', c.oid::regclass)
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
     WHERE nspname !~ '^pg_|^information_schema$' AND relkind IN ('r', 'p', 'v', 'm', 'f')
       AND (relowner = :'reader'::regrole OR has_table_privilege(:'reader', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
            OR has_any_column_privilege(:'reader', c.oid, 'INSERT, UPDATE'))
    UNION ALL
    SELECT format('role %I can create tables in schema %I', :'reader', nspname)
      FROM pg_namespace WHERE has_schema_privilege(:'reader', oid, 'CREATE')
    UNION ALL
    SELECT format('role %I can create schemas or temporary tables', :'reader')
     WHERE has_database_privilege(:'reader', current_database(), 'CREATE, TEMPORARY')
)
SELECT format('DO %L', format('BEGIN RAISE EXCEPTION USING MESSAGE = %L; END', 'Refused: ' || string_agg(what, '; ')))
  FROM excess HAVING count(*) > 0 \gexec
COMMIT;
