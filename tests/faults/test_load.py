"""The client of the other tests."""

import asyncio
import time

from tests.faults.load import TICK, Load


async def test_clock_stands_still_while_the_machine_holds_up_the_process() -> None:
    load = Load()
    keeping = asyncio.create_task(load.keep_clock())
    await asyncio.sleep(0)
    began = load.clock()
    time.sleep(0.5)  # noqa: ASYNC251  # nothing else runs meanwhile
    assert load.clock() - began <= TICK
    await asyncio.sleep(0.001)
    assert load.clock() - began <= 2 * TICK
    keeping.cancel()
