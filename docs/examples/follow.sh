#!/bin/sh
# Keep a copy of the catalogue in Postgres 15 or newer: sh follow.sh http://127.0.0.1:8000 postgresql:///copy
set -eu
service=$1/api/census
ask() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 "$@"; }

ask "$2" << 'SQL'
SET client_min_messages = warning;
CREATE TABLE IF NOT EXISTS held (release text);
CREATE TABLE IF NOT EXISTS localidades (
    id integer PRIMARY KEY, municipio_id integer, cvegeo text, clave text, nombre text, ambito text,
    latitud double precision, longitud double precision, altitud integer, carta text,
    poblacion integer, poblacion_masculina integer, poblacion_femenina integer, viviendas integer
);
SQL
old=$(ask "$2" --command "SELECT release FROM held")
new=$(curl -fsS "$service/?format=json" | sed -n 's/.*"release":"\([^"]*\)".*/\1/p')
if [ "$old" = "$new" ]; then echo "the copy holds $new already"; exit; fi

since=$old
file=$(mktemp)
trap 'rm -f "$file"' EXIT
if [ -n "$old" ] && curl -fs -o /dev/null "$service/?release=$old"; then  # the operator may have removed it
    curl -fsS -o "$file" "$service/releases/$new/changes/?since=$since&format=ndjson"
else
    since=
    curl -fsS -o "$file" "$service/localidades/download/?format=ndjson&release=$new"
fi

ask --set since="$since" --set new="$new" "$2" << SQL
BEGIN;
CREATE TEMPORARY TABLE lines (line jsonb) ON COMMIT DROP;
-- JSON has neither of these two control characters, so each line is one value.
\copy lines FROM '$file' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02')
CREATE TEMPORARY TABLE staged ON COMMIT DROP AS
    SELECT (line->>'id')::integer AS key, record.*
    FROM lines, jsonb_populate_record(
        NULL::localidades, CASE :'since' WHEN '' THEN line ELSE nullif(line->'after', 'null') END
    ) AS record;
ANALYZE staged;
DELETE FROM localidades AS l WHERE :'since' = '' AND NOT EXISTS (SELECT FROM staged WHERE key = l.id);
MERGE INTO localidades AS l USING staged AS s ON l.id = s.key
WHEN MATCHED AND s.id IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET
    nombre = s.nombre, ambito = s.ambito, latitud = s.latitud, longitud = s.longitud, altitud = s.altitud,
    carta = s.carta, poblacion = s.poblacion, poblacion_masculina = s.poblacion_masculina,
    poblacion_femenina = s.poblacion_femenina, viviendas = s.viviendas
WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT VALUES (
    s.id, s.municipio_id, s.cvegeo, s.clave, s.nombre, s.ambito, s.latitud, s.longitud, s.altitud, s.carta,
    s.poblacion, s.poblacion_masculina, s.poblacion_femenina, s.viviendas
);
DELETE FROM held;
INSERT INTO held VALUES (:'new');
COMMIT;
SQL
echo "the copy went from ${old:-nothing} to $new"
