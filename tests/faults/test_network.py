"""A network between service and server that drops packets or is partitioned."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from tests.faults.load import lookups, pages
from tests.faults.proxy import Proxy, proxied
from tests.faults.service import service
from tests.faults.trial import Report, trial
from tests.support.servers import Server
from tests.support.truth import Truth


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        pytest.param("network swallows packets", Proxy.swallow, id="swallows_packets", marks=pytest.mark.gate),
        pytest.param("connections reset, old and new", partial(Proxy.reset, refusing=True), id="refuses"),
    ],
)
async def test_partitioned_network_is_503_in_time(
    primary: Server, truth: Truth, report: Report, away: float, fault: str, part: Callable[[Proxy], None]
) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth)]
    async with (
        proxied(primary.port) as network,
        service(primary.url(network.port), page_cache=True) as live,
        trial(report, f"{fault}, {away:g} s", live, questions, primary) as tried,
    ):
        await tried.ordinary()
        part(network)
        await asyncio.sleep(away)
        network.heal()
        await tried.recovered()
    assert tried.load.count("refused") > 0


async def test_no_old_connection_is_used_after_packet_loss(
    primary: Server, truth: Truth, report: Report, away: float
) -> None:
    """Without cached pages. Dropped bytes are lost, as behind a firewall that has forgotten its connections."""
    async with (
        proxied(primary.port) as network,
        service(primary.url(network.port)) as live,
        trial(report, f"network forgets connections, {away:g} s", live, lookups(truth), primary) as tried,
    ):
        await tried.ordinary()
        network.swallow()
        await asyncio.sleep(away)
        network.forget()
        await tried.recovered()
        network.expire()
