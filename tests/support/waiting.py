"""Waiting for what happens elsewhere."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> T:
    """Run what starts an event loop of its own while the tests' is running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
