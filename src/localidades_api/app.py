"""The composition root: builds the application, and owns what lives as long as it does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from localidades_api import __version__, router
from localidades_api.bulk.exchange import BulkRequests
from localidades_api.cache.names import NameIndexes
from localidades_api.cache.pages import PageCache
from localidades_api.cache.positions import LONG_TIMEOUT, MAX_LONG_SEARCHES, PositionCache
from localidades_api.cache.release_poller import ReleasePoller
from localidades_api.cache.tiles import TileCache
from localidades_api.downloads.transfer import Transfers
from localidades_api.errors import ConfigurationError
from localidades_api.http.paths import PREFIX
from localidades_api.http.problems import install_handlers
from localidades_api.http.static_files import STATIC, CompressedStaticFiles
from localidades_api.middleware.api_headers import ApiHeaders
from localidades_api.middleware.head_requests import HeadRequests
from localidades_api.middleware.tracking_parameters import TrackingParameters
from localidades_api.observability.metrics import COUNTERS
from localidades_api.observability.sampler import Sampler
from localidades_api.observability.tracing import traced_statements
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.router import (
    Services,
    documentation,
    map_page,
    match_page,
    not_found,
    probes,
    problem_types,
    site_files,
)
from localidades_api.router.openapi import describe
from localidades_api.router.redirects import slashless_redirects
from localidades_api.settings import Settings
from localidades_api.storage.pool import Database
from localidades_api.storage.repository import (
    AreasRepository,
    CatalogueRepository,
    ChangesRepository,
    MapRepository,
    NearestRepository,
    RecordsRepository,
    ReleasesRepository,
    TilesRepository,
)

_END_TIMEOUT = 1.0  # seconds at shutdown for cancelled tasks to end, which takes milliseconds


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI, settings: Settings, *, in_background: bool) -> AsyncIterator[None]:
    """Create the services, run the background tasks if wanted, and close the connections at shutdown."""
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
            yield
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
        Transfers(settings.max_downloads, settings.min_download_rate),
        BulkRequests(),
        TileCache(TilesRepository(database)),
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
    app = FastAPI(
        title="localidades-api",
        version=__version__,
        summary="INEGI's catalogue of the localities of Mexico.",
        docs_url=None,
        redoc_url=None,
        lifespan=partial(_lifespan, settings=settings, in_background=in_background),
        redirect_slashes=False,  # Starlette's redirect trusts the Host header
        # Traces if OpenTelemetry's variables configure them; Prometheus scrapes the metrics, and logs go to stderr.
        telemetry={"auto_configure": True, "metrics": False, "logs": False},
    )
    app.state.collect_metrics = COUNTERS.snapshot
    app.routes.extend(router.list_routes())
    for part in (problem_types, match_page, map_page, documentation):
        app.routes.extend([*part.router.routes, *slashless_redirects(part.router.routes)])
    for part in (probes, site_files):
        app.routes.extend(part.router.routes)
    app.mount(documentation.SWAGGER_UI, documentation.swagger_ui)
    app.mount("/static", CompressedStaticFiles(directory=STATIC), name="static")
    app.add_api_route("/", _go_to_index, include_in_schema=False)
    install_handlers(app, not_found.describe_problem)
    app.add_middleware(TrackingParameters)
    app.add_middleware(ApiHeaders)
    app.add_middleware(HeadRequests)
    app.add_exception_handler(router.PageTooLargeError, router.show_smaller_page)
    describe(app)
    return app


async def _go_to_index(request: Request) -> Response:  # noqa: ARG001  # FastAPI's signature
    return Response(status_code=307, headers={"Location": PREFIX.lstrip("/") + "/"})
