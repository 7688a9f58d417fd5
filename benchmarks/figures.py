"""The single figures: start-up, memory, the walk of a whole release, the import."""

import http.client
import json
import re
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

from benchmarks.contenders import BY_KEY, COLD, OURS, OURS_COLD, WARM
from benchmarks.import_vs_copy import measure as measure_import_vs_copy
from benchmarks.lab import Lab, await_pages_held
from benchmarks.processes import PATH, BenchmarkError, Server
from benchmarks.series import Series

_NEXT = re.compile(r'<([^>]+)>; rel="next"')


def measure_startup(lab: Lab, url: str) -> dict[str, dict[str, Series]]:
    """Return seconds from the start of a process to its first page, and its memory then, in MB."""
    seconds, resident = defaultdict(list), defaultdict(list)
    for _ in range(lab.options.rounds):
        for key, contender in BY_KEY.items():
            if key != COLD:
                with lab.start(contender, url) as server:
                    seconds[key].append(server.seconds)
                    resident[key].append(server.resident())
    return {
        key: {"seconds": Series.of(times), "resident_mb": Series.of(resident[key])} for key, times in seconds.items()
    }


def measure_memory(lab: Lab, url: str) -> dict[str, Series]:
    """Return the resident memory of our worker in MB: every page read with the cache off, and every page held."""
    cold, held = [], []
    for _ in range(lab.options.rounds):
        with lab.start(OURS_COLD, url) as server:
            _walk(server)
            cold.append(server.resident())
        with lab.start(OURS, url) as server:
            await_pages_held(server)
            held.append(server.resident())
    return {"cold": Series.of(cold), "held": Series.of(held)}


def measure_walk(lab: Lab, url: str) -> dict[str, dict[str, Series]]:
    """Return seconds and pages a second of one client that follows `next` from the first page to the last."""
    seconds: dict[str, list[float]] = {COLD: [], WARM: []}
    pages = 0
    with ExitStack() as stack:
        servers = {contender.key: stack.enter_context(lab.start(contender, url)) for contender in (OURS_COLD, OURS)}
        await_pages_held(servers[WARM])
        for _ in range(lab.options.rounds):
            for key, server in servers.items():
                took, pages = _walk(server)
                seconds[key].append(took)
    return {
        key: {"seconds": Series.of(times), "pages_per_second": Series.of([pages / took for took in times])}
        for key, times in seconds.items()
    }


def _walk(server: Server) -> tuple[float, int]:
    """Return the seconds and the pages of a walk over one connection; every record must come exactly once."""
    bodies = []
    target: str | None = PATH
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=10)) as connection:
        started = time.perf_counter()
        while target is not None:
            connection.request("GET", target)
            response = connection.getresponse()
            bodies.append(response.read())
            following = _NEXT.search(response.headers["Link"])
            target = following[1] if following else None
        seconds = time.perf_counter() - started
    _check_complete(bodies)
    return seconds, len(bodies)


def _check_complete(bodies: list[bytes]) -> None:
    pages = [json.loads(body) for body in bodies]
    ids = {record["id"] for page in pages for record in page["results"]}
    if not len(ids) == sum(len(page["results"]) for page in pages) == pages[0]["quantity"]:
        raise BenchmarkError("A walk did not give every record once.")


def measure_import(lab: Lab) -> dict[str, Series]:
    """Return seconds of an import of 304,400 localities over a release before it, and of bare COPYs of its rows."""
    times = measure_import_vs_copy(lab.catalogue(), lab.options.rounds, lab.url)
    return {name: Series.of(seconds) for name, seconds in times.items()}
