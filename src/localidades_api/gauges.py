"""What is looked at rather than counted: connections, held pages, the release, whether the event loop keeps time."""

import asyncio
from collections import deque
from itertools import count
from time import perf_counter

from sqlalchemy.pool import QueuePool

from localidades_api import metrics
from localidades_api.database import Database
from localidades_api.page_cache import PageCache
from localidades_api.releases import ReleaseTracker

_STEP = 0.05  # seconds of a sleep whose lateness is measured
_STEPS = 20  # between two looks at everything else
_MINUTE = 60  # looks for which a lateness is shown: longer than the time between two scrapes


class Gauges:
    """Sets the gauges each second.

    A scrape reaches one worker and is answered for all, so none can wait for being asked.
    """

    def __init__(self, database: Database, pages: PageCache, releases: ReleaseTracker) -> None:
        self._database = database
        self._pages = pages
        self._releases = releases
        self._shown: str | None = None

    async def follow(self) -> None:
        """Look, for ever, and add what requests have counted."""
        late = deque([0.0], maxlen=_MINUTE)
        try:
            for step in count():
                if step % _STEPS == 0:
                    self.look()
                    metrics.EVENT_LOOP_LAG.set(max(late))
                    late.append(0.0)
                began = perf_counter()
                await asyncio.sleep(_STEP)
                late[-1] = max(late[-1], perf_counter() - began - _STEP)
        finally:
            metrics.TALLY.flush()

    def look(self) -> None:
        """Set the gauges to what there is now."""
        metrics.TALLY.flush()
        pool = self._database.engine.pool
        if isinstance(pool, QueuePool):
            metrics.DATABASE_CONNECTIONS.labels("in_use").set(pool.checkedout())
            metrics.DATABASE_CONNECTIONS.labels("idle").set(pool.checkedin())
            metrics.DATABASE_CONNECTIONS_LIMIT.set(pool.size())
        metrics.DATABASE_WAITING.set(self._database.waiting)
        held_bytes, held_pages = self._pages.size
        metrics.PAGE_CACHE_BYTES.set(held_bytes)
        metrics.PAGE_CACHE_PAGES.set(held_pages)
        if self._releases.checked_at is not None:
            metrics.RELEASE_CHECKED.set(self._releases.checked_at)
        self._show_release()

    def _show_release(self) -> None:
        served = self._releases.served
        name = served.name if served else None
        if name != self._shown:  # a scrape, which is another thread's, sees no moment without one
            if name is not None:
                metrics.RELEASE_INFO.labels(name).set(1)
            if self._shown is not None:
                metrics.RELEASE_INFO.labels(self._shown).set(0)
            self._shown = name
        metrics.RELEASE_PUBLISHED.set(served.published_at.timestamp() if served else 0)
