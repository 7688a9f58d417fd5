"""Every SELECT of the service: the catalogue, its search, its changes, and its records for downloads."""

from localidades_api.repository.catalogue import CatalogueRepository, Reading
from localidades_api.repository.changes import ChangesRepository
from localidades_api.repository.records import RecordsRepository
from localidades_api.repository.search import SearchRepository

__all__ = ["CatalogueRepository", "ChangesRepository", "Reading", "RecordsRepository", "SearchRepository"]
