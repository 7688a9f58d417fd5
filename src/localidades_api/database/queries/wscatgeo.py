"""Estados, municipios and localities as INEGI's web service wscatgeo writes them: JSON made by Postgres."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from sqlalchemy import text

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, STATE_KEYS, municipalities_of
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.replica_check import requires_release

Version = Literal["v1", "v2"]
Level = Literal["mgee", "mgem", "localidades"]
VERSIONS: tuple[Version, ...] = ("v1", "v2")

MAX_FOUND = 10_000  # rows of an answer to `buscar`, some 3 MB
_CLAVE_OF_SEAT = "0001"  # by INEGI's convention
_NO_SEAT = "----"  # in Ciudad de México, whose alcaldías have no cabecera
_CIUDAD_DE_MEXICO = 9
# What `lower` leaves alone where the database has the locale C.
_UPPER, _LOWER = "ÁÉÍÓÚÜÑ", "áéíóúüñ"


class Rows(NamedTuple):
    """Rows as members of a JSON array, without its brackets."""

    quantity: int
    members: str


def _sums(group: str, *, v1: bool) -> tuple[str, str]:
    """Return the columns that sum up what is published of localities, and the join that they need."""
    names = (
        {"pob": "poblacion", "pob_fem": "poblacion_femenina", "pob_mas": "poblacion_masculina", "viv": "viviendas"}
        if v1
        else {
            "pob_total": "poblacion",
            "pob_femenina": "poblacion_femenina",
            "pob_masculina": "poblacion_masculina",
            "total_viviendas_habitadas": "viviendas",
        }
    )
    columns = ", ".join(f"coalesce(sums.{column}::text, '-') AS {name}" for name, column in names.items())
    summed = ", ".join(f"sum({column}) AS {column}" for column in names.values())
    join = f"""
        LEFT JOIN (SELECT {group} AS id, {summed}
                     FROM localities
                    WHERE release_id = :release_id AND municipio_id BETWEEN :first_municipio AND :last_municipio
                    GROUP BY 1) AS sums
            ON sums.id = area.id
    """
    return columns, join


def _mgee(*, v1: bool) -> str:
    sums, join = _sums(f"municipio_id / {KEYS_OF_A_STATE}", v1=v1)
    key, name = ("cve_agee", "nom_agee") if v1 else ("cve_ent", "nomgeo")
    return f"""
        SELECT area.clave AS cvegeo, area.clave AS {key}, area.nombre AS {name},
               area.abreviatura AS nom_abrev, {sums}
          FROM states AS area {join}
         WHERE area.release_id = :release_id
    """


def _mgem(*, v1: bool) -> str:
    sums, join = _sums("municipio_id", v1=v1)
    state, key, name = ("cve_agee", "cve_agem", "nom_agem") if v1 else ("cve_ent", "cve_mun", "nomgeo")
    seat = f"l.release_id = :release_id AND l.id = area.id * {KEYS_OF_A_MUNICIPIO} + {int(_CLAVE_OF_SEAT)}"
    return f"""
        SELECT lpad(area.id::text, 5, '0') AS cvegeo, lpad(area.estado_id::text, 2, '0') AS {state},
               area.clave AS {key}, area.nombre AS {name},
               CASE WHEN area.estado_id = {_CIUDAD_DE_MEXICO} THEN '{_NO_SEAT}'
                    WHEN EXISTS (SELECT FROM localities AS l WHERE {seat}) THEN '{_CLAVE_OF_SEAT}' END AS cve_cab,
               {sums}
          FROM municipalities AS area {join}
         WHERE area.release_id = :release_id
    """


def _localidades(*, v1: bool) -> str:
    state, municipality, name = ("cve_agee", "cve_agem", "nom_loc") if v1 else ("cve_ent", "cve_mun", "nomgeo")
    population, dwellings = ("pob", "viv") if v1 else ("pob_total", "total_viviendas_habitadas")
    last = ", area.carta AS cve_carta, 1 AS estatus" if v1 else ""
    return f"""
        SELECT lpad(area.id::text, 9, '0') AS cvegeo,
               lpad((area.municipio_id / {KEYS_OF_A_STATE})::text, 2, '0') AS {state},
               lpad((area.municipio_id % {KEYS_OF_A_STATE})::text, 3, '0') AS {municipality},
               area.clave AS cve_loc, area.nombre AS {name},
               CASE area.ambito WHEN 'U' THEN 'URBANO' WHEN 'R' THEN 'RURAL' END AS ambito,
               to_char(area.latitud, 'FM990.0000000') AS latitud, to_char(area.longitud, 'FM990.0000000') AS longitud,
               CASE WHEN area.altitud < 0 THEN '-' || lpad((-area.altitud)::text, 3, '0')
                    ELSE lpad(area.altitud::text, greatest(4, length(area.altitud::text)), '0') END AS altitud,
               coalesce(area.poblacion::text, '-') AS {population}, coalesce(area.viviendas::text, '-') AS {dwellings}
               {last}
          FROM localities AS area
         WHERE area.release_id = :release_id AND area.municipio_id BETWEEN :first_municipio AND :last_municipio
    """


_LEVELS = {"mgee": _mgee, "mgem": _mgem, "localidades": _localidades}
_ROWS = {(version, level): write(v1=version == "v1") for version in VERSIONS for level, write in _LEVELS.items()}
_IN_RANGE = "area.id BETWEEN :first AND :last"
_OF_AMBITO = " AND (CAST(:ambito AS text) IS NULL OR area.ambito = :ambito)"
_FOUND = f"strpos(lower(translate(area.nombre, '{_UPPER}', '{_LOWER}')), :words) > 0"


class WscatgeoRepository:
    """Reads a release as wscatgeo does; a database that does not answer raises DatabaseUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_areas(
        self, release: Release, version: Version, level: Level, first: int, last: int, *, ambito: str | None = None
    ) -> Rows:
        """Return the areas whose keys are in a range, by key; of localities, those of an ámbito if one is given."""
        parameters: dict[str, object] = {"first": first, "last": last}
        condition = _IN_RANGE
        if level == "localidades":
            condition, parameters = condition + _OF_AMBITO, parameters | {"ambito": ambito}
        return await self._list(release, version, level, condition, parameters, _municipios(level, first, last))

    async def find_areas(self, release: Release, version: Version, level: Level, words: str) -> Rows:
        """Return the areas whose names have the words, by key: at most one more than `MAX_FOUND`.

        Upper and lower case are the same, letters with and without marks are not.
        """
        every = municipalities_of(STATE_KEYS[0])[0], municipalities_of(STATE_KEYS[-1])[1]
        return await self._list(release, version, level, _FOUND, {"words": words.lower()}, every)

    async def _list(
        self,
        release: Release,
        version: Version,
        level: Level,
        condition: str,
        parameters: Mapping[str, object],
        municipios: tuple[int, int],
    ) -> Rows:
        first, last = municipios
        rows = await self._database.fetch(
            text(
                f"""
                SELECT count(*) AS quantity,
                       coalesce(string_agg(json_strip_nulls(row_to_json(area))::text, ',' ORDER BY cvegeo), '')
                       AS members
                  FROM ({_ROWS[version, level]} AND {condition} LIMIT {MAX_FOUND + 1}) AS area
                """
            ),
            {"release_id": release.id, "first_municipio": first, "last_municipio": last, **parameters},
            replica_check=requires_release(release),
        )
        return Rows(rows[0].quantity, rows[0].members)


def _municipios(level: Level, first: int, last: int) -> tuple[int, int]:
    """Return the lowest and the highest key of the municipios that areas are, are in, or consist of."""
    match level:
        case "mgee":
            return municipalities_of(first)[0], municipalities_of(last)[1]
        case "mgem":
            return first, last
        case "localidades":
            return first // KEYS_OF_A_MUNICIPIO, last // KEYS_OF_A_MUNICIPIO
