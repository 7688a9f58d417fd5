"""Every SELECT of the service: releases, their records, search, changes, and records for downloads."""

from localidades_api.database.queries.areas import AreasRepository
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.changes import ChangesRepository, count_changes
from localidades_api.database.queries.downloads import RecordsRepository
from localidades_api.database.queries.names import NamesRepository
from localidades_api.database.queries.nearest import NearestRepository
from localidades_api.database.queries.releases import ChangeCounts, ReleaseSnapshot, ReleasesRepository
from localidades_api.database.queries.tiles import MapRepository, Overview, TilesRepository
from localidades_api.database.queries.wscatgeo import WscatgeoRepository

__all__ = [
    "AreasRepository",
    "CatalogueRepository",
    "ChangeCounts",
    "ChangesRepository",
    "MapRepository",
    "NamesRepository",
    "NearestRepository",
    "Overview",
    "RecordsRepository",
    "ReleaseSnapshot",
    "ReleasesRepository",
    "TilesRepository",
    "WscatgeoRepository",
    "count_changes",
]
