"""The services that routes use."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from localidades_api.caches.changes import ChangeCache
from localidades_api.caches.pages import PageCache
from localidades_api.caches.positions import PositionCache
from localidades_api.caches.tiles import TileCache
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.downloads.response import Downloads
from localidades_api.errors import LocalidadesError
from localidades_api.http.transfers import Transfers
from localidades_api.name_indexes.open_indexes import NameIndexes
from localidades_api.releases.tracker import ReleaseTracker

_NOT_STARTED = (
    "The service was not started: enter its `router.lifespan_context` in the lifespan of the application that it is"
    " mounted in."
)


@dataclass(frozen=True, slots=True)
class Services:
    """The services that routes use; the application's lifespan owns them."""

    database: Database
    releases: ReleaseTracker
    pages: PageCache
    positions: PositionCache
    changes: ChangeCache
    repository: CatalogueRepository
    names: NameIndexes
    transfers: Transfers
    downloads: Downloads
    bulk_turn: asyncio.Lock  # of the requests of many rows, which take turns
    tiles: TileCache

    async def release(self, name: str | None, *, by_name: bool = False) -> Release:
        """Return the release of that name; for None the current one or, `by_name`, the one that searches use."""
        return await (self.releases.current(by_name=by_name) if name is None else self.releases.named(name))


async def get_services(request: Request) -> Services:
    """Return the services of the application that handles a request; raise LocalidadesError if it was not started."""
    services: Services | None = getattr(request.app.state, "services", None)
    if services is None:
        raise LocalidadesError(_NOT_STARTED)
    return services


ServicesDep = Annotated[Services, Depends(get_services)]
