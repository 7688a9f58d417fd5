"""Estados, municipios and localities in the JSON of INEGI's web service wscatgeo, written by Postgres."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from sqlalchemy import text

from localidades_api.catalogue.capitals import CIUDAD_DE_MEXICO
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import (
    CLAVE_OF_SEAT,
    KEYS_OF_A_MUNICIPIO,
    KEYS_OF_A_STATE,
    STATE_KEYS,
    municipalities_of,
)
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import has_localities

Version = Literal["v1", "v2"]
Level = Literal["mgee", "mgem", "localidades"]
VERSIONS: tuple[Version, ...] = ("v1", "v2")

MAX_FOUND = 10_000  # rows of an answer to `buscar`, some 3 MB
_NO_SEAT = "----"  # in Ciudad de México, whose alcaldías have no cabecera
# Letters that `lower` does not change in a database with the locale C.
_UPPER, _LOWER = "ÁÉÍÓÚÜÑ", "áéíóúüñ"


class Rows(NamedTuple):
    """Rows as elements of a JSON array, without its brackets, and their number."""

    quantity: int
    members: str


# The members of each level in order, by their names in versions 1 and 2 (None where it has none), with their SQL.
_Members = Sequence[tuple[str, str | None, str]]
_COUNTS = (
    ("pob", "pob_total", "poblacion"),
    ("pob_fem", "pob_femenina", "poblacion_femenina"),
    ("pob_mas", "pob_masculina", "poblacion_masculina"),
    ("viv", "total_viviendas_habitadas", "viviendas"),
)
_SUMS: _Members = [(v1, v2, f"coalesce(sums.{column}::text, '-')") for v1, v2, column in _COUNTS]
_HAS_SEAT = f"""
    EXISTS (SELECT FROM localities AS seat
             WHERE seat.release_id = area.release_id
               AND seat.id = area.id * {KEYS_OF_A_MUNICIPIO} + {int(CLAVE_OF_SEAT)})
"""
_MEMBERS: Mapping[Level, _Members] = {
    "mgee": [
        ("cvegeo", "cvegeo", "area.clave"),
        ("cve_agee", "cve_ent", "area.clave"),
        ("nom_agee", "nomgeo", "area.nombre"),
        ("nom_abrev", "nom_abrev", "area.abreviatura"),
        *_SUMS,
    ],
    "mgem": [
        ("cvegeo", "cvegeo", "lpad(area.id::text, 5, '0')"),
        ("cve_agee", "cve_ent", "lpad(area.estado_id::text, 2, '0')"),
        ("cve_agem", "cve_mun", "area.clave"),
        ("nom_agem", "nomgeo", "area.nombre"),
        (
            "cve_cab",
            "cve_cab",
            f"CASE WHEN area.estado_id = {CIUDAD_DE_MEXICO} THEN '{_NO_SEAT}'"
            f" WHEN {_HAS_SEAT} THEN '{CLAVE_OF_SEAT}' END",
        ),
        *_SUMS,
    ],
    "localidades": [
        ("cvegeo", "cvegeo", "lpad(area.id::text, 9, '0')"),
        ("cve_agee", "cve_ent", f"lpad((area.municipio_id / {KEYS_OF_A_STATE})::text, 2, '0')"),
        ("cve_agem", "cve_mun", f"lpad((area.municipio_id % {KEYS_OF_A_STATE})::text, 3, '0')"),
        ("cve_loc", "cve_loc", "area.clave"),
        ("nom_loc", "nomgeo", "area.nombre"),
        ("ambito", "ambito", "CASE area.ambito WHEN 'U' THEN 'URBANO' WHEN 'R' THEN 'RURAL' END"),
        ("latitud", "latitud", "to_char(area.latitud, 'FM990.0000000')"),
        ("longitud", "longitud", "to_char(area.longitud, 'FM990.0000000')"),
        (
            "altitud",
            "altitud",
            "CASE WHEN area.altitud < 0 THEN '-' || lpad((-area.altitud)::text, 3, '0')"
            " ELSE lpad(area.altitud::text, greatest(4, length(area.altitud::text)), '0') END",
        ),
        ("pob", "pob_total", "coalesce(area.poblacion::text, '-')"),
        ("viv", "total_viviendas_habitadas", "coalesce(area.viviendas::text, '-')"),
        ("cve_carta", None, "area.carta"),
        ("estatus", None, "1"),  # not withdrawn; the only number
    ],
}


def _row(level: Level, version: Version) -> str:
    """Write a JSON object with the members of a version; one without a value is left out."""
    names = ((member[VERSIONS.index(version)], member[-1]) for member in _MEMBERS[level])
    members = ", ".join(f"{sql} AS {name}" for name, sql in names if name)
    return f"(SELECT json_strip_nulls(to_json(members)) FROM (SELECT {members}) AS members)::text"


def _summed(group: str) -> str:
    """Join the sums of the localities' published figures."""
    return f"""
      LEFT JOIN (SELECT {group} AS id, {", ".join(f"sum({column}) AS {column}" for _, _, column in _COUNTS)}
                   FROM localities
                  WHERE release_id = :release_id AND municipio_id BETWEEN :first_municipio AND :last_municipio
                  GROUP BY 1) AS sums
             ON sums.id = area.id
          WHERE area.release_id = :release_id AND {has_localities(":release_id")}
    """


_FROM: Mapping[Level, str] = {
    "mgee": f"states AS area {_summed(f'municipio_id / {KEYS_OF_A_STATE}')}",
    "mgem": f"municipalities AS area {_summed('municipio_id')}",
    "localidades": """
        localities AS area
          WHERE area.release_id = :release_id AND area.municipio_id BETWEEN :first_municipio AND :last_municipio
    """,
}
_IN_RANGE = "area.id BETWEEN :first AND :last"
_OF_AMBITO = " AND (CAST(:ambito AS text) IS NULL OR area.ambito = :ambito)"
# The folded words are found quickly, and rule most names out.
_FOUND_FOLDED = "strpos(area.folded, :folded) > 0 AND "
_FOUND = f"strpos(lower(translate(area.nombre, '{_UPPER}', '{_LOWER}')), :words) > 0"


async def list_areas(
    database: Database,
    release: Release,
    version: Version,
    level: Level,
    first: int,
    last: int,
    *,
    ambito: str | None = None,
) -> Rows:
    """Return the areas whose keys are in a range, by key; of localities, those of an ámbito if one is given."""
    condition = _IN_RANGE + (_OF_AMBITO if level == "localidades" else "")
    parameters = {"first": first, "last": last, "ambito": ambito}
    return await _list(database, release, version, level, condition, parameters, _municipios(level, first, last))


async def find_areas(database: Database, release: Release, version: Version, level: Level, words: str) -> Rows:
    """Return the areas whose names contain the words, by key: at most one more than `MAX_FOUND`.

    The search ignores case, but not marks.
    """
    every = municipalities_of(STATE_KEYS[0])[0], municipalities_of(STATE_KEYS[-1])[1]
    condition = (_FOUND_FOLDED if level == "localidades" else "") + _FOUND
    parameters = {"words": words.lower(), "folded": fold(words)}
    return await _list(database, release, version, level, condition, parameters, every)


async def _list(
    database: Database,
    release: Release,
    version: Version,
    level: Level,
    condition: str,
    parameters: Mapping[str, object],
    municipios: tuple[int, int],
) -> Rows:
    statement = text(
        f"""
        SELECT count(*) AS quantity, coalesce(string_agg(row, ',' ORDER BY id), '') AS members
          FROM (SELECT area.id, {_row(level, version)} AS row
                  FROM {_FROM[level]} AND {condition}
                 LIMIT {MAX_FOUND + 1}) AS rows
        """
    )
    bounds = dict(zip(("first_municipio", "last_municipio"), municipios, strict=True))
    [row] = await database.fetch_from(release, statement, {**bounds, **parameters})
    return Rows._make(row)


def _municipios(level: Level, first: int, last: int) -> tuple[int, int]:
    """Return the lowest and the highest key of the municipios of areas in a range of keys."""
    match level:
        case "mgee":
            return municipalities_of(first)[0], municipalities_of(last)[1]
        case "mgem":
            return first, last
        case "localidades":
            return first // KEYS_OF_A_MUNICIPIO, last // KEYS_OF_A_MUNICIPIO
