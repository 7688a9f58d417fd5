"""Failover by Patroni: no read is wrong, cached pages are always served, and imports soon work again."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic import command

from localidades_api.errors import DatabaseUnavailableError
from tests.faults.load import lookups, pages
from tests.faults.patroni.cluster import Cluster, running_cluster
from tests.faults.patroni.node import IMPORTER, OWNER, READER, Node
from tests.faults.patroni.programs import find_programs
from tests.faults.service import service
from tests.faults.trial import POOL_SIZE, Trial, trial
from tests.support.application import import_into
from tests.support.catalogue import write_catalogue
from tests.support.postgres import alembic_config, grant_roles
from tests.support.records import Truth, renamed
from tests.support.servers import Installation
from tests.support.wire import Live

IMPORTED_WITHIN = 30.0  # seconds from the fault: the primary's lease, the election, and the import itself
ETCD_AWAY = 60.0  # seconds
OLDER, CURRENT, *NEXT = (f"2020-{month:02}" for month in range(1, 8))


class Failover:
    """A cluster with releases to publish, and a service on it: two workers with half of the connections each."""

    def __init__(self, cluster: Cluster, truth: Truth, catalogues: Mapping[str, Path]) -> None:
        self.cluster = cluster
        self.live: Live
        self._truth = truth
        self._catalogues = catalogues

    async def publish(self, name: str) -> None:
        """Import a release as the command line does."""
        url = self.cluster.url(IMPORTER, "primary") + "&application_name=importer&connect_timeout=3"
        await asyncio.to_thread(lambda: asyncio.run(import_into(url, self._catalogues[name], release=name)))

    async def publish_soon(self, name: str, *, since: float) -> None:
        """Retry an import until it succeeds, which must be within 30 seconds of the fault."""
        while True:
            try:
                await self.publish(name)
            except DatabaseUnavailableError:
                assert time.monotonic() - since < 2 * IMPORTED_WITHIN
                await asyncio.sleep(0.2)
            else:
                break
        assert time.monotonic() - since <= IMPORTED_WITHIN

    @asynccontextmanager
    async def trial(self, newest: str) -> AsyncIterator[tuple[Trial, Node]]:
        """Cause a fault within the block, which gets the primary; in the end the newest release is served.

        At most one request per connection is refused.
        """
        await self.cluster.await_health()
        truth = self._truth
        older = [*pages(truth, OLDER) * 2, *lookups(truth, OLDER)]
        questions = [*pages(truth, are_held=True) * 3, *lookups(truth), *older]
        async with trial(self.live, questions, *self.cluster.nodes) as tried:
            await tried.ordinary()
            yield tried, await self.cluster.primary()
            await self.cluster.await_health()
            await tried.recovered()
        assert tried.load.count("refused") <= POOL_SIZE
        assert tried.returned is not None
        assert tried.load.releases(tried.returned) == {newest}


@pytest.fixture(scope="module")
async def failover(
    installation: Installation, server_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Failover]:
    """Yield three nodes with two releases, and the service."""
    # Later releases have fewer places.
    truth = Truth({name: renamed(name, 1500 - 10 * number) for number, name in enumerate((OLDER, CURRENT, *NEXT))})
    folder = tmp_path_factory.mktemp("catalogues")
    catalogues = {name: write_catalogue(folder / f"{name}.csv", places) for name, places in truth.releases.items()}
    async with running_cluster(find_programs(installation, server_folder)) as cluster:
        assert await asyncio.to_thread(grant_roles, cluster.url(OWNER, "primary")) == ""
        await asyncio.to_thread(command.upgrade, alembic_config(cluster.url(IMPORTER, "primary")), "head")
        failover = Failover(cluster, truth, catalogues)
        for name in (OLDER, CURRENT):
            await failover.publish(name)
        url, share = cluster.url(READER, "prefer-standby"), f"{POOL_SIZE // 2}"
        async with service(url, "--workers", "2", page_cache=True, LOCALIDADES_POOL_SIZE=share) as failover.live:
            yield failover


async def assert_standby(node: Node, newest: str) -> None:
    """Check that a former primary is a standby with the latest publication."""
    assert await node.is_standby()
    assert await node.has_release(newest)


async def test_switchover_loses_no_read(failover: Failover) -> None:
    async with failover.trial(NEXT[0]) as (_, former):
        began = time.monotonic()
        await former.control("switchover", "localidades", "--leader", former.name, "--force")
        await failover.publish_soon(NEXT[0], since=began)
    await assert_standby(former, NEXT[0])


async def test_killed_primary_is_replaced_and_returns_as_a_standby(failover: Failover) -> None:
    async with failover.trial(NEXT[2]) as (_, lost):
        await failover.publish(NEXT[1])
        began = time.monotonic()
        lost.kill()  # a standby has the commit just acknowledged
        await failover.publish_soon(NEXT[2], since=began)
        promoted = await failover.cluster.primary()
        assert promoted is not lost
        assert await promoted.has_release(NEXT[1])
        lost.start()
    await assert_standby(lost, NEXT[2])


@pytest.mark.tail
async def test_partitioned_primary_is_replaced_and_returns_as_a_standby(failover: Failover) -> None:
    async with failover.cluster.never_two_primaries(), failover.trial(NEXT[3]) as (_, lost):
        began = time.monotonic()
        failover.cluster.cut(lost)
        await failover.publish_soon(NEXT[3], since=began)
        failover.cluster.heal()
    await assert_standby(lost, NEXT[3])


@pytest.mark.tail
async def test_primary_stays_primary_without_etcd(failover: Failover) -> None:
    async with failover.trial(NEXT[4]) as (tried, primary):
        failover.cluster.etcd.stop()
        began = time.monotonic()
        await asyncio.sleep(ETCD_AWAY * 2 / 3)  # long after the primary's lease
        await failover.publish_soon(NEXT[4], since=time.monotonic())
        await asyncio.sleep(max(0, began + ETCD_AWAY - time.monotonic()))
        assert await failover.cluster.primary() is primary
        failover.cluster.etcd.start()
    assert tried.load.count("answered") == len(tried.load.outcomes)
