"""Waiting for what happens elsewhere."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_INTERVAL = 0.02  # seconds between two looks

# Whether `make coverage` runs, whose processes take several times as long: how long one waits for them says nothing.
IS_MEASURED = "COVERAGE_PROCESS_CONFIG" in os.environ
PATIENCE = 120.0 if IS_MEASURED else 60.0  # seconds for whatever must come, unless how soon is what a test is about


def in_thread(function: Callable[[], T]) -> T:
    """Run what starts an event loop of its own while the tests' is running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def eventually(
    condition: Callable[[], T], *, within: float = PATIENCE, otherwise: Callable[[], object] | None = None
) -> T:
    """Wait until something holds, and return what it gave; fail after so many seconds with what `otherwise` says."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, otherwise() if otherwise else f"it does not hold within {within} s"
        time.sleep(_INTERVAL)
    return found


async def eventually_async(condition: Callable[[], Awaitable[T]], *, within: float = PATIENCE) -> T:
    """Wait until something holds, and return what it gave; the event loop goes on meanwhile."""
    async with asyncio.timeout(within):
        while not (found := await condition()):  # noqa: ASYNC110  # whatever is waited for has no event of this loop
            await asyncio.sleep(_INTERVAL)
        return found
