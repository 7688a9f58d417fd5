"""Failover by Patroni: no read is wrong, cached pages are always served, and imports soon work again."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from alembic import command

from localidades_api.errors import DatabaseUnavailableError
from tests.faults.load import Question, lookups, pages
from tests.faults.patroni.cluster import Cluster, running_cluster
from tests.faults.patroni.node import IMPORTER, OWNER, READER, Node
from tests.faults.patroni.programs import find_programs
from tests.faults.service import service
from tests.faults.trial import POOL_SIZE, Report, Trial, trial
from tests.support.application import import_into
from tests.support.catalogue import write_catalogue
from tests.support.postgres import alembic_config
from tests.support.servers import Installation
from tests.support.service_address import DEFAULT_DATABASE_TIMEOUT
from tests.support.truth import Truth, renamed
from tests.support.wire import Live, environment, run

pytestmark = pytest.mark.timeout(300)  # leases are waited for

IMPORTED_WITHIN = 30.0  # seconds from the fault: the primary's lease, the election, and the import itself
ETCD_AWAY = 60.0  # seconds
OLDER, CURRENT, *NEXT = (f"2020-{month:02}" for month in range(1, 8))


@pytest.fixture(scope="module")
def truth() -> Truth:
    """Return the places of each release; later ones have fewer."""
    return Truth({name: renamed(name, 1500 - 10 * number) for number, name in enumerate((OLDER, CURRENT, *NEXT))})


@pytest.fixture(scope="module")
def catalogues(truth: Truth, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the file of each release."""
    folder = tmp_path_factory.mktemp("catalogues")
    return {name: write_catalogue(folder / f"{name}.csv", places) for name, places in truth.releases.items()}


@pytest.fixture(scope="module")
async def cluster(
    installation: Installation, server_folder: Path, catalogues: Mapping[str, Path]
) -> AsyncIterator[Cluster]:
    """Yield three nodes with two releases."""
    async with running_cluster(find_programs(installation, server_folder)) as cluster:
        url, timeout = cluster.url(OWNER, "primary"), str(DEFAULT_DATABASE_TIMEOUT)
        env = environment(url, LOCALIDADES_DATABASE_TIMEOUT=timeout)
        granted = await asyncio.to_thread(lambda: run("roles", env=env))
        assert granted.returncode == 0, granted.stderr
        tables = alembic_config(cluster.url(IMPORTER, "primary"))
        await asyncio.to_thread(command.upgrade, tables, "head")
        for name in (OLDER, CURRENT):
            await publish(cluster, catalogues, name)
        yield cluster


@pytest.fixture(scope="module")
async def live(cluster: Cluster) -> AsyncIterator[Live]:
    """Yield one service for all faults: two workers with half of the connections each."""
    url = cluster.url(READER, "prefer-standby")
    async with service(url, "--workers", "2", page_cache=True, LOCALIDADES_POOL_SIZE=f"{POOL_SIZE // 2}") as live:
        yield live


async def publish(cluster: Cluster, catalogues: Mapping[str, Path], name: str) -> None:
    """Import a release as the command line does."""
    url = cluster.url(IMPORTER, "primary") + "&application_name=importer&connect_timeout=3"
    await asyncio.to_thread(lambda: asyncio.run(import_into(url, catalogues[name], release=name)))


async def publish_soon(
    tried: Trial, cluster: Cluster, catalogues: Mapping[str, Path], name: str, *, since: float
) -> None:
    """Retry an import until it succeeds, which must be within 30 seconds of the fault."""
    while True:
        try:
            await publish(cluster, catalogues, name)
        except DatabaseUnavailableError:
            assert time.monotonic() - since < 2 * IMPORTED_WITHIN
            await asyncio.sleep(0.2)
        else:
            break
    seconds = time.monotonic() - since
    tried.note += f", import after {seconds:.0f} s"
    assert seconds <= IMPORTED_WITHIN


def questions(truth: Truth) -> list[Question]:
    """Return requests for cached pages, and for records in the database."""
    return [*pages(truth, are_held=True) * 3, *pages(truth, OLDER) * 2, *lookups(truth), *lookups(truth, OLDER)]


def assert_reads(tried: Trial, newest: str) -> None:
    """Check that at most one request per connection was refused, and that the newest release is served."""
    assert tried.load.count("refused") <= POOL_SIZE
    assert tried.returned is not None
    assert tried.load.releases(tried.returned) == {newest}


async def assert_standby(node: Node, newest: str) -> None:
    """Check that a former primary is a standby with the latest publication."""
    assert await node.is_standby()
    assert await node.has_release(newest)


async def test_switchover_loses_no_read(
    cluster: Cluster, live: Live, truth: Truth, report: Report, catalogues: Mapping[str, Path]
) -> None:
    await cluster.await_health()
    former = await cluster.primary()
    async with trial(report, "Patroni: switchover", live, questions(truth), *cluster.nodes) as tried:
        await tried.ordinary()
        began = time.monotonic()
        await former.control("switchover", "localidades", "--leader", former.name, "--force")
        await publish_soon(tried, cluster, catalogues, NEXT[0], since=began)
        await cluster.await_health()
        await tried.recovered()
    assert_reads(tried, NEXT[0])
    await assert_standby(former, NEXT[0])


async def test_killed_primary_is_replaced_and_returns_as_a_standby(
    cluster: Cluster, live: Live, truth: Truth, report: Report, catalogues: Mapping[str, Path]
) -> None:
    await cluster.await_health()
    lost = await cluster.primary()
    async with trial(report, "Patroni: primary killed", live, questions(truth), *cluster.nodes) as tried:
        await tried.ordinary()
        await publish(cluster, catalogues, NEXT[1])
        began = time.monotonic()
        lost.kill()  # a standby has the commit just acknowledged
        await publish_soon(tried, cluster, catalogues, NEXT[2], since=began)
        promoted = await cluster.primary()
        assert promoted is not lost
        assert await promoted.has_release(NEXT[1])
        lost.start()
        await cluster.await_health()
        await tried.recovered()
    assert_reads(tried, NEXT[2])
    await assert_standby(lost, NEXT[2])


@pytest.mark.tail
async def test_partitioned_primary_is_replaced_and_returns_as_a_standby(
    cluster: Cluster, live: Live, truth: Truth, report: Report, catalogues: Mapping[str, Path]
) -> None:
    await cluster.await_health()
    lost = await cluster.primary()
    async with (
        cluster.never_two_primaries(),
        trial(report, "Patroni: primary's network cut", live, questions(truth), *cluster.nodes) as tried,
    ):
        await tried.ordinary()
        began = time.monotonic()
        cluster.cut(lost)
        await publish_soon(tried, cluster, catalogues, NEXT[3], since=began)
        cluster.heal()
        await cluster.await_health()
        await tried.recovered()
    assert_reads(tried, NEXT[3])
    await assert_standby(lost, NEXT[3])


@pytest.mark.tail
async def test_primary_stays_primary_without_etcd(
    cluster: Cluster, live: Live, truth: Truth, report: Report, catalogues: Mapping[str, Path]
) -> None:
    await cluster.await_health()
    primary = await cluster.primary()
    async with trial(report, f"Patroni: etcd away, {ETCD_AWAY:g} s", live, questions(truth), *cluster.nodes) as tried:
        await tried.ordinary()
        cluster.etcd.stop()
        began = time.monotonic()
        await asyncio.sleep(ETCD_AWAY * 2 / 3)  # long after the primary's lease
        await publish_soon(tried, cluster, catalogues, NEXT[4], since=time.monotonic())
        await asyncio.sleep(max(0, began + ETCD_AWAY - time.monotonic()))
        assert await cluster.primary() is primary
        cluster.etcd.start()
        await cluster.await_health()
        await tried.recovered()
    assert_reads(tried, NEXT[4])
    assert tried.load.count("answered") == len(tried.load.outcomes)
