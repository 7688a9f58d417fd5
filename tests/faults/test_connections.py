"""Killed, waiting and refused connections on a running server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from tests.faults.load import lookups, pages
from tests.faults.service import KILL_ALL, NEXT, OLDER, publish, service, slow_down
from tests.faults.trial import Report, trial
from tests.support.servers import Server
from tests.support.truth import Truth

KILL_BUSY = f"{KILL_ALL} AND state = 'active'"


@asynccontextmanager
async def killing(server: Server, statement: str, pause: float) -> AsyncIterator[None]:
    """Kill the service's connections repeatedly."""

    async def kill() -> None:
        while True:
            await server.fetch(statement)
            await asyncio.sleep(pause)

    killer = asyncio.create_task(kill())
    try:
        yield
    finally:
        killer.cancel()
        with suppress(asyncio.CancelledError):
            await killer


async def take_every_connection(server: Server, others: AsyncExitStack) -> None:
    """Take all connections of the server, killing the service's until it gets none."""
    killer = await others.enter_async_context(server.connected())
    is_taken = False
    while not is_taken:
        killed = await killer.fetch(KILL_ALL)
        with suppress(asyncpg.TooManyConnectionsError):
            while True:
                await others.enter_async_context(server.connected())
        # No connection was ending while the last one was refused.
        is_taken = not killed and not await killer.fetch(KILL_ALL)


@pytest.mark.gate
async def test_killed_connections_are_replaced_within_the_request(
    primary: Server, truth: Truth, report: Report
) -> None:
    async with service(primary.url()) as live:
        async with trial(report, "pooled connections killed, every 0.5 s", live, lookups(truth), primary) as tried:
            await tried.ordinary()
            async with killing(primary, KILL_ALL, pause=0.5):
                await asyncio.sleep(4)
            await tried.recovered()
        assert tried.load.count("answered") == len(tried.load.outcomes)


async def test_connections_killed_during_queries_lose_no_response(
    primary: Server, truth: Truth, report: Report
) -> None:
    await slow_down(primary, 0.1)
    async with service(primary.url()) as live:
        async with trial(report, "killed in mid query, every 0.5 s", live, lookups(truth), primary, rate=15) as tried:
            await tried.ordinary()
            async with killing(primary, KILL_BUSY, pause=0.5):
                await asyncio.sleep(4)
            await tried.recovered()
        assert tried.load.count("answered") == len(tried.load.outcomes)


async def test_exhausted_connections_are_503_until_one_is_free(primary: Server, truth: Truth, report: Report) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(report, "too many connections (53300), 4 s", live, questions, primary) as tried:
            await tried.ordinary()
            async with AsyncExitStack() as others:
                await take_every_connection(primary, others)
                await asyncio.sleep(4)
            await tried.recovered()
        assert tried.load.count("refused") > 0


async def test_slow_statement_is_503_and_frees_its_connection(
    primary: Server, truth: Truth, report: Report, away: float
) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(report, f"table locked, {away:g} s", live, questions, primary) as tried:
            await tried.ordinary()
            async with primary.connected(timeout=60) as locker, locker.transaction():
                await locker.execute("LOCK TABLE localities IN ACCESS EXCLUSIVE MODE")
                await asyncio.sleep(away)
            await tried.recovered()
        assert tried.load.count("refused") > 0


async def test_publication_survives_killed_connections(
    primary: Server, truth: Truth, report: Report, catalogues: Mapping[str, Path]
) -> None:
    questions = [*pages(truth) * 8, *lookups(truth), *lookups(truth, OLDER)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(report, "publication while connections are killed", live, questions, primary) as tried:
            await tried.ordinary()
            async with killing(primary, KILL_ALL, pause=0.2):
                await publish(primary, catalogues, NEXT)
                await asyncio.sleep(2)
            await tried.recovered()
            assert tried.returned is not None
            assert tried.load.releases(since=tried.returned) == {NEXT}
        assert tried.load.count("answered") == len(tried.load.outcomes)
