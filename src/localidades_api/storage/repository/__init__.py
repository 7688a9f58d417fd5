"""Every SELECT of the service: releases, their records, search, changes, and records for downloads."""

from localidades_api.storage.repository.areas import AreasRepository
from localidades_api.storage.repository.catalogue import CatalogueRepository
from localidades_api.storage.repository.changes import ChangesRepository, count_changes
from localidades_api.storage.repository.exports import RecordsRepository
from localidades_api.storage.repository.map import MapRepository, Overview
from localidades_api.storage.repository.names import NamesRepository
from localidades_api.storage.repository.nearest import NearestRepository
from localidades_api.storage.repository.releases import ChangeCounts, Reading, ReleasesRepository
from localidades_api.storage.repository.tiles import TilesRepository

__all__ = [
    "AreasRepository",
    "CatalogueRepository",
    "ChangeCounts",
    "ChangesRepository",
    "MapRepository",
    "NamesRepository",
    "NearestRepository",
    "Overview",
    "Reading",
    "RecordsRepository",
    "ReleasesRepository",
    "TilesRepository",
    "count_changes",
]
