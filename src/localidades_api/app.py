"""The composition root: builds the application, and owns what lives as long as it does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api import __version__
from localidades_api.api import Services, census, site
from localidades_api.api.census import CensusRouter
from localidades_api.api.openapi import describe
from localidades_api.api.router import Router
from localidades_api.caches.names import NameIndexes
from localidades_api.caches.pages import PageCache
from localidades_api.caches.positions import LONG_TIMEOUT, MAX_LONG_SEARCHES, PositionCache
from localidades_api.caches.release_poller import ReleasePoller
from localidades_api.caches.tiles import TileCache
from localidades_api.database.pool import Database
from localidades_api.database.queries import (
    AreasRepository,
    CatalogueRepository,
    ChangesRepository,
    MapRepository,
    NearestRepository,
    RecordsRepository,
    ReleasesRepository,
    TilesRepository,
    WscatgeoRepository,
)
from localidades_api.downloads.response import Downloads
from localidades_api.errors import ConfigurationError
from localidades_api.http.paths import PREFIX, is_api
from localidades_api.http.transfers import Transfers
from localidades_api.observability.metrics import COUNTERS, Sampler
from localidades_api.observability.tracing import traced_statements
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.response_cache import MAX_BYTES, STATE, ResponseCache
from localidades_api.settings import Settings

_END_TIMEOUT = 1.0  # seconds at shutdown for cancelled tasks to end, which takes milliseconds


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI, settings: Settings, *, in_background: bool) -> AsyncIterator[dict[str, Any]]:
    """Create the services, run the background tasks if wanted, and close the connections at shutdown.

    The state is for the server: the response cache.
    """
    if settings.database_url is None:
        raise ConfigurationError("DATABASE_URL is not set: set it, or start the service with `localidades-api serve`.")
    url = settings.database_url.get_secret_value()
    tasks_before = asyncio.all_tasks()
    database = Database.for_reading(url, pool_size=settings.pool_size, timeout=settings.database_timeout)
    # Comparing and sorting take no connection from requests: they have their own pool, which connects on first use.
    comparing = Database.for_reading(url, pool_size=MAX_LONG_SEARCHES, timeout=LONG_TIMEOUT)
    services = _build_services(settings, url, database, comparing)
    poller = ReleasePoller(services.releases, services.pages, services.positions, services.names, services.tiles)
    sampler = Sampler(database.gauges, services.pages.gauges, services.releases.gauges)
    app.state.database = database
    app.state.services = services
    endless = (
        (poller.run(settings.release_poll), sampler.run(), services.names.keep_in_memory()) if in_background else ()
    )
    try:
        async with _running(*endless):
            yield {STATE: ResponseCache(services.releases, MAX_BYTES if settings.page_cache_bytes else 0)}
    finally:
        await services.names.close()
        await services.positions.close()
        await services.tiles.close()
        await services.pages.close()
        await comparing.dispose()
        await database.dispose()
        # asyncpg cancels a statement over another connection, in a task of its own. uvloop crashes if that connection
        # is still being opened when a signal's exception ends the loop.
        if left := asyncio.all_tasks() - tasks_before:
            await asyncio.wait(left, timeout=_END_TIMEOUT)


def _build_services(settings: Settings, url: str, database: Database, comparing: Database) -> Services:
    repository = CatalogueRepository(database)
    releases = ReleaseTracker(ReleasesRepository(database))
    changes = ChangesRepository(database, comparing)
    names = NameIndexes(url, releases, settings.database_timeout)
    transfers = Transfers(settings.max_transfers, settings.transfer_timeout)
    return Services(
        releases,
        PageCache(repository, settings.page_cache_bytes),
        PositionCache(repository, CatalogueRepository(comparing), changes, names, settings.database_timeout),
        repository,
        AreasRepository(database),
        names,
        NearestRepository(database),
        MapRepository(database),
        changes,
        RecordsRepository(database),
        transfers,
        Downloads(transfers),
        asyncio.Lock(),
        TileCache(TilesRepository(database)),
        WscatgeoRepository(database),
    )


@contextlib.asynccontextmanager
async def _running(*endless: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run background tasks untraced: their statements belong to no request."""
    with traced_statements() as untraced:
        with untraced():
            tasks = [asyncio.create_task(one) for one in endless]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def create_app(
    settings: Settings,
    *,
    in_background: bool = True,
) -> FastAPI:
    """Build the application; it connects to the database when it starts, not here.

    Without `in_background` no page is cached and no name indexed before it is requested, and no new release is noticed.
    """
    app = _Application(
        title="localidades-api",
        version=__version__,
        summary="INEGI's catalogue of the localities of Mexico.",
        openapi_url=None,  # api/site.py has the address, in two languages
        docs_url=None,
        redoc_url=None,
        lifespan=partial(_lifespan, settings=settings, in_background=in_background),
        redirect_slashes=False,  # Starlette's redirect trusts the Host header
        # Traces if OpenTelemetry's variables configure them; Prometheus scrapes the metrics, and logs go to stderr.
        telemetry={"auto_configure": True, "metrics": False, "logs": False},
    )
    app.state.collect_metrics = COUNTERS.snapshot
    app.state.security_contact = settings.security_contact
    app.routes.extend([*census.list_routes(), *site.list_routes()])
    describe(app)
    return app


class _Application(FastAPI):
    """FastAPI, whose routes are found by two routers of ours, without any middleware between them and a request."""

    def build_middleware_stack(self) -> ASGIApp:
        """Return what answers requests; FastAPI calls it once, when all routes are there."""
        under_census = [route for route in self.routes if getattr(route, "path", "").startswith(PREFIX)]
        census = CensusRouter(under_census)
        site = Router(route for route in self.routes if route not in under_census)

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await self.router(scope, receive, send)
            elif is_api(scope):
                await census(scope, receive, send)
            else:
                await site(scope, receive, send)

        return respond
