"""Answers that wait for their reader: their order, and what they take of the disk."""

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.bulk import outbox
from localidades_api.bulk.outbox import Outbox

FILE = 4 * 1024**2
LAG = 3 * 1024**2


async def _never() -> None:
    await asyncio.Event().wait()


async def _take(box: Outbox, filling: "asyncio.Task[None]", amount: int) -> bytes:
    taken = b""
    while len(taken) < amount:
        taken += await box.take(filling)
    return taken


def _on_disk() -> int:
    """Return the bytes of this process's temporary files without a name."""
    sizes = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith(tempfile.gettempdir()) and target.endswith(" (deleted)"):
                sizes += os.fstat(int(descriptor.name)).st_size
    return sizes


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the files of a process are seen in /proc")
async def test_reader_that_stays_a_little_behind_takes_no_more_of_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_FILE", FILE)
    before = _on_disk()
    filling = asyncio.create_task(_never())
    largest = 0
    with Outbox() as box:
        box.put(bytes(LAG))
        for _ in range(40):
            box.put(bytes(1024**2))
            await _take(box, filling, 1024**2)
            largest = max(largest, _on_disk() - before)
        assert LAG <= largest <= LAG + 2 * FILE
    filling.cancel()
    assert _on_disk() == before


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=200_000), st.none()), max_size=30))
def test_what_is_put_is_taken_in_order(steps: list[bytes | None]) -> None:
    asyncio.run(_put_and_take(steps))


async def _put_and_take(steps: list[bytes | None]) -> None:
    filling = asyncio.create_task(asyncio.sleep(0))
    taken = b""
    with pytest.MonkeyPatch.context() as monkeypatch, Outbox() as box:
        monkeypatch.setattr(outbox, "MAX_FILE", 100_000)
        for step in steps:
            if step is None:
                taken += await box.take(filling)
            else:
                box.put(step)
        await filling
        while piece := await box.take(filling):
            taken += piece
    assert taken == b"".join(step for step in steps if step)
