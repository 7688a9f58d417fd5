"""The names of a release's localities, and their names in earlier releases."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any

from sqlalchemy import Row, TextClause, text

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.places import KEY_IS_NEW, SAME_PLACE, has_localities

_BATCH = 20_000  # localities per statement, 2 MB

_LOCALITIES = text(
    """
    SELECT id, municipio_id, clave, nombre, ambito, poblacion, latitud, longitud, altitud, viviendas
      FROM localities
     WHERE release_id = :release_id AND position > :first AND position <= :last
    """
)
# The same key under another name or in a municipio of another name; and withdrawn keys with exactly one successor.
_OTHER_NAMES = text(
    f"""
    SELECT new.id, old.nombre, om.nombre AS municipio, old.id AS other_id
      FROM localities AS old
      JOIN municipalities AS om ON om.release_id = old.release_id AND om.id = old.municipio_id
      JOIN localities AS new ON new.id = old.id
      JOIN municipalities AS nm ON nm.release_id = new.release_id AND nm.id = new.municipio_id
     WHERE old.release_id = :other_id AND new.release_id = :release_id
       AND (old.nombre <> new.nombre OR om.nombre <> nm.nombre)
     UNION ALL
    SELECT min(new.id), min(old.nombre), min(om.nombre), old.id
      FROM localities AS old
      JOIN municipalities AS om ON om.release_id = old.release_id AND om.id = old.municipio_id
      JOIN localities AS new ON {SAME_PLACE}
     WHERE old.release_id = :other_id AND new.release_id = :release_id
       AND NOT EXISTS (SELECT FROM localities AS kept WHERE kept.release_id = :release_id AND kept.id = old.id)
       AND {KEY_IS_NEW}
     GROUP BY old.id
    HAVING count(*) = 1
    """
)
_WITHDRAWN = text(
    f"""
    SELECT old.id, old.nombre, om.nombre AS municipio
      FROM localities AS old
      JOIN municipalities AS om ON om.release_id = old.release_id AND om.id = old.municipio_id
     WHERE old.release_id = :other_id AND {has_localities(":release_id")}
       AND NOT EXISTS (SELECT FROM localities AS kept WHERE kept.release_id = :release_id AND kept.id = old.id)
    """
)


async def list_localities(database: Database, release: Release) -> AsyncIterator[Sequence[Row[Any]]]:
    """Yield the localities of a release in batches."""
    for first in range(0, release.localities, _BATCH):
        yield await database.fetch_from(
            release,
            _LOCALITIES,
            {"release_id": release.id, "first": first, "last": first + _BATCH},
        )


async def list_other_names(database: Database, release: Release, others: Collection[Release]) -> list[Row[Any]]:
    """Return the names and keys of this release's localities in others, where they differ."""
    return await _compare(database, _OTHER_NAMES, release, others)


async def list_withdrawn(database: Database, release: Release, others: Collection[Release]) -> list[Row[Any]]:
    """Return the localities of these releases whose keys this one lacks."""
    return await _compare(database, _WITHDRAWN, release, others)


async def _compare(
    database: Database, statement: TextClause, release: Release, others: Collection[Release]
) -> list[Row[Any]]:
    rows: list[Row[Any]] = []
    for other in others:
        parameters = {"release_id": release.id, "other_id": other.id}
        rows += await database.fetch_from((release, other), statement, parameters)
    return rows
