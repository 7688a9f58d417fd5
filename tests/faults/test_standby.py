"""Several servers: a primary, and a standby that is promoted, lags, or cancels reads."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from localidades_api.database.pool import Database
from tests.faults.load import lookups, pages
from tests.faults.proxy import proxied
from tests.faults.service import CURRENT, KILL_ALL, NEXT, OLDER, publish, service, slow_down
from tests.faults.trial import POOL_SIZE, trial
from tests.support.application import await_release, await_status
from tests.support.pooler import pooling
from tests.support.records import Truth
from tests.support.servers import IMMEDIATE, KILL, Server
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES


def address_of(*ports: int, prefer: str = "prefer-standby") -> str:
    """Return the URL of several servers."""
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"postgresql://postgres@{hosts}/localidades?sslmode=disable&target_session_attrs={prefer}"


async def connect_to_every(base: str, *servers: Server) -> None:
    """Make the service connect until it has connections to each server.

    This comes before the load, because all attempts of a request may be killed.
    """
    async with asyncio.timeout(20), httpx.AsyncClient(base_url=base) as client:
        while 0 in [await server.service_connections() for server in servers]:
            for server in servers:
                await server.fetch(KILL_ALL)
            await asyncio.gather(*(client.get(f"{LOCALIDADES}?page=1&release={OLDER}&lang=es") for _ in range(40)))


async def test_reads_go_to_standbys_or_else_to_the_primary(primary: Server, standby: Server, truth: Truth) -> None:
    url = address_of(primary.port, standby.port)
    async with service(url) as live, trial(live, lookups(truth), primary, standby) as tried:
        await tried.ordinary()
        assert await primary.service_connections() == 0
        assert await standby.service_connections() > 0
        await standby.stop(KILL)
        await asyncio.sleep(2)
        assert await primary.service_connections() > 0
        await standby.start()
        await standby.catch_up(primary)
        await tried.recovered()
    assert tried.load.count("answered") == len(tried.load.outcomes)


@pytest.mark.gate
async def test_lost_primary_is_replaced_by_the_promoted_standby(
    primary: Server, standby: Server, truth: Truth, catalogues: Mapping[str, Path]
) -> None:
    questions = [*pages(truth, OLDER), *lookups(truth)]
    await standby.catch_up(primary)
    async with service(address_of(primary.port, standby.port, prefer="any")) as live:
        await connect_to_every(live.base, primary, standby)
        async with trial(live, questions, standby) as tried:
            await tried.ordinary()
            await primary.stop(KILL)
            await asyncio.sleep(2)
            await standby.promote()
            await tried.recovered()
            await publish(standby, catalogues, NEXT)
            async with httpx.AsyncClient(base_url=live.base, timeout=PATIENCE) as client:
                await await_release(client, NEXT)
    assert tried.load.count("answered") == len(tried.load.outcomes)


async def test_primary_losing_packets_is_left_for_the_standby(
    primary: Server, standby: Server, truth: Truth, away: float
) -> None:
    async with proxied(primary.port) as network, service(address_of(network.port, standby.port, prefer="any")) as live:
        await connect_to_every(live.base, primary, standby)
        async with trial(live, lookups(truth), primary, standby) as tried:
            await tried.ordinary()
            network.swallow()
            await tried.recovered()
            await asyncio.sleep(away)
            network.heal()
    assert tried.load.count("refused") <= POOL_SIZE  # requests that were waiting for it, one per connection


async def test_reads_go_to_the_primarys_pooler_if_the_other_reaches_no_standby(
    primary: Server, standby: Server
) -> None:
    """A pooler still accepts clients and refuses their queries."""
    role = "reader_of_two_poolers"
    await primary.fetch(f"CREATE ROLE {role} LOGIN")
    await standby.catch_up(primary)
    async with proxied(standby.port) as network:
        with (
            pooling(f"127.0.0.1:{network.port}", roles=[role], query_wait_timeout=1) as of_standbys,
            pooling(f"127.0.0.1:{primary.port}", roles=[role]) as of_primary,
        ):
            hosts = f"127.0.0.1:{of_standbys.port},127.0.0.1:{of_primary.port}"
            url = f"postgresql://{role}@{hosts}/localidades?sslmode=disable&pgbouncer=true&target_session_attrs="
            database = Database.for_reading(f"{url}prefer-standby", pool_size=4, timeout=1.9)
            asked = text("SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END FROM pg_sleep(0.05)")
            try:
                for expected in ("standby", "primary"):
                    for _ in range(5):
                        answers = await asyncio.gather(*(database.fetch(asked) for _ in range(4)))
                        assert {rows[0][0] for rows in answers} == {expected}
                    network.reset(refusing=True)
            finally:
                await database.dispose()


@pytest.mark.parametrize("prefer", [pytest.param("prefer-standby", marks=pytest.mark.gate), "any"])
async def test_lagging_standby_gives_no_wrong_answer(
    primary: Server, standby: Server, truth: Truth, catalogues: Mapping[str, Path], prefer: str
) -> None:
    url = address_of(primary.port, standby.port, prefer=prefer)
    questions = [*pages(truth) * 4, *lookups(truth), *lookups(truth, OLDER)]
    await standby.catch_up(primary)
    async with service(url, page_cache=True) as live:
        if prefer == "any":
            await connect_to_every(live.base, primary, standby)
        async with trial(live, questions, primary, standby) as tried:
            await tried.ordinary()
            await standby.fetch("SELECT pg_wal_replay_pause()")
            await publish(primary, catalogues, NEXT)
            await asyncio.sleep(3)
            await standby.resume_replay()
            await standby.catch_up(primary)
            await tried.recovered()
            assert tried.returned is not None
            assert tried.load.releases(tried.returned + 1) == {NEXT}
    assert tried.load.count("answered") == len(tried.load.outcomes)
    assert tried.load.returns_to(CURRENT, NEXT) == 0


async def test_failover_to_a_lagging_standby_does_not_go_back(
    primary: Server, standby: Server, truth: Truth, catalogues: Mapping[str, Path]
) -> None:
    """One address for both servers, as with a load balancer."""
    questions = [*pages(truth, are_held=True) * 4, *pages(truth, OLDER) * 4, *lookups(truth)]
    await standby.catch_up(primary)
    async with proxied(primary.port) as balancer, service(primary.url(balancer.port), page_cache=True) as live:
        await standby.fetch("SELECT pg_wal_replay_pause()")
        await publish(primary, catalogues, NEXT)
        async with httpx.AsyncClient(base_url=live.base, timeout=PATIENCE) as client:
            await await_release(client, NEXT)
        held = re.compile(rf"The page cache holds all \d+ pages of release {NEXT}\.")
        await asyncio.to_thread(eventually, lambda: held.search(live.output.read_text()))
        async with trial(live, questions, primary, standby) as tried:
            await tried.ordinary()
            balancer.lead_to(standby.port)
            await asyncio.sleep(3)
            await standby.resume_replay()
            await standby.catch_up(primary)
            await tried.recovered()
        assert tried.load.releases() == {NEXT}
        assert tried.load.count("refused") > 0


async def test_named_release_on_a_lagging_standby_is_503_not_404(
    primary: Server, standby: Server, catalogues: Mapping[str, Path]
) -> None:
    await standby.catch_up(primary)
    async with service(standby.url()) as live, httpx.AsyncClient(base_url=live.base, timeout=PATIENCE) as client:
        await standby.fetch("SELECT pg_wal_replay_pause()")
        await publish(primary, catalogues, NEXT)
        await standby.receive(primary)
        answer = await client.get(f"{LOCALIDADES}?page=2&release={NEXT}")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        await standby.resume_replay()
        await standby.catch_up(primary)
        await await_status(client, f"{LOCALIDADES}?page=2&release={NEXT}")  # the list of releases may be read again
        assert (await client.get(f"{LOCALIDADES}?page=2&release=nothing")).status_code == 404


async def test_promoted_standby_without_the_release_serves_the_previous_one(
    primary: Server, standby: Server, truth: Truth, catalogues: Mapping[str, Path]
) -> None:
    """Asynchronous replication may lose a release: responses stay right and never mix the two."""
    questions = [*pages(truth, OLDER), *lookups(truth, OLDER)]
    await standby.catch_up(primary)
    await standby.stop(IMMEDIATE)
    await publish(primary, catalogues, NEXT)
    async with service(address_of(primary.port, standby.port)) as live:
        async with trial(live, questions, standby) as tried:
            await tried.ordinary()
            await primary.stop(KILL)
            await standby.start()
            await standby.promote()
            await tried.recovered()
        async with httpx.AsyncClient(base_url=live.base, timeout=PATIENCE) as client:
            answer = await client.get(f"{LOCALIDADES}?page=1")
            assert answer.status_code == 503
            assert (await client.get(f"{LOCALIDADES}?page=1&release={CURRENT}")).status_code == 200


async def test_read_cancelled_by_a_standby_is_retried(primary: Server, standby: Server, truth: Truth) -> None:
    await slow_down(primary, 0.1)
    await standby.catch_up(primary)
    async with service(standby.url()) as live, trial(live, lookups(truth), standby, rate=15) as tried:
        await tried.ordinary()
        for _ in range(8):
            async with primary.connected() as connection, connection.transaction():
                await connection.execute("LOCK TABLE states_as_they_are IN ACCESS EXCLUSIVE MODE")
            await asyncio.sleep(0.5)
        await tried.recovered()
    ((cancelled,),) = await standby.fetch(
        "SELECT confl_lock FROM pg_stat_database_conflicts WHERE datname = 'localidades'"
    )
    assert cancelled > 0
    assert tried.load.count("answered") == len(tried.load.outcomes)
