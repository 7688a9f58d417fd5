"""Results as Markdown tables, which read well on a terminal too."""

from collections.abc import Iterator, Sequence

from benchmarks.contenders import (
    BARE,
    COLD,
    DEPLOYED,
    DRF,
    EMPTY,
    FASTAPI,
    FASTIFY,
    FIRST,
    LAST,
    NGINX,
    NOT_MODIFIED,
    RANDOM,
    TITLES,
    WARM,
)
from benchmarks.downloads import COPY_CSV, COPY_JSON, NDJSON, WORKER
from benchmarks.goals import judge
from benchmarks.queries import PLANS
from benchmarks.results import Results
from benchmarks.series import Series
from localidades_api.catalogue.schemas import DEMO_RELEASE

_ORDER = (DRF, FASTAPI, FASTIFY, COLD, EMPTY, WARM, DEPLOYED, BARE, NGINX)


def render(results: Results) -> str:
    """Return the tables of the measured figures."""
    tables = (_machine, _throughput, _queries, _downloads, _further, _goals)
    parts = [line for table in tables for line in table(results)]
    return "\n".join(parts) + "\n"


def _machine(results: Results) -> Iterator[str]:
    told = results.machine
    yield (
        f"{told['cpu']}, {told['cores']} cores, {told['memory_gb']} GB, {told['system']}, Linux {told['kernel']},"
        f" Python {told['python']}, PostgreSQL {told['postgres']}, Node {told['node']}, nginx {told['nginx']},"
        f" wrk {told['wrk']}; commit {told['commit']}, {told['measured_at']}."
    )
    catalogue = results.options.get("catalogue", DEMO_RELEASE)
    yield (
        f"Release: {catalogue}. Medians of {results.options['rounds']} alternating rounds, ± half of what lies between"
        " lowest and highest."
    )


def _throughput(results: Results) -> Iterator[str]:
    rates = results.throughput.get("requests_per_second")
    if not rates:
        return
    p99, cpu = results.throughput["p99_ms"], results.throughput["cpu_us"]
    rows = []
    for key in _ORDER:
        rate = rates[key]
        rows.append(
            [
                TITLES[key],
                *(_spread(rate.get(target)) for target in (RANDOM, FIRST, LAST, NOT_MODIFIED)),
                f"{p99[key][RANDOM].median:.1f} ms",
                f"{cpu[key][RANDOM].median:,.0f} µs",
                *(_ratio(rate[RANDOM].over(rates[other][RANDOM])) for other in (DRF, FASTAPI, BARE)),
            ]
        )
    head = [
        "requests a second",
        RANDOM,
        FIRST,
        LAST,
        "304s",
        "p99",
        "worker's CPU",
        "× DRF",
        "× FastAPI",
        "× bare ASGI",
    ]
    yield from _table(head, rows)


def _queries(results: Results) -> Iterator[str]:
    rows = [
        [
            group,
            *(_spread(figures[name], 2) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
            _spread(figures.get("requests_per_second")),
        ]
        for group, figures in results.queries.items()
        if group != PLANS
    ]
    if rows:
        yield from _table(
            ["one client in turn, ms", "p50", "p95", "p99", "slowest", "16 connections, requests/s"], rows
        )


def _downloads(results: Results) -> Iterator[str]:
    rates = {name: figures["rows_per_second"] for name, figures in results.downloads.items() if name != WORKER}
    rows = [
        [
            name,
            *(_spread(results.downloads[name][figure], digits) for figure, digits in _TRANSFER),
            _ratio(rate.over(rates[COPY_JSON if name.startswith((NDJSON, COPY_JSON)) else COPY_CSV])),
            _ratio(rate.over(rates[COPY_CSV])),
        ]
        for name, rate in rates.items()
    ]
    if rows:
        head = ["whole release", "s", "rows/s", "MB", "MB/s", "rows/s × COPY of the same", "× COPY as CSV"]
        yield from _table(head, rows)


_TRANSFER = (("seconds", 2), ("rows_per_second", 0), ("mb", 1), ("mb_per_second", 0))


def _further(results: Results) -> Iterator[str]:
    rows = [[what, _spread(series, digits), unit] for what, series, digits, unit in _lines(results)]
    if rows:
        yield from _table(["", "", ""], rows)


def _lines(results: Results) -> Iterator[tuple[str, Series, int, str]]:
    yield from _processes(results)
    for key, figures in results.walk.items():
        yield f"walk of a release by one client: {TITLES[key]}", figures["seconds"], 2, "s"
        yield f"walk of a release by one client: {TITLES[key]}", figures["pages_per_second"], 0, "pages/s"
    for name, seconds in results.imports.items():
        yield f"304,400 localities: {name}", seconds, 2, "s"
    for size, rate in results.sizes.items():
        yield f"random pages of {int(size):,} localities, page cache off", rate, 0, "requests/s"
    for name, series in results.publication.items():
        yield f"publication under load, two workers: {_PUBLICATION[name][0]}", series, 2, _PUBLICATION[name][1]


def _processes(results: Results) -> Iterator[tuple[str, Series, int, str]]:
    for key, figures in results.startup.items():
        yield f"start-up to the first page: {TITLES[key]}", figures["seconds"], 2, "s"
    for key, figures in results.startup.items():
        yield f"resident memory at the first page: {TITLES[key]}", figures["resident_mb"], 0, "MB"
    for key, figures in results.throughput.get("resident_mb", {}).items():
        yield f"resident memory after the load: {TITLES[key]}", figures["loaded"], 0, "MB"
    for state, memory in results.memory.items():
        yield f"resident memory of ours, {_MEMORY[state]}", memory, 0, "MB"
    if results.downloads:
        yield "growth of the worker while it gives downloads", results.downloads[WORKER]["growth_mb"], 1, "MB"


_MEMORY = {"cold": "page cache off, every page read", "held": "every page held"}
_PUBLICATION = {
    "before_p99_ms": ("p99 before", "ms"),
    "busy_p99_ms": ("p99 while one process does nothing but run", "ms"),
    "during_p99_ms": ("p99 during", "ms"),
    "importing_p99_ms": ("p99 until the release is published", "ms"),
    "published_p99_ms": ("p99 from then on, until both hold its pages, names and tiles", "ms"),
    "during_max_ms": ("slowest request during", "ms"),
    "failed": ("failed requests", ""),
    "seconds_until_seen": ("until both workers serve the release", "s"),
    "seconds_until_searched": ("until both workers search it by name", "s"),
}


def _goals(results: Results) -> Iterator[str]:
    rows = [
        [
            goal.title,
            f"{goal.bound} {goal.wanted:.3g}{goal.unit}",
            f"{goal.seen.median:,.2f}{goal.unit} ({goal.seen.low:,.2f} to {goal.seen.high:,.2f})",
            "yes" if goal.met else "**no**",
        ]
        for goal in judge(results)
    ]
    if rows:
        yield from _table(["what it must show", "bound", "seen", "met"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table with padded columns; all but the first are right-aligned."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return f"| {' | '.join(padded)} |"

    yield ""
    yield line(head)
    yield line(["-" * widths[0], *("-" * (max(width, 2) - 1) + ":" for width in widths[1:])])
    yield from (line(row) for row in rows)


def _spread(series: Series | None, digits: int = 0) -> str:
    if series is None:
        return ""
    percent = (series.high - series.low) / 2 / series.median * 100 if series.median else 0
    return f"{series.median:,.{digits}f} ±{percent:.0f} %"


def _ratio(series: Series) -> str:
    few = 10
    return f"{series.median:,.2f}" if series.median < few else f"{series.median:,.0f}"
