"""Every SELECT of the service: the catalogue, its search, its changes, and its records for downloads."""

from localidades_api.repository.catalogue import CatalogueRepository, ChangeCounts, Reading
from localidades_api.repository.changes import ChangesRepository, count_changes
from localidades_api.repository.records import RecordsRepository
from localidades_api.repository.search import SearchRepository

__all__ = [
    "CatalogueRepository",
    "ChangeCounts",
    "ChangesRepository",
    "Reading",
    "RecordsRepository",
    "SearchRepository",
    "count_changes",
]
