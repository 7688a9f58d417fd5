"""Every SELECT of the service: the catalogue, its search, its changes, and its records for downloads."""

from localidades_api.storage.repository.catalogue import CatalogueRepository, ChangeCounts, Reading
from localidades_api.storage.repository.changes import ChangesRepository, count_changes
from localidades_api.storage.repository.exports import RecordsRepository
from localidades_api.storage.repository.search import SearchRepository

__all__ = [
    "CatalogueRepository",
    "ChangeCounts",
    "ChangesRepository",
    "Reading",
    "RecordsRepository",
    "SearchRepository",
    "count_changes",
]
