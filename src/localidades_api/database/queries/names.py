"""The localities of a release, for its index of names."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import Row, text

from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database

_BATCH = 20_000  # localities per statement, 2 MB

_LOCALITIES = text(
    """
    SELECT id, municipio_id, clave, nombre, ambito, poblacion, latitud, longitud, altitud, viviendas
      FROM localities
     WHERE release_id = :release_id AND position > :first AND position <= :last
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
