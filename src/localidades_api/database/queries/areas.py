"""Summaries of estados and municipios, and their cabeceras."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.capitals import CAPITALS, CIUDAD_DE_MEXICO
from localidades_api.catalogue.keys import CLAVE_OF_SEAT, KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE
from localidades_api.catalogue.schemas import DEMO_RELEASE, Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import has_localities

LARGEST = 10  # places
SHOWN_RELEASES = 12  # the newest

_CELLS_PER_DEGREE = 4  # an estado is some hundred cells


def _in_cells(degrees: str) -> str:
    """Write the degrees of the cell that a column of degrees is in."""
    return f"round({degrees} * {_CELLS_PER_DEGREE}) / {_CELLS_PER_DEGREE}"


# Each part reads a range of the index (release_id, municipio_id, position); a municipio is a range of one. The join of
# the cabecera finds nothing for an estado.
_SUMMARY = text(
    f"""
      WITH cells AS (
               SELECT ambito, {_in_cells("longitud")} AS longitud, {_in_cells("latitud")} AS latitud,
                      count(*) AS localities, count(poblacion) AS known, sum(poblacion) AS population
                 FROM localities
                WHERE release_id = :release_id AND municipio_id BETWEEN :first AND :last
                GROUP BY 1, 2, 3)
    SELECT (SELECT coalesce(json_agg(kinds), '[]')
              FROM (SELECT ambito, sum(localities) AS localities, sum(known) AS known,
                           coalesce(sum(population), 0) AS population
                      FROM cells
                     GROUP BY ambito) AS kinds) AS kinds,
           (SELECT coalesce(json_agg(DISTINCT jsonb_build_array(longitud, latitud)), '[]') FROM cells) AS points,
           (SELECT coalesce(json_agg(largest), '[]')
              FROM (SELECT l.id, l.nombre, l.ambito, l.poblacion, l.latitud, l.longitud, l.municipio_id,
                           m.nombre AS municipio
                      FROM localities AS l
                      JOIN municipalities AS m ON m.release_id = l.release_id AND m.id = l.municipio_id
                     WHERE l.release_id = :release_id AND l.municipio_id BETWEEN :first AND :last
                       AND l.poblacion IS NOT NULL
                     ORDER BY l.prominence
                     LIMIT {LARGEST}) AS largest) AS largest,
           (SELECT coalesce(json_agg(past), '[]')
              FROM (SELECT r.name AS release, count(*) AS municipios, sum(m.localities) AS localidades,
                           min(m.nombre) AS nombre
                      FROM releases AS r
                      JOIN municipalities AS m ON m.release_id = r.id AND m.id BETWEEN :first AND :last
                     WHERE r.retired_at IS NULL AND (r.name = '{DEMO_RELEASE}') = :is_demo
                       AND {has_localities(":release_id")}
                     GROUP BY r.id
                     ORDER BY r.id DESC
                     LIMIT {SHOWN_RELEASES}) AS past) AS past,
           seat.id AS seat_id, seat.nombre AS seat, seat.latitud AS seat_latitud, seat.longitud AS seat_longitud
      FROM (VALUES (1)) AS one
      LEFT JOIN localities AS seat
        ON seat.release_id = :release_id AND CAST(:first AS int) = CAST(:last AS int)
       AND seat.id = CAST(:first AS int) * {KEYS_OF_A_MUNICIPIO} + {int(CLAVE_OF_SEAT)}
    """
)

_SEATS = text(
    "SELECT municipio_id AS id, longitud, latitud FROM localities WHERE release_id = :release_id AND id = ANY(:ids)"
)
_LARGEST_SEATS = text(
    f"""
    SELECT DISTINCT ON (municipio_id / {KEYS_OF_A_STATE})
           municipio_id / {KEYS_OF_A_STATE} AS id, longitud, latitud
      FROM localities
     WHERE release_id = :release_id AND clave = '{CLAVE_OF_SEAT}' AND latitud IS NOT NULL
       AND municipio_id / {KEYS_OF_A_STATE} = ANY(:ids)
     ORDER BY municipio_id / {KEYS_OF_A_STATE}, prominence
    """
)
# The alcaldías of Ciudad de México are one city, with the inhabitants of all.
_CITIES = text(
    f"""
    SELECT id, nombre, longitud, latitud, municipio_id,
           CASE WHEN estado_id = {CIUDAD_DE_MEXICO} THEN of_estado ELSE poblacion END AS poblacion
      FROM (SELECT id, nombre, poblacion, longitud, latitud, municipio_id,
                   municipio_id / {KEYS_OF_A_STATE} AS estado_id,
                   sum(poblacion) OVER estado AS of_estado,
                   row_number() OVER (estado ORDER BY municipio_id = ANY(:capitals) DESC, prominence) = 1 AS is_capital
              FROM localities
             WHERE release_id = :release_id AND clave = '{CLAVE_OF_SEAT}' AND latitud IS NOT NULL
            WINDOW estado AS (PARTITION BY municipio_id / {KEYS_OF_A_STATE})) AS seats
     WHERE is_capital OR estado_id <> {CIUDAD_DE_MEXICO}
     ORDER BY is_capital DESC, poblacion DESC NULLS LAST, id
     LIMIT :limit
    """
)
_CENTRES = text(
    f"""
    SELECT municipio_id / {KEYS_OF_A_STATE} AS id, avg(longitud) AS longitud, avg(latitud) AS latitud
      FROM localities
     WHERE release_id = :release_id AND clave = '{CLAVE_OF_SEAT}' AND latitud IS NOT NULL
     GROUP BY 1
     ORDER BY 1
    """
)
_MUNICIPALITIES = text(
    f"""
    SELECT estado_id, count(*)::int AS municipios
      FROM municipalities
     WHERE release_id = :release_id AND {has_localities(":release_id")}
     GROUP BY estado_id
    """
)


async def get_area_summary(database: Database, release: Release, first: int, last: int) -> Row[Any]:
    """Return a summary of the municipios in a range of keys.

    `kinds` has an item per ámbito: its `localities`, how many have a `known` population, and their `population`.
    `points` are the longitudes and latitudes of cells that hold any of them, or nulls.
    `largest` has the places of the most inhabitants, `past` the newest releases that have the area, newest first.
    `seat_id`, `seat`, `seat_latitud` and `seat_longitud` are of the cabecera of a single municipio, or None.
    """
    parameters = {"first": first, "last": last, "is_demo": release.is_demo}
    return (await database.fetch_from(release, _SUMMARY, parameters))[0]


async def list_seats(database: Database, release: Release, ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return the key of each of these municipios, and its cabecera's longitude and latitude in degrees, or None."""
    seats = [id_ * KEYS_OF_A_MUNICIPIO + int(CLAVE_OF_SEAT) for id_ in ids]
    return await database.fetch_from(release, _SEATS, {"ids": seats})


async def list_largest_seats(database: Database, release: Release, ids: Collection[int]) -> Sequence[Row[Any]]:
    """Return the key of each of these estados, and its largest cabecera's longitude and latitude in degrees."""
    return await database.fetch_from(release, _LARGEST_SEATS, {"ids": list(ids)})


async def list_cities(database: Database, release: Release, limit: int) -> Sequence[Row[Any]]:
    """Return the cabeceras of the most inhabitants, those of the estados first.

    Where a release lacks an estado's capital, its largest cabecera takes that place.
    """
    return await database.fetch_from(release, _CITIES, {"capitals": list(CAPITALS), "limit": limit})


async def list_centres(database: Database, release: Release) -> Sequence[Row[Any]]:
    """Return the key of each estado and the middle of its cabeceras: longitude and latitude in degrees."""
    return await database.fetch_from(release, _CENTRES)


async def count_municipalities(database: Database, release: Release) -> dict[int, int]:
    """Return how many municipios each estado has, by its key."""
    rows = await database.fetch_from(release, _MUNICIPALITIES)
    return {row.estado_id: row.municipios for row in rows}
