"""Samples gauges every second: what counts nothing, and only is what it is at the moment."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from time import perf_counter

from localidades_api.observability.faults import FAULTS
from localidades_api.observability.metrics import COUNTERS, Series

_SLEEP_INTERVAL = 0.05  # seconds of a sleep whose lateness is measured
_SLEEPS_PER_SAMPLE = 20  # between two samples
_MAX_LATENESS_SAMPLES = 60  # samples for which a lateness is shown: longer than the time between two scrapes

Gauges = Callable[[], Mapping[Series, float]]  # what a part of the service shows of itself


class Sampler:
    """Samples gauges, and how late the event loop is, every second.

    A scrape reaches one worker and is answered for all, so none can wait for being asked.
    """

    def __init__(self, *sources: Gauges) -> None:
        self._sources = sources

    async def run(self) -> None:
        """Sample for ever."""
        late = deque([0.0], maxlen=_MAX_LATENESS_SAMPLES)
        try:
            for step in count():
                if step % _SLEEPS_PER_SAMPLE == 0:
                    self._sample(max(late))
                    late.append(0.0)
                    FAULTS.sweep()
                began = perf_counter()
                await asyncio.sleep(_SLEEP_INTERVAL)
                late[-1] = max(late[-1], perf_counter() - began - _SLEEP_INTERVAL)
        finally:
            FAULTS.sweep(everything=True)

    def _sample(self, lag: float) -> None:
        gauges: dict[Series, float] = {("event_loop_lag_seconds",): lag}
        try:
            for source in self._sources:
                gauges.update(source())
        except Exception as error:  # noqa: BLE001  # whatever it is, the next sample may succeed
            FAULTS.report(error, "Can't sample the gauges", traceback=True)
        else:
            COUNTERS.gauges = gauges
