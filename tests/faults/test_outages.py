"""A server, its network or its connections fail for a while: 503 in time, cached pages meanwhile, no wrong answer."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from signal import Signals

import asyncpg
import pytest

from tests.faults.load import lookups, pages
from tests.faults.proxy import Proxy, proxied
from tests.faults.service import KILL_ALL, NEXT, OLDER, publish, service, slow_down
from tests.faults.trial import trial
from tests.support.records import Truth
from tests.support.servers import FAST, KILL, Server

KILL_BUSY = f"{KILL_ALL} AND state = 'active'"


@asynccontextmanager
async def stopped(server: Server, _: Proxy, *, how: Signals) -> AsyncIterator[None]:
    await server.stop(how)
    yield
    await server.start()


@asynccontextmanager
async def paused(server: Server, _: Proxy) -> AsyncIterator[None]:
    server.pause()
    yield
    server.resume()


@asynccontextmanager
async def cut(_: Server, network: Proxy, *, part: Callable[[Proxy], None]) -> AsyncIterator[None]:
    part(network)
    yield
    network.heal()


@asynccontextmanager
async def exhausted(server: Server, _: Proxy) -> AsyncIterator[None]:
    """Take all connections of the server, killing the service's until it gets none."""
    async with AsyncExitStack() as others:
        killer = await others.enter_async_context(server.connected())
        is_taken = False
        while not is_taken:
            killed = await killer.fetch(KILL_ALL)
            with suppress(asyncpg.TooManyConnectionsError):
                while True:
                    await others.enter_async_context(server.connected())
            # No connection was ending while the last one was refused.
            is_taken = not killed and not await killer.fetch(KILL_ALL)
        yield


@asynccontextmanager
async def locked(server: Server, _: Proxy) -> AsyncIterator[None]:
    async with server.connected(timeout=60) as locker, locker.transaction():
        await locker.execute("LOCK TABLE localities IN ACCESS EXCLUSIVE MODE")
        yield


Outage = Callable[[Server, Proxy], AbstractAsyncContextManager[None]]


@pytest.mark.parametrize(
    ("fault", "outage"),
    [
        ("server stopped in good order", partial(stopped, how=FAST)),
        pytest.param("server killed (kill -9)", partial(stopped, how=KILL), marks=pytest.mark.gate),
        ("server stands still (SIGSTOP)", paused),
        pytest.param("network swallows packets", partial(cut, part=Proxy.swallow), marks=pytest.mark.gate),
        ("network resets connections, old and new", partial(cut, part=partial(Proxy.reset, refusing=True))),
        ("too many connections (53300)", exhausted),
        ("table locked", locked),
    ],
)
async def test_outage_is_503_in_time_except_for_cached_pages(
    primary: Server, truth: Truth, away: float, fault: str, outage: Outage
) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth)]
    async with proxied(primary.port) as network:
        url = primary.url(network.port if fault.startswith("network") else None)
        async with service(url, page_cache=True) as live:
            async with trial(live, questions, primary) as tried:
                await tried.ordinary()
                async with outage(primary, network):
                    await asyncio.sleep(away)
                await tried.recovered()
            assert tried.load.count("refused") > 0


async def test_no_old_connection_is_used_after_packet_loss(primary: Server, truth: Truth, away: float) -> None:
    """Without cached pages. Dropped bytes are lost, as behind a firewall that has forgotten its connections."""
    async with (
        proxied(primary.port) as network,
        service(primary.url(network.port)) as live,
        trial(live, lookups(truth), primary) as tried,
    ):
        await tried.ordinary()
        network.swallow()
        await asyncio.sleep(away)
        network.forget()
        await tried.recovered()
        network.expire()


async def test_service_started_without_the_server_serves_once_it_is_up(primary: Server, truth: Truth) -> None:
    await primary.stop(FAST)
    async with service(primary.url(), probe="/livez") as live, trial(live, lookups(truth), primary) as tried:
        await asyncio.sleep(2)
        assert tried.load.count("refused") == len(tried.load.outcomes)
        await primary.start()
        await tried.recovered()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_service_stops_while_a_statement_runs(primary: Server, workers: str) -> None:
    """The driver cancels the statement over another TCP connection, which must not outlive the event loop."""
    async with (
        locked(primary, Proxy(primary.port)),
        service(primary.url(), "--workers", workers, page_cache=True, probe="/livez"),  # must exit with 0
    ):
        await asyncio.sleep(0.5)


# -- Killed connections


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


@pytest.mark.parametrize(
    ("statement", "statement_time", "rate"),
    [pytest.param(KILL_ALL, 0, 40, marks=pytest.mark.gate), (KILL_BUSY, 0.1, 15)],
)
async def test_killed_connections_are_replaced_within_the_request(
    primary: Server, truth: Truth, statement: str, statement_time: float, rate: float
) -> None:
    if statement_time:
        await slow_down(primary, statement_time)
    async with service(primary.url()) as live:
        async with trial(live, lookups(truth), primary, rate=rate) as tried:
            await tried.ordinary()
            async with killing(primary, statement, pause=0.5):
                await asyncio.sleep(4)
            await tried.recovered()
        assert tried.load.count("answered") == len(tried.load.outcomes)


async def test_publication_survives_killed_connections(
    primary: Server, truth: Truth, catalogues: Mapping[str, Path]
) -> None:
    questions = [*pages(truth) * 8, *lookups(truth), *lookups(truth, OLDER)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(live, questions, primary) as tried:
            await tried.ordinary()
            async with killing(primary, KILL_ALL, pause=0.2):
                await publish(primary, catalogues, NEXT)
                await asyncio.sleep(2)
            await tried.recovered()
            assert tried.returned is not None
            assert tried.load.releases(since=tried.returned) == {NEXT}
        assert tried.load.count("answered") == len(tried.load.outcomes)
