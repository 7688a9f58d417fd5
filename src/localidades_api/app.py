"""The composition root: builds the application, and owns the services that live as long as it does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from fastapi import Depends, FastAPI, params

from localidades_api import __version__
from localidades_api.api import Services, census, crawlers, openapi, probes, site
from localidades_api.api.declarations import UNAUTHORIZED
from localidades_api.api.exception_handlers import add_exception_handlers
from localidades_api.api.middleware.head import HeadMiddleware
from localidades_api.api.middleware.limits import ConcurrencyLimit, DirectResponses, RequestLimit
from localidades_api.api.middleware.management_port import ManagementPort
from localidades_api.api.middleware.response_cache import MAX_BYTES as MAX_RESPONSE_BYTES
from localidades_api.api.middleware.response_cache import ResponseCache, ResponseCacheMiddleware
from localidades_api.api.middleware.telemetry import Telemetry
from localidades_api.api.middleware.tracking_parameters import TrackingParametersMiddleware
from localidades_api.api.params import check_request
from localidades_api.api.route_table import RouteTable
from localidades_api.caches.changes import ChangeCache
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.caches.pages import PageCache
from localidades_api.caches.positions import PositionCache
from localidades_api.caches.release_poller import ReleasePoller
from localidades_api.caches.results import MAX_BYTES, MAX_SLOW_FETCHES, SLOW_TIMEOUT, ArrayCache
from localidades_api.caches.tiles import TileCache
from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import ConfigurationError
from localidades_api.extensions import ogc, outlines, reconcile, wscatgeo
from localidades_api.html.static_files import STATIC as STATIC_FOLDER
from localidades_api.html.static_files import CompressedStaticFiles
from localidades_api.http.conditional import ConditionalRequests
from localidades_api.http.paths import PICTURES, PREFIX, STATIC
from localidades_api.http.transfers import Transfers
from localidades_api.observability.metrics import Sampler
from localidades_api.observability.tracing import traced_statements
from localidades_api.releases.tracker import ReleaseTracker
from localidades_api.settings import Settings, read_settings

EXTENSIONS = (outlines.EXTENSION, ogc.EXTENSION, reconcile.EXTENSION, wscatgeo.EXTENSION)
_END_TIMEOUT = 1.0  # seconds at shutdown for cancelled tasks to end, which takes milliseconds


@contextlib.asynccontextmanager
async def _lifespan(
    app: FastAPI, settings: Settings, limit: RequestLimit, *, in_background: bool
) -> AsyncIterator[dict[str, Any]]:
    """Create the services, run the background tasks if wanted, and close the connections at shutdown.

    The state is for the server (`server.protocol`), which answers some requests without calling the application.
    """
    if settings.database_url is None:
        raise ConfigurationError("DATABASE_URL is not set: set it, or start the service with `localidades-api serve`.")
    url = settings.database_url.get_secret_value()
    async with contextlib.AsyncExitStack() as stack:  # closes everything, even if closing something fails
        stack.push_async_callback(_await_left, asyncio.all_tasks())
        database = Database.for_reading(url, pool_size=settings.pool_size, timeout=settings.database_timeout)
        stack.push_async_callback(database.dispose)
        # Comparing and sorting take no connection from requests: they have their own pool, which connects on first use.
        comparing = Database.for_reading(url, pool_size=MAX_SLOW_FETCHES, timeout=SLOW_TIMEOUT)
        stack.push_async_callback(comparing.dispose)
        services = _build_services(settings, database, comparing)
        for cache in (services.pages, services.tiles, services.changes, services.positions, services.names):
            stack.push_async_callback(cache.close)
        poller = ReleasePoller(services.releases, services.pages, services.names)
        sampler = Sampler(database.gauges, services.pages.gauges, services.releases.gauges)
        app.state.services = services
        app.state.response_cache = ResponseCache(
            services.releases, MAX_RESPONSE_BYTES if settings.page_cache_bytes else 0
        )
        RouteTable.build(app)  # else FastAPI prepares its routes in the first request, which takes a tenth of a second
        if in_background:
            endless = poller.run(settings.release_poll), sampler.run()
            await stack.enter_async_context(_running(*endless))
        yield {"direct_responses": _direct_responses(app, settings, limit)}


async def _await_left(before: Collection[asyncio.Task[Any]]) -> None:
    """Wait for tasks that are ending.

    asyncpg cancels a statement over another connection, in another task. uvloop crashes if that connection is still
    being opened when a signal's exception ends the loop.
    """
    if left := asyncio.all_tasks() - {*before, asyncio.current_task()}:
        await asyncio.wait(left, timeout=_END_TIMEOUT)


def _build_services(settings: Settings, database: Database, comparing: Database) -> Services:
    repository = CatalogueRepository(database)
    editions = (extension.borders.edition for extension in EXTENSIONS if extension.borders)
    releases = ReleaseTracker(database, *editions)
    names = NameIndexes(database, releases, settings.database_timeout, settings.cache_dir)
    slots = asyncio.Semaphore(MAX_SLOW_FETCHES)
    arrays = ArrayCache(slots, settings.database_timeout)
    boxes = ArrayCache(slots, settings.database_timeout, MAX_BYTES // 4)
    return Services(
        database,
        releases,
        PageCache(repository, settings.page_cache_bytes),
        PositionCache(repository, CatalogueRepository(comparing), arrays, boxes),
        ChangeCache(database, comparing, arrays),
        repository,
        names,
        Transfers(settings.max_transfers, settings.transfer_timeout),
        asyncio.Lock(),
        TileCache(database),
    )


@contextlib.asynccontextmanager
async def _running(*endless: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run background tasks untraced: their statements belong to no request."""
    with traced_statements() as untraced:
        with untraced():
            tasks = [asyncio.create_task(task) for task in endless]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def create_app(
    settings: Settings | None = None,
    *,
    dependencies: Sequence[params.Depends] = (),
    is_public: bool | None = None,
    in_background: bool = True,
) -> FastAPI:
    """Build the whole service, with settings from the environment unless they are given.

    It connects to the database when it starts, not here.

    The application is an ordinary one: routes, middleware, exception handlers and overrides can be added to it
    (docs/guides/extending.md). `dependencies` run for every route. `is_public` says whether shared caches may keep
    answers; by default they may unless middleware was added. Without `in_background` no page is cached and no index of
    names fetched before it is requested, and no new release is noticed.
    """
    settings = settings or read_settings()
    limit = RequestLimit(settings.max_in_flight)
    app = FastAPI(
        title="localidades-api",
        version=__version__,
        summary="INEGI's catalogue of the localities of Mexico.",
        description=openapi.DESCRIPTION,
        responses=UNAUTHORIZED if dependencies else None,
        openapi_tags=[*openapi.TAGS, *(tag for extension in EXTENSIONS for tag in extension.tags)],
        license_info={"name": "MIT", "identifier": "MIT"},
        contact={"name": "The localidades-api authors"},
        servers=[{"url": settings.public_url or "http://127.0.0.1:8000"}],  # the served document names its own
        root_path_in_servers=False,
        openapi_url=None,  # api/site.py has the document and its pages, in two languages
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=attrgetter("name"),  # generated clients have a method of that name
        lifespan=partial(_lifespan, settings=settings, limit=limit, in_background=in_background),
        redirect_slashes=False,  # Starlette's redirect trusts the Host header; see api/exception_handlers.py
        dependencies=dependencies,
        # Traces if OpenTelemetry's variables configure them; Prometheus scrapes the metrics, and logs go to stderr.
        telemetry={"auto_configure": True, "metrics": False, "logs": False},
    )
    app.state.public_url = settings.public_url
    app.state.is_public = is_public
    app.state.extensions = EXTENSIONS
    app.state.problem_pages = {path: page for extension in EXTENSIONS for path, page in extension.problem_pages.items()}
    app.include_router(census.router, prefix=PREFIX, dependencies=[Depends(check_request)])
    extended = (extension.router for extension in EXTENSIONS)
    for router in (*extended, site.router, probes.router, crawlers.router):
        app.include_router(router)
    app.mount(site.OFFLINE_DOCS, site.offline_docs)
    app.mount(PICTURES, site.guide_pictures)
    app.mount(STATIC, CompressedStaticFiles(directory=STATIC_FOLDER), name="static")
    add_exception_handlers(app)
    openapi.describe(app)
    # The middleware that is added last sees a request first.
    app.add_middleware(TrackingParametersMiddleware)
    app.add_middleware(ConditionalRequests)
    app.add_middleware(census.ResponseHeaders)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(ConcurrencyLimit, limit=limit)
    app.add_middleware(ResponseCacheMiddleware)
    if settings.management_port is not None:
        app.add_middleware(ManagementPort, port=settings.management_port)
    app.add_middleware(Telemetry, settings=settings)
    return app


def _direct_responses(app: FastAPI, settings: Settings, limit: RequestLimit) -> DirectResponses | None:
    """Return the answers that `serve` may give by itself; None if middleware or a log has to see every request."""
    classes: list[object] = [middleware.cls for middleware in app.user_middleware]
    before_cache = classes[: classes.index(ResponseCacheMiddleware)]
    is_instrumented = "build_middleware_stack" in vars(app)  # as FastAPIInstrumentor does it
    has_added = not {Telemetry, ManagementPort}.issuperset(before_cache)
    is_mounted = not getattr(app.state, "is_served", False)  # or another server runs it: `server.run` says so
    if settings.access_log or app.dependency_overrides or has_added or is_instrumented or is_mounted:
        return None
    return DirectResponses(app, app.state.response_cache, limit)
