#!/bin/sh
# Runs once, on the first primary; Patroni passes the superuser's address. Creates the database and the two roles.
set -eu

# The roles get their passwords here, and their rights from `localidades-api roles`.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 "$1" <<'SQL'
\getenv reader READER_PASSWORD
\getenv importer IMPORTER_PASSWORD
CREATE ROLE localidades_reader LOGIN PASSWORD :'reader';
CREATE ROLE localidades_importer LOGIN PASSWORD :'importer';
CREATE DATABASE localidades;
SQL
