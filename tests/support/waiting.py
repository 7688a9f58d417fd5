"""Waits for events in other threads and processes."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from typing import Any, TypeVar, overload

T = TypeVar("T")
_INTERVAL = 0.02  # seconds

# Whether coverage is measured, which slows processes down several times.
IS_MEASURED = "COVERAGE_PROCESS_CONFIG" in os.environ
PATIENCE = 120.0  # seconds to wait for an expected event, on a busy machine


def in_thread(function: Callable[[], T]) -> T:
    """Run a function that starts an event loop while the tests' own is running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def eventually(
    condition: Callable[[], T], *, within: float = PATIENCE, otherwise: Callable[[], object] | None = None
) -> T:
    """Wait until a condition is true and return its value; fail after `within` seconds with `otherwise()`."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, otherwise() if otherwise else f"it does not hold within {within} s"
        time.sleep(_INTERVAL)
    return found


@overload
async def eventually_async(condition: Callable[[], Awaitable[T]], *, within: float = ...) -> T: ...
@overload
async def eventually_async(condition: Callable[[], T], *, within: float = ...) -> T: ...
async def eventually_async(condition: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """Wait until a condition, awaited if need be, is true and return its value, without blocking the event loop."""
    async with asyncio.timeout(within):
        while True:
            found = condition()
            if value := await found if isawaitable(found) else found:
                return value
            await asyncio.sleep(_INTERVAL)
