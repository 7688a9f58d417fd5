#!/bin/sh
# Runs once, in the primary's empty cluster: creates the roles and the standby's replication slot.
set -eu

# The roles get their passwords here, and their rights from roles.sql, which the image runs next.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\getenv reader READER_PASSWORD
\getenv importer IMPORTER_PASSWORD
\getenv replicator REPLICATOR_PASSWORD
CREATE ROLE localidades_reader LOGIN PASSWORD :'reader';
CREATE ROLE localidades_importer LOGIN PASSWORD :'importer';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replicator';
SELECT FROM pg_create_physical_replication_slot('standby');
SQL

echo 'host replication replicator samenet scram-sha-256' >> "$PGDATA/pg_hba.conf"
