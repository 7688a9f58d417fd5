"""Samples the gauges every second."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from time import perf_counter

from localidades_api.observability.faults import FAULTS
from localidades_api.observability.metrics import COUNTERS, Series

SLEEP_INTERVAL = 0.05  # seconds; the lateness of each sleep is measured
SLEEPS_PER_SAMPLE = 20  # between two samples
_MAX_LATENESS_SAMPLES = 60  # samples, longer than a scrape interval, for which a lateness is reported

Gauges = Callable[[], Mapping[Series, float]]  # returns the gauges of one part of the service


class Sampler:
    """Samples gauges, and how late the event loop is, every second.

    A scrape reaches one worker, which answers for all, so the workers can't wait to be asked.
    """

    def __init__(self, *sources: Gauges) -> None:
        self._sources = sources

    async def run(self) -> None:
        """Sample until cancelled."""
        late = deque([0.0], maxlen=_MAX_LATENESS_SAMPLES)
        try:
            for step in count():
                if step % SLEEPS_PER_SAMPLE == 0:
                    self._sample(max(late))
                    late.append(0.0)
                    FAULTS.sweep()
                began = perf_counter()
                await asyncio.sleep(SLEEP_INTERVAL)
                late[-1] = max(late[-1], perf_counter() - began - SLEEP_INTERVAL)
        finally:
            FAULTS.sweep(everything=True)

    def _sample(self, lag: float) -> None:
        gauges: dict[Series, float] = {("event_loop_lag_seconds",): lag}
        try:
            for source in self._sources:
                gauges.update(source())
        except Exception as error:  # noqa: BLE001  # the next sample may succeed
            FAULTS.report(error, "Can't sample the gauges", traceback=True)
        else:
            COUNTERS.gauges = gauges
