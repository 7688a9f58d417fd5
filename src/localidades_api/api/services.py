"""The services that an application holds while it runs, and a dependency for each: a test overrides one of them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from localidades_api.bulk.exchange import Exchange
from localidades_api.caches.changes import ChangeCache
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.caches.pages import PageCache
from localidades_api.caches.positions import PositionCache
from localidades_api.caches.tiles import TileCache
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import LocalidadesError
from localidades_api.http.transfers import Transfers
from localidades_api.releases.tracker import ReleaseTracker

T = TypeVar("T")

_NOT_STARTED = (
    "The service was not started: enter its `router.lifespan_context` in the lifespan of the application that it is"
    " mounted in."
)


@dataclass(frozen=True, slots=True)
class Services:
    """The services that the lifespan of the application opens and closes."""

    database: Database
    releases: ReleaseTracker
    pages: PageCache
    positions: PositionCache
    changes: ChangeCache
    repository: CatalogueRepository
    names: NameIndexes
    transfers: Transfers
    bulk_turn: asyncio.Lock  # of the requests of many rows, which take turns
    tiles: TileCache


def services_of(request: Request) -> Services:
    """Return the services of the application that handles a request; raise LocalidadesError if it was not started."""
    services: Services | None = getattr(request.app.state, "services", None)
    if services is None:
        raise LocalidadesError(_NOT_STARTED)
    return services


def _dependency(get: Callable[[Services], T]) -> Callable[[Request], Awaitable[T]]:
    async def get_from(request: Request) -> T:
        return get(services_of(request))

    return get_from


get_database = _dependency(lambda services: services.database)
get_releases = _dependency(lambda services: services.releases)
get_repository = _dependency(lambda services: services.repository)
get_names = _dependency(lambda services: services.names)
get_pages = _dependency(lambda services: services.pages)
get_positions = _dependency(lambda services: services.positions)
get_changes = _dependency(lambda services: services.changes)
get_tiles = _dependency(lambda services: services.tiles)
get_transfers = _dependency(lambda services: services.transfers)


async def get_exchange(request: Request) -> Exchange:
    """Return a request with rows, and the services that bound it."""
    services = services_of(request)
    return Exchange(request, services.transfers, services.bulk_turn)


DatabaseDep = Annotated[Database, Depends(get_database)]
ReleasesDep = Annotated[ReleaseTracker, Depends(get_releases)]
RepositoryDep = Annotated[CatalogueRepository, Depends(get_repository)]
NamesDep = Annotated[NameIndexes, Depends(get_names)]
PagesDep = Annotated[PageCache, Depends(get_pages)]
PositionsDep = Annotated[PositionCache, Depends(get_positions)]
ChangesDep = Annotated[ChangeCache, Depends(get_changes)]
TilesDep = Annotated[TileCache, Depends(get_tiles)]
TransfersDep = Annotated[Transfers, Depends(get_transfers)]
ExchangeDep = Annotated[Exchange, Depends(get_exchange)]
