"""The cache of arrays: one fetch for concurrent requests, a bound on slow ones, and results of those that time out."""

import asyncio
from array import array

import pytest

from localidades_api.caches.results import ArrayCache


class Fetch:
    """A fetch that waits until it may end, and counts how often it began."""

    def __init__(self, *integers: int) -> None:
        self.may_end = asyncio.Event()
        self.began = 0
        self._integers = integers

    async def __call__(self) -> "array[int]":
        """Return the integers once it may."""
        self.began += 1
        await self.may_end.wait()
        return array("i", self._integers)


async def a_moment() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_slow_fetches_wait_for_a_slot_and_begin_once() -> None:
    slots = asyncio.Semaphore(1)
    cache, first, second = ArrayCache(slots, 5), Fetch(1), Fetch(2)
    requests = [asyncio.create_task(cache.get_slow(fetch, fetch)) for fetch in (first, second, second)]
    await a_moment()
    assert (first.began, second.began) == (1, 0)
    first.may_end.set()
    await a_moment()
    assert (second.began, slots.locked()) == (1, True)
    second.may_end.set()
    assert [list(found) for found in await asyncio.gather(*requests)] == [[1], [2], [2]]
    assert (second.began, slots.locked()) == (1, False)


async def test_slow_fetch_that_takes_too_long_goes_on_for_a_later_request() -> None:
    cache, fetch = ArrayCache(asyncio.Semaphore(1), 0.05), Fetch(1)
    with pytest.raises(TimeoutError):
        await cache.get_slow("key", fetch)
    fetch.may_end.set()
    await a_moment()
    assert list(await cache.get_slow("key", fetch)) == [1]
    assert fetch.began == 1


async def test_failure_of_a_slow_fetch_frees_its_slot_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> "array[int]":
        raise OSError("no such server")

    slots = asyncio.Semaphore(1)
    with pytest.raises(OSError, match="no such server"):
        await ArrayCache(slots, 5).get_slow("key", fail)
    await a_moment()
    assert not slots.locked()
    assert "no such server" in caplog.text


async def test_arrays_stay_within_the_limit() -> None:
    cache = ArrayCache(asyncio.Semaphore(1), 5, limit=900)
    for key in ("first", "second"):
        cache.hold(key, array("i", [1]))
    assert cache.held("first")
    cache.hold("large", array("i", range(250)))  # alone over the limit
    cache.hold("third", array("i", [1]))  # the least recently used makes room
    held = [cache.held(key) is not None for key in ("first", "second", "large", "third")]
    assert held == [True, False, False, True]


async def test_closing_cancels_fetches() -> None:
    cache = ArrayCache(asyncio.Semaphore(1), 5)
    request = asyncio.create_task(cache.get("key", Fetch(1)))
    await a_moment()
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await request
