"""A mirror of a catalogue: what it takes to write, how fast nginx serves it, and that it answers as the service.

`python -m benchmarks.mirror RELEASE.zip [--all]`, with `nginx` and `wrk` installed. One worker each, 16 connections,
alternating rounds: files of the mirror from an nginx that only serves files, and from one with the mirror's own
configuration by their path, by `?page=N` and by key. Then bodies and headers are compared with the running service: of
some addresses of each kind, or of all.
"""

import argparse
import http.client
import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from benchmarks.contenders import COMMAND, OURS
from benchmarks.database import environment
from benchmarks.lab import Lab, Options, await_pages_held, open_lab, run_command
from benchmarks.nginx import TEMPORARY_PATHS, running_nginx
from benchmarks.processes import PATH, Answer, BenchmarkError, Server, free_port
from benchmarks.series import Series
from benchmarks.wrk import drive

_TARGETS = 2000  # of each kind, the same for everybody
_COMPARED = 500  # addresses of each kind, unless all are
_SEED = 27
_PAGES = "localidades/all/"
_PLAIN_PAGE, _PLAIN_RECORD = "a page, plain file", "a record, plain file"
_BASELINES = {
    _PLAIN_PAGE: _PLAIN_PAGE,
    "a page by its path": _PLAIN_PAGE,
    "?page=N": _PLAIN_PAGE,
    _PLAIN_RECORD: _PLAIN_RECORD,
    "a record by its key": _PLAIN_RECORD,
}
_ONE_OF_MANY = re.compile(r"(?<=estado-)\d+|(?<=localidades/)\d+")
# Of the connection, or of nginx itself.
_CONNECTION = {"date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"}


class _Mirror(NamedTuple):
    """A mirror's folder, and the one of its release in it."""

    folder: Path
    release: Path

    def entries(self) -> Iterator[dict[str, str]]:
        """Yield the lines of the manifest: the path of each file, and its target if it is no locality's."""
        for line in (self.release / "manifest.ndjson").read_bytes().splitlines():
            yield json.loads(line)


@dataclass(frozen=True, slots=True)
class _Run:
    """One kind of request in one round."""

    rate: float  # requests a second
    cpu_us: float  # processor time of the worker for each request, in microseconds


def main() -> None:
    """Write, measure and compare, and print what is seen."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mirror", description=__doc__)
    parser.add_argument("catalogue", type=Path, help="a file of INEGI's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="compare every address")
    arguments = parser.parse_args()
    run_command(lambda: _measure(arguments))


def _measure(arguments: argparse.Namespace) -> None:
    with open_lab(Options(arguments.rounds, arguments.seconds), arguments.catalogue) as lab:
        mirror = _write(lab)
        with _served(mirror, lab.folder / "nginx") as served:
            _load_all(lab, mirror, served)
            with lab.start(OURS, lab.url) as live:
                await_pages_held(live)
                _compare_all(served, live, _addresses(mirror, None if arguments.all else _COMPARED))


def _write(lab: Lab) -> _Mirror:
    """Run the command, and print what it took and what it wrote."""
    folder = lab.folder / "mirror"
    began = time.perf_counter()
    subprocess.run([*COMMAND, "mirror", str(folder)], env=environment(lab.url), check=True, capture_output=True)
    seconds = time.perf_counter() - began
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    size, taken = sum(one.st_size for one in found) / 1e6, sum(one.st_blocks for one in found) * 512 / 1e9
    print(f"written in {seconds:.1f} s: {len(found):,} files, {size:,.0f} MB, {taken:.2f} GB on disk", flush=True)
    pointer = json.loads((folder / "mirror.json").read_bytes())
    return _Mirror(folder, folder / pointer["releases"][pointer["current"]])


# -- Load


def _load_all(lab: Lab, mirror: _Mirror, served: Server) -> None:
    """Load each kind in alternating rounds, and print medians and ratios to a plain file."""
    targets = _write_targets(lab, mirror)
    runs: dict[str, list[_Run]] = {kind: [] for kind in targets}
    with _plain(mirror, lab.folder / "plain") as plain:
        for number in range(lab.options.rounds):
            first = number % len(targets)
            for kind in [*targets][first:] + [*targets][:first]:
                server = plain if kind == _BASELINES[kind] else served
                runs[kind].append(_load(server, lab.options.seconds, targets[kind]))
    rates = {kind: Series.of([run.rate for run in series]) for kind, series in runs.items()}
    times = {kind: Series.of([run.cpu_us for run in series]) for kind, series in runs.items()}
    for kind, rate in rates.items():
        ratio, cpu = rate.over(rates[_BASELINES[kind]]), times[kind].over(times[_BASELINES[kind]])
        print(
            f"{kind:22} {rate.median:8,.0f}/s ({rate.low:,.0f} to {rate.high:,.0f}), {ratio.median:.2f} times a plain"
            f" file's; {times[kind].median:.1f} µs of CPU each, {cpu.median:.2f} times its"
            f" ({cpu.low:.2f} to {cpu.high:.2f})",
            flush=True,
        )


def _load(server: Server, seconds: int, targets: Path) -> _Run:
    before = server.cpu_seconds()
    load = drive(server.base, seconds, targets=targets)
    return _Run(load.rate, (server.cpu_seconds() - before) / load.requests * 1e6)


def _write_targets(lab: Lab, mirror: _Mirror) -> dict[str, Path]:
    """Write the same random pages and records as paths of files and as addresses of the service."""
    chance = Random(_SEED)  # noqa: S311  # the same in every run
    files = [entry["path"] for entry in mirror.entries()]
    pages = [path for path in files if re.fullmatch(rf"{_PAGES}\d+\.json", path)]
    records = [path for path in files if re.fullmatch(r"localidades/\d+/\d+\.json", path)]
    pages, records = (chance.sample(some, min(_TARGETS, len(some))) for some in (pages, records))
    as_files = [[f"/{mirror.release.name}/{path}" for path in some] for some in (pages, records)]
    kinds = dict(
        zip(
            _BASELINES,
            (
                as_files[0],
                as_files[0],
                [f"{PATH}?page={Path(path).stem}" for path in pages],
                as_files[1],
                [f"{PATH}{Path(path).stem}/" for path in records],
            ),
            strict=True,
        )
    )
    written = {}
    for number, (kind, targets) in enumerate(kinds.items()):
        written[kind] = lab.folder / f"targets-{number}.txt"
        written[kind].write_text("".join(f"{target}\n" for target in targets))
    return written


@contextmanager
def _served(mirror: _Mirror, folder: Path) -> Iterator[Server]:
    """Run nginx with the mirror's own configuration; only the operator's files are changed."""
    folder.mkdir(mode=0o755)
    port = free_port()
    server = (mirror.folder / "server.conf").read_text()
    (folder / "server.conf").write_text(re.sub(r"listen .*;", f"listen 127.0.0.1:{port};", server))
    conf = _configure(mirror, folder, f"include {mirror.folder}/mirror.conf;")
    with running_nginx(folder, conf, port, "-g", "daemon off;") as running:
        yield running


@contextmanager
def _plain(mirror: _Mirror, folder: Path) -> Iterator[Server]:
    """Run nginx with the same settings, for the same files, and none of the mirror's rules."""
    folder.mkdir(mode=0o755)
    port = free_port()
    server = f"server {{ listen 127.0.0.1:{port}; root {mirror.folder}; default_type application/json; }}"
    conf = _configure(mirror, folder, server)
    probe = f"/{mirror.release.name}/{_PAGES}1.json"
    with running_nginx(folder, conf, port, "-g", "daemon off;", probe=probe) as running:
        yield running


def _configure(mirror: _Mirror, folder: Path, server: str) -> Path:
    text = (mirror.folder / "nginx.conf").read_text()
    for ours, theirs in (
        ("worker_processes auto;", "worker_processes 1;"),
        ("http {", f"http {{\n{TEMPORARY_PATHS}"),
        ("include mirror.conf;", server),
    ):
        if text.count(ours) != 1:
            raise BenchmarkError(f"The mirror's nginx.conf has no {ours!r}.")
        text = text.replace(ours, theirs)
    conf = folder / "nginx.conf"
    conf.write_text(re.sub(r"^pid .*;$", "pid nginx.pid;", text, flags=re.MULTILINE))
    return conf


# -- The same answers


def _addresses(mirror: _Mirror, limit: int | None) -> dict[str, list[str]]:
    """Return addresses by kind, of each at most `limit`: as they are pinned to the release, and as people ask."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for entry in mirror.entries():
        folder, _, file = entry["path"].rpartition("/")
        kind = _ONE_OF_MANY.sub("N", folder) or "the index"
        if file.endswith((".br", ".zst", ".gz")):  # a copy
            continue
        if "target" in entry:
            kinds[f"{kind}, pinned"].append(entry["target"])
            kinds[kind].append(_unpinned(entry["target"]))
        else:
            kinds[kind].append(f"{PATH}{Path(file).stem}/")
    chance = Random(_SEED)  # noqa: S311  # the same in every run
    return {
        kind: targets if limit is None or len(targets) <= limit else chance.sample(targets, limit)
        for kind, targets in kinds.items()
    }


def _unpinned(target: str) -> str:
    parts = urlsplit(target)
    kept = [pair for pair in parse_qsl(parts.query) if pair[0] != "release" and pair != ("format", "json")]
    return f"{parts.path}?{urlencode(kept)}".rstrip("?")


def _compare_all(served: Server, live: Server, kinds: dict[str, list[str]]) -> None:
    """Ask both for each address, and print by kind how many answers differ, and in how many bytes."""
    with ExitStack() as stack:
        connections = [
            stack.enter_context(closing(http.client.HTTPConnection(urlsplit(server.base).netloc, timeout=120)))
            for server in (served, live)
        ]
        for kind, targets in kinds.items():
            heads = size = 0
            statuses: Counter[int] = Counter()
            for target in targets:
                ours, theirs = (_ask(connection, target) for connection in connections)
                statuses[ours.status] += 1
                size += _count_different(ours.body, theirs.body)
                if (ours.status, _told(ours)) != (theirs.status, _told(theirs)):
                    heads += 1
                    print(f"  {target}: {ours.status} {_told(ours)}, not {theirs.status} {_told(theirs)}")
            answered = ", ".join(f"{count:,} × {status}" for status, count in statuses.items())
            print(f"{kind:30} {answered:>20}: {heads} heads and {size} bytes differ", flush=True)


def _ask(connection: http.client.HTTPConnection, target: str) -> Answer:
    connection.request("GET", target)
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read())


def _told(answer: Answer) -> dict[str, str]:
    """Return the headers that the contract speaks of; only the mirror chooses by Accept-Encoding."""
    told = {
        name.lower(): ", ".join(answer.headers.get_all(name, []))
        for name in answer.headers
        if name.lower() not in _CONNECTION
    }
    return told | {"vary": told.get("vary", "").replace(", Accept-Encoding", "")}


def _count_different(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Count the bytes that are not the same, or missing."""
    if ours == theirs:
        return 0
    return sum(one != other for one, other in zip(ours, theirs, strict=False)) + abs(len(ours) - len(theirs))


if __name__ == "__main__":
    main()
