"""Samples gauges every second: connections, held pages, the release, whether the event loop keeps time."""

import asyncio
from collections import deque
from itertools import count
from time import perf_counter, time

from sqlalchemy.pool import QueuePool

from localidades_api.database import Database
from localidades_api.faults import FAULTS
from localidades_api.metrics import TALLY, Series
from localidades_api.page_cache import PageCache
from localidades_api.releases import ReleaseTracker

_STEP = 0.05  # seconds of a sleep whose lateness is measured
_STEPS = 20  # between two looks at everything else
_MINUTE = 60  # looks for which a lateness is shown: longer than the time between two scrapes


class Gauges:
    """Samples the gauges every second.

    A scrape reaches one worker and is answered for all, so none can wait for being asked.
    """

    def __init__(self, database: Database, pages: PageCache, releases: ReleaseTracker) -> None:
        self._database = database
        self._pages = pages
        self._releases = releases
        self._started_at = time()  # a worker that starts has not been failing to look since 1970

    async def follow(self) -> None:
        """Sample for ever."""
        late = deque([0.0], maxlen=_MINUTE)
        try:
            for step in count():
                if step % _STEPS == 0:
                    self._sample(max(late))
                    late.append(0.0)
                    FAULTS.sweep()
                began = perf_counter()
                await asyncio.sleep(_STEP)
                late[-1] = max(late[-1], perf_counter() - began - _STEP)
        finally:
            FAULTS.sweep(everything=True)

    def _sample(self, lag: float) -> None:
        try:
            TALLY.gauges = {("event_loop_lag_seconds",): lag, **self.look()}
        except Exception as error:  # noqa: BLE001  # whatever it is, the next look may succeed
            FAULTS.report(error, "The gauges can't be set", traceback=True)

    def look(self) -> dict[Series, float]:
        """Return what there is now."""
        held_bytes, held_pages = self._pages.size
        gauges: dict[Series, float] = {
            ("database_waiting",): self._database.waiting,
            ("page_cache_bytes",): held_bytes,
            ("page_cache_pages",): held_pages,
            ("release_checked_timestamp_seconds",): self._releases.checked_at or self._started_at,
            ("release_published_timestamp_seconds",): 0,
        }
        pool = self._database.engine.pool
        if isinstance(pool, QueuePool):
            gauges["database_connections", "in_use"] = pool.checkedout()
            gauges["database_connections", "idle"] = pool.checkedin()
            gauges["database_connections_limit",] = pool.size()
        if served := self._releases.served:
            gauges["release_info", served.name] = 1
            gauges["release_published_timestamp_seconds",] = served.published_at.timestamp()
        return gauges
