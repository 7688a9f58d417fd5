"""Compares the HTML page of the list in a browser with Django REST Framework's browsable page and Datasette's.

`python -m benchmarks.pages [--catalogue RELEASE.zip]`, with the packages of `make test`, the peers of `make bench`,
nginx and Debian's chromium-headless-shell. All serve the same rows, 50 a page. It measures first contentful paint,
bytes as sent and the number of requests: cold, in a new browser, and warm, in another tab of it. Figures are medians
of alternating rounds.
"""

import argparse
import asyncio
import os
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext

from benchmarks.contenders import BY_KEY, DRF, OURS, PEERS_BIN
from benchmarks.database import read_rows
from benchmarks.lab import Lab, Options, await_pages_held, open_lab, run_command
from benchmarks.nginx import running_nginx
from benchmarks.processes import PATH, ROOT, BenchmarkError, free_port, serving
from benchmarks.series import Series
from benchmarks.throughput import prepare
from tests.support.browser import launched

_COLD, _WARM = "cold", "warm"
_OURS, _BROWSABLE, _DATASETTE = "localidades-api", "Django REST Framework, browsable", "Datasette"
_TABLE = "/localidades/localities?_sort=clave"
_SEEN = """async () => {
  const paint = await new Promise((resolve) => new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
  }).observe({ type: "paint", buffered: true }));
  const entries = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
  const sent = entries.filter((entry) => entry.transferSize);
  return [paint, sent.reduce((sum, entry) => sum + entry.transferSize, 0), sent.length];
}"""


class _Visit(NamedTuple):
    """Figures of one visit of a page."""

    paint_ms: float
    sent: float  # bytes
    requests: float


def main() -> None:
    """Visit the pages, and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__)
    parser.add_argument("--catalogue", type=Path, metavar="FILE", help="a file of INEGI's (default: demo)")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    run_command(lambda: _measure(arguments))


def _measure(arguments: argparse.Namespace) -> None:
    if not (PEERS_BIN / "datasette").exists():
        raise BenchmarkError("The peers are not installed: run `make bench`, which installs them first.")
    with open_lab(Options(arguments.rounds, 0), arguments.catalogue) as lab, ExitStack() as stack:
        url = prepare(lab)
        ours = stack.enter_context(lab.start(OURS, url))
        await_pages_held(ours)
        addresses = {
            _OURS: f"{ours.base}{PATH}?format=api",
            _BROWSABLE: f"{stack.enter_context(_browsable(lab, url))}{PATH}?format=api",
            _DATASETTE: f"{stack.enter_context(_datasette(lab, url))}{_TABLE}",
        }
        visits = asyncio.run(_visit_all(addresses, lab.options.rounds))
    for (name, state), seen in visits.items():
        paint, sent, requests = (Series.of(values) for values in zip(*seen, strict=True))
        print(
            f"{name:34} {state}: first contentful paint {paint.median:5.0f} ms ({paint.low:.0f} to {paint.high:.0f}),"
            f" {sent.median:9,.0f} bytes in {requests.median:.0f} requests"
        )


@contextmanager
def _browsable(lab: Lab, url: str) -> Iterator[str]:
    """Run Django REST Framework behind nginx, which serves its static files; yield the address."""
    folder, port = lab.folder / "browsable", free_port()
    (installed,) = PEERS_BIN.parent.glob("lib/*/site-packages/rest_framework/static")
    shutil.copytree(installed, folder / "static")
    folder.chmod(0o755)
    settings = {"DJANGO_SETTINGS_MODULE": "benchmarks.peers.drf.browsable"}
    with lab.start(BY_KEY[DRF], url, settings=settings) as origin:
        conf = folder / "browsable.conf"
        text = (ROOT / "benchmarks" / "peers" / "browsable.conf").read_text().replace("{port}", str(port))
        conf.write_text(text.replace("{origin}", str(urlsplit(origin.base).port)))
        with running_nginx(folder, conf, port) as server:
            yield server.base


@contextmanager
def _datasette(lab: Lab, url: str) -> Iterator[str]:
    """Run Datasette on a copy of the rows as an immutable file; yield the address."""
    file, port = lab.folder / "localidades.db", free_port()
    with sqlite3.connect(file) as database:
        database.execute(
            "CREATE TABLE localities (id INTEGER PRIMARY KEY, municipio_id INTEGER, clave TEXT, nombre TEXT)"
        )
        rows = read_rows(
            url, "SELECT id, municipio_id, clave, nombre FROM localities JOIN current_release USING (release_id)"
        )
        database.executemany("INSERT INTO localities VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE INDEX by_clave ON localities (clave, id)")
    database.close()
    options = ["--immutable", str(file), "--port", str(port), "--setting", "default_page_size", "50"]
    command = [str(PEERS_BIN / "datasette"), "serve", *options]
    with serving(command, port, os.environ, lab.folder / "datasette.log", _TABLE) as server:
        yield server.base


async def _visit_all(addresses: Mapping[str, str], rounds: int) -> dict[tuple[str, str], list[_Visit]]:
    visits: dict[tuple[str, str], list[_Visit]] = defaultdict(list)
    async with launched() as browser:
        for address in addresses.values():  # so that work that a server does only once is not measured
            await _visit_twice(browser, address)
        for number in range(rounds):
            for name in [*addresses][number % len(addresses) :] + [*addresses][: number % len(addresses)]:
                for state, visit in (await _visit_twice(browser, addresses[name])).items():
                    visits[name, state].append(visit)
    return visits


async def _visit_twice(browser: Browser, address: str) -> dict[str, _Visit]:
    context = await browser.new_context(locale="en-US", viewport={"width": 1280, "height": 800})
    try:
        return {state: await _visit(context, address) for state in (_COLD, _WARM)}
    finally:
        await context.close()


async def _visit(context: BrowserContext, address: str) -> _Visit:
    page = await context.new_page()
    answer = await page.goto(address, wait_until="networkidle")
    if answer is None or not answer.ok or not await page.locator("text=0001").count():
        raise BenchmarkError(f"{address} does not show the list.")
    return _Visit(*await page.evaluate(_SEEN))


if __name__ == "__main__":
    main()
