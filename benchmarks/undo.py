"""Goes back and forth between two releases under load; measures how soon clients see it, and counts wrong answers.

`python -m benchmarks.undo EARLIER.zip LATER.zip`. Two workers under a steady 1,000 requests a second, while
`releases publish` names one release and the other in turn. Every answer is compared with the page of the release that
its header names, which was read before the load; an answer with another body, ETag or Link is mixed. New connections
are opened meanwhile as in `publication`.
"""

import argparse
import asyncio
import gc
import http.client
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.contenders import COMMAND, OURS
from benchmarks.database import environment, read_rows, read_value
from benchmarks.lab import Lab, Options, open_lab, run_command
from benchmarks.paced import Sample, load_steadily, p99_ms
from benchmarks.processes import PATH, ROOT, BenchmarkError, Server
from benchmarks.publication import SUGGESTIONS, Watch, await_new, keep_asking
from benchmarks.series import Series

_WORKERS = 2
_PATIENCE = 180.0  # seconds
_TOLD = ("etag", "link", "last-modified")

_Known = Mapping[tuple[str, int], int]  # by release and page


@dataclass(slots=True)
class _Judge:
    """Answers on kept connections: whether each is of one release, and when the last was not of `release`."""

    known: _Known
    release: str = ""
    last_old: float = 0.0  # Unix time
    mixed: int = 0

    def look(self, page: int, asked: float, headers: Mapping[str, str], body: bytes) -> bool:
        """Record an answer; return whether it is right."""
        release = headers.get("catalogue-release", "")
        if release != self.release:
            self.last_old = max(self.last_old, asked)
        is_right = self.known.get((release, page)) == _digest(headers, body)
        self.mixed += not is_right
        return is_right


def main() -> None:
    """Go back and forth, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.undo", description=__doc__)
    parser.add_argument("earlier", type=Path, help="a file of INEGI's")
    parser.add_argument("later", type=Path, help="another one")
    parser.add_argument("--rounds", type=int, default=5, help="of going back and forth")
    arguments = parser.parse_args()
    run_command(lambda: _measure(arguments))


def _measure(arguments: argparse.Namespace) -> None:
    with open_lab(Options(arguments.rounds, 0), arguments.earlier) as lab:
        _run(lab, "import", str(arguments.later.resolve()))
        names = [str(name) for (name,) in read_rows(lab.url, "SELECT name FROM releases ORDER BY id")]
        with lab.start(OURS, lab.url, "--workers", str(_WORKERS), settings={"TMPDIR": str(lab.folder)}) as server:
            server.wait_for("The tile cache holds", _WORKERS, _PATIENCE)
            gc.disable()  # as in `publication`
            judge = _Judge(_learn(server, names))
            figures = uvloop.run(_go_back_and_forth(lab, server.base, names, judge))
    for name, values in figures.items():
        series = Series.of(values)
        print(f"{name:44} {series.median:8,.2f} ({series.low:,.2f} to {series.high:,.2f})")


def _learn(server: Server, names: list[str]) -> dict[tuple[str, int], int]:
    """Read every page of each release by an address that names it."""
    known = {}
    with closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=60)) as connection:
        for name in names:
            page = 1
            while True:
                connection.request("GET", f"{PATH}?page={page}&format=json&release={name}")
                answer = connection.getresponse()
                body = answer.read()
                if answer.status == HTTPStatus.NOT_FOUND:
                    break
                known[name, page] = _digest({key.lower(): value for key, value in answer.getheaders()}, body)
                page += 1
    return known


def _digest(headers: Mapping[str, str], body: bytes) -> int:
    return hash((body, *(headers.get(name) for name in _TOLD)))


async def _go_back_and_forth(lab: Lab, base: str, names: list[str], judge: _Judge) -> dict[str, list[float]]:
    pages = min(sum(name == release for release, _ in judge.known) for name in names)
    figures: dict[str, list[float]] = defaultdict(list)
    for number in range(2 * lab.options.rounds):
        name = names[number % 2]  # the later one is current
        # The first time, no worker holds pages, tiles or names of the earlier release.
        direction = "forth" if number % 2 else "back again" if number else "back, the first time"
        judge.release, judge.mixed, judge.last_old = name, 0, 0.0
        samples, listed, searched = await _publish_under_load(lab, base, pages, judge)
        published = await asyncio.to_thread(_published_at, lab.url)
        seen = {
            "seconds until seen": max(0.0, listed.last_old - published, judge.last_old - published),
            "seconds until searched": max(0.0, searched.last_old - published),
            "p99 in ms": p99_ms(samples),
        }
        wrong = {
            "requests": len(samples),
            "failed for pages": listed.failed + sum(not sample.ok for sample in samples) - judge.mixed,
            "failed for suggestions": searched.failed,
            "mixed": judge.mixed,
        }
        for figure, value in (seen | wrong).items():
            figures[f"{direction}: {figure}"].append(value)
        print(
            f"  {direction}:",
            *(f"{figure} {value:,.2f}" for figure, value in (seen | wrong).items()),
            dict(searched.faults),
            flush=True,
        )
    return figures


async def _publish_under_load(lab: Lab, base: str, pages: int, judge: _Judge) -> tuple[list[Sample], Watch, Watch]:
    """Publish one release while pages are requested; wait until no answer is of the other."""
    ended, listed, searched = asyncio.Event(), Watch(judge.release), Watch(judge.release)
    async with asyncio.TaskGroup() as tasks:
        load = tasks.create_task(load_steadily(base, pages, ended, judge.look))
        tasks.create_task(keep_asking(base, PATH, listed, ended))
        tasks.create_task(keep_asking(base, SUGGESTIONS, searched, ended))
        await asyncio.sleep(1)
        await asyncio.to_thread(partial(_run, lab, "releases", "publish", judge.release))
        await await_new(listed, searched)
        ended.set()
    if not listed.new or not searched.new:
        raise BenchmarkError("A publication was not seen.")
    return load.result(), listed, searched


def _run(lab: Lab, *arguments: str) -> None:
    command = [*COMMAND, *arguments]
    done = subprocess.run(command, env=environment(lab.url), cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(arguments)} has failed:\n{done.stderr[-2000:]}")


def _published_at(url: str) -> float:
    statement = "SELECT extract(epoch FROM max(published_at))::float FROM publications"
    return float(str(read_value(url, statement)))


if __name__ == "__main__":
    main()
