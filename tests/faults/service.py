"""Runs the service under test, imports releases, and slows its database down."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from tests.faults.trial import POOL_SIZE
from tests.support.application import import_into
from tests.support.servers import Server
from tests.support.service_address import DEFAULT_DATABASE_TIMEOUT
from tests.support.wire import Live, await_names, serving

OLDER, CURRENT, NEXT = "2020-01", "2021-01", "2022-01"


async def publish(server: Server, catalogues: Mapping[str, Path], name: str) -> None:
    """Import a release as the command line does, with a special application name."""
    url = server.url(application_name="importer")
    await asyncio.to_thread(lambda: asyncio.run(import_into(url, catalogues[name], release=name)))


@asynccontextmanager
async def service(
    url: str, *arguments: str, page_cache: bool = False, probe: str = "/readyz", **settings: str
) -> AsyncIterator[Live]:
    """Run `localidades-api serve` on a database; a proxy on this event loop goes on meanwhile."""
    settings = {
        "LOCALIDADES_POOL_SIZE": str(POOL_SIZE),
        "LOCALIDADES_DATABASE_TIMEOUT": str(DEFAULT_DATABASE_TIMEOUT),
        **settings,
    }
    if not page_cache:
        settings["LOCALIDADES_PAGE_CACHE_BYTES"] = "0"
    with ExitStack() as stack:
        live = await asyncio.to_thread(stack.enter_context, serving(url, *arguments, probe=probe, **settings))
        if probe == "/readyz":
            await asyncio.to_thread(await_names, live.base)
        try:
            yield live
        finally:
            await asyncio.to_thread(stack.close)


KILL_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'localidades-api'"


async def slow_down(server: Server, seconds: float) -> None:
    """Make every statement that reads estados take longer."""
    await server.fetch("ALTER TABLE states RENAME TO states_as_they_are")
    slept = f"(SELECT pg_sleep({seconds:f}) OFFSET 0) AS slept"
    await server.fetch(f"CREATE VIEW states AS SELECT s.* FROM {slept}, states_as_they_are AS s")  # noqa: S608
