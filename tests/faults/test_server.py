"""A server that stops and comes back, or is suspended."""

import asyncio
import signal

import pytest

from tests.faults.load import lookups, pages
from tests.faults.service import OLDER, service
from tests.faults.trial import Report, trial
from tests.support.servers import FAST, IMMEDIATE, KILL, Server
from tests.support.truth import Truth


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        pytest.param("server stopped in good order", FAST, id="fast"),
        pytest.param("server stopped at once", IMMEDIATE, id="immediate"),
        pytest.param("server killed (kill -9)", KILL, id="kill", marks=pytest.mark.gate),
    ],
)
async def test_stopped_server_is_503_except_for_cached_pages(
    primary: Server, truth: Truth, report: Report, away: float, fault: str, number: signal.Signals
) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth, OLDER)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(report, f"{fault}, away {away:g} s", live, questions, primary) as tried:
            await tried.ordinary()
            await primary.stop(number)
            await asyncio.sleep(away)
            await primary.start()
            await tried.recovered()
        assert tried.load.count("refused") > 0


async def test_paused_server_is_503_in_time(primary: Server, truth: Truth, report: Report, away: float) -> None:
    questions = [*pages(truth, are_held=True) * 8, *lookups(truth)]
    async with service(primary.url(), page_cache=True) as live:
        async with trial(report, f"server stands still (SIGSTOP), {away:g} s", live, questions, primary) as tried:
            await tried.ordinary()
            primary.pause()
            await asyncio.sleep(away)
            primary.resume()
            await tried.recovered()
        assert tried.load.count("refused") > 0


async def test_service_started_without_the_server_serves_once_it_is_up(
    primary: Server, truth: Truth, report: Report
) -> None:
    await primary.stop(FAST)
    async with (
        service(primary.url(), probe="/livez") as live,
        trial(report, "server away as the service starts", live, lookups(truth), primary) as tried,
    ):
        await asyncio.sleep(2)
        assert tried.load.count("refused") == len(tried.load.outcomes)
        await primary.start()
        await tried.recovered()
