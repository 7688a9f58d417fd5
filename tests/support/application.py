"""Runs the application without a network, the importer as the command line does, and the service on imported files."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import SecretStr
from sqlalchemy import Connection, Engine, event

from localidades_api.api import Services
from localidades_api.api.middleware.response_cache import Key, ResponseCache, spelling
from localidades_api.app import create_app
from localidades_api.database.pool import Database
from localidades_api.errors import LocalidadesError
from localidades_api.importer.name_index import complete_indexes
from localidades_api.importer.run import ImportOptions, ImportReport, import_catalogue
from localidades_api.observability.progress import StepProgress
from localidades_api.releases.publish import publish_release
from localidades_api.releases.retire import retire_oldest, retire_release
from localidades_api.settings import Settings
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import new_database
from tests.support.service_address import database_timeout, service_address
from tests.support.waiting import PATIENCE, eventually_async, in_thread
from tests.support.wire import LOCALIDADES, await_names, serving


def cache_of(app: FastAPI) -> ResponseCache:
    """Return the response cache of an application that `running_app` has started."""
    cache: ResponseCache = app.state.response_cache
    return cache


def key_of(request: httpx.Request) -> Key:
    fields = [(name.lower(), value) for name, value in request.headers.raw]
    return spelling(request.url.port, request.url.raw_path, fields)


def operations_with(dependency: Callable[..., Any]) -> Mapping[str, str]:
    """Return the names of the operations that ask for a service, by the path of each of their routes."""
    return {
        str(route.path_format): str(route.name)
        for route in iter_route_contexts(create_app(Settings()).routes)
        if dependency in {one.call for one in getattr(getattr(route, "dependant", None), "dependencies", ())}
    }


@asynccontextmanager
async def _writing(url: str) -> AsyncIterator[Database]:
    database = Database.for_writing(url)
    try:
        yield database
    finally:
        await database.dispose()


async def import_into(url: str, source: Path | str, **options: Any) -> ImportReport:  # noqa: ANN401  # passed on
    """Import a file as the command line does, except that all places may be renamed."""
    async with _writing(url) as database:
        chosen = ImportOptions(**{"allow_renames": True, **options})
        return await import_catalogue(database, str(source), StepProgress(), chosen)


async def complete(url: str) -> None:
    """Build the indexes of names that are missing, as `migrate` does."""
    async with _writing(url) as database:
        await complete_indexes(database, StepProgress())


def import_file(url: str, source: Path | str, **options: Any) -> None:  # noqa: ANN401  # passed on
    """Import a file while the tests' event loop is running."""
    in_thread(lambda: asyncio.run(import_into(url, source, **options)))


@contextmanager
def database_with(
    server: str, template: str, releases: Mapping[str, Iterable[Place]], **options: object
) -> Iterator[str]:
    """Yield a copy of a database into which these releases have been imported, in their order."""
    with new_database(server, template) as url, TemporaryDirectory() as folder:
        for name, places in releases.items():
            import_file(url, write_catalogue(Path(folder, f"catun_localidad_{name}.csv"), places), **options)
        yield url


@asynccontextmanager
async def running_app(url: str, **options: Any) -> AsyncIterator[FastAPI]:  # noqa: ANN401  # passed on
    """Start the application on a database, without a server and without a page cache; `options` are settings.

    Waits for the index of names unless `wants_names` is false. Without `in_background` there is no index.
    """
    in_background = options.pop("in_background", True)
    wants_names = options.pop("wants_names", in_background)
    address = service_address(url)
    settings = {"database_timeout": database_timeout(address), "release_poll": 0.2, "page_cache_bytes": 0, **options}
    app = create_app(Settings(database_url=SecretStr(address), **settings), in_background=in_background)
    async with app.router.lifespan_context(app):
        if wants_names:
            await _await_index(app.state.services)
        yield app


async def _await_index(services: Services) -> None:
    with suppress(LocalidadesError):  # there may be no release
        release = await services.releases.current()
        async with asyncio.timeout(2 * PATIENCE):
            while not services.names.held(release):  # noqa: ASYNC110  # the index gives no event
                await asyncio.sleep(0.02)


def client_of(app: FastAPI) -> httpx.AsyncClient:
    """Return a client that calls the application directly and gets its responses to unexpected errors."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url="http://test")


def behind_proxy(app: FastAPI, prefix: str, base_url: str = "http://test") -> httpx.AsyncClient:
    """Return a client of an application that a proxy has below a prefix."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, root_path=prefix), base_url=base_url)


def mounted(app: FastAPI, prefix: str, base_url: str = "http://test") -> httpx.AsyncClient:
    """Return a client of another application that has this one below a prefix."""
    parent = FastAPI(openapi_url=None)
    parent.mount(prefix, app)
    return httpx.AsyncClient(transport=httpx.ASGITransport(parent), base_url=base_url)


Below = Callable[..., httpx.AsyncClient]
below_a_prefix = pytest.mark.parametrize("below", [behind_proxy, mounted])


async def await_answer(
    client: httpx.AsyncClient, target: str, is_expected: Callable[[httpx.Response], object], **headers: str
) -> httpx.Response:
    """Ask until the response is the expected one, and return it."""

    async def ask() -> httpx.Response | None:
        answer = await client.get(target, headers=headers)
        return answer if is_expected(answer) else None

    answer = await eventually_async(ask)
    assert answer
    return answer


async def await_status(client: httpx.AsyncClient, target: str, status: int = HTTPStatus.OK) -> httpx.Response:
    return await await_answer(client, target, lambda answer: answer.status_code == status)


async def await_release(client: httpx.AsyncClient, name: str, target: str = LOCALIDADES) -> None:
    """Wait until a resource is answered from a release."""
    await await_answer(
        client, target, lambda answer: answer.is_success and answer.headers.get("catalogue-release") == name
    )


async def await_searched(client: httpx.AsyncClient, name: str) -> None:
    await await_release(client, name, f"{LOCALIDADES}suggest/?q=a")


@contextmanager
def recorded_statements(app: FastAPI, *, of_releases: bool = False) -> Iterator[list[str]]:
    """Collect the SQL that the application sends: to read all but releases and their indexes, or releases alone."""
    statements: list[str] = []

    engine = app.state.services.database.engine  # other applications poll databases of the same address

    def record(connection: Connection, cursor: object, statement: str, *rest: object) -> None:  # noqa: ARG001  # an event's
        is_for_releases = "current_release" in statement or statement.startswith("SELECT releases.id")
        is_own = connection.engine is engine.sync_engine if of_releases else connection.engine.url == engine.url
        if is_own and is_for_releases is of_releases and "FROM name_index" not in statement:
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)  # of every pool
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", record)


async def publish_again(url: str, name: str) -> str | None:
    """Make a release the current one, as the command does; return the name of the previous one."""
    async with _writing(url) as database:
        return await publish_release(database, name)


async def retire(url: str, name: str, progress: Any = None, *, grace: float = 0) -> list[str]:  # noqa: ANN401  # any observer
    """Remove a release, as the command does; return the names of all removed releases."""
    async with _writing(url) as database:
        return await retire_release(database, name, progress or StepProgress(), grace=grace)


async def retire_all_but(url: str, keep: int, *, grace: float = 0) -> list[str]:
    """Remove all releases but the newest, as the command does; return their names."""
    async with _writing(url) as database:
        return await retire_oldest(database, keep, StepProgress(), grace=grace)


async def walk(client: httpx.AsyncClient, target: str) -> AsyncIterator[httpx.Response]:
    """Follow `Link: rel="next"` from a page to the last one."""
    following: str | None = target
    while following:
        answer = await client.get(following)
        assert answer.status_code == 200, answer.text
        yield answer
        following = answer.links.get("next", {}).get("url")


@contextmanager
def serving_files(server: str, migrated: str, files: Iterable[Path]) -> Iterator[str]:
    """Yield the address of a service that has imported these files, in this order, and indexed their names."""
    with new_database(server, migrated) as url:
        for file in files:
            import_file(url, file)
        with serving(url) as live:
            await_names(live.base)
            yield live.base
