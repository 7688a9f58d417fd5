"""Compares the nginx of `deploy/` in front of a running service with the service alone and nginx with a static file.

`python -m benchmarks.front URL`. First a thousand clients request an uncached page at the same time, as programs and as
browsers in two languages. Then wrk loads the three in alternating rounds. Each nginx has one worker.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from benchmarks.lab import run_command
from benchmarks.nginx import TEMPORARY_PATHS, running_nginx, serving_page
from benchmarks.paced import read_answer
from benchmarks.processes import PATH, ROOT, BenchmarkError, Server, fetch, free_port
from benchmarks.series import Series
from benchmarks.wrk import drive

_CLIENTS = 1000
_HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_WISHES = (
    {"Accept": "*/*"},
    {"Accept": "application/json, text/plain, */*"},
    {"Accept": _HTML, "Accept-Language": "en-US,en;q=0.5"},
    {"Accept": _HTML, "Accept-Language": "es-MX,es;q=0.9,en;q=0.8"},
)
_REPRESENTATIONS = 3
_STATIC, _FRONT, _SERVICE = "nginx, a static file", "the front, warm", "the service"
_COLD = "page=2"
_LOGGED = "log_format upstream '$args $upstream_status'; access_log upstream.log upstream;\n"


@dataclass(frozen=True, slots=True)
class _Run:
    """One server in one round."""

    rate: float  # requests a second
    cpu_us: float  # processor time of the worker for each request, in microseconds; 0 if it can't be measured


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.front", description=__doc__)
    parser.add_argument("url", help="the service's root, such as http://127.0.0.1:8000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    arguments = parser.parse_args()
    run_command(lambda: _measure_in_a_folder(arguments))


def _measure_in_a_folder(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="localidades-front-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # nginx runs as another user
        _measure(arguments.url.rstrip("/"), folder, arguments.rounds, arguments.seconds)


def _measure(service: str, folder: Path, rounds: int, seconds: int) -> None:
    with _front(service, folder / "crowd", _LOGGED) as server:
        _meet_crowd(server, folder / "crowd" / "upstream.log")
    (folder / "page.json").write_bytes(fetch(service + PATH).body)
    with serving_page(folder) as static, _front(service, folder / "load", "access_log off;\n") as front:
        servers = {_STATIC: static, _FRONT: front, _SERVICE: None}
        runs: dict[str, list[_Run]] = {name: [] for name in servers}
        for number in range(rounds):
            for name in [*servers][number % 3 :] + [*servers][: number % 3]:
                runs[name].append(_load(servers[name], service, seconds))
    rates = {name: Series.of([run.rate for run in series]) for name, series in runs.items()}
    for name, rate in rates.items():
        cpu = Series.of([run.cpu_us for run in runs[name]]).median
        print(f"{name:22} {rate.median:8,.0f}/s ({rate.low:,.0f} to {rate.high:,.0f}), {cpu:.1f} µs of CPU each")
    ratio = rates[_FRONT].over(rates[_STATIC])
    print(f"the front / static file: {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})")


def _load(server: Server | None, service: str, seconds: int) -> _Run:
    """Load a server of this benchmark, or the service if `server` is None."""
    if server is None:
        return _Run(drive(service + PATH, seconds).rate, 0)
    before = server.cpu_seconds()
    load = drive(server.base + PATH, seconds)
    return _Run(load.rate, (server.cpu_seconds() - before) / load.requests * 1e6)


@contextmanager
def _front(service: str, folder: Path, log: str) -> Iterator[Server]:
    """Run the shipped nginx before the service."""
    folder.mkdir(mode=0o755)
    port = free_port()
    own = {
        "/var/cache/nginx/localidades": str(folder / "cache"),
        "worker_processes auto": "worker_processes 1",
        "127.0.0.1:8000": urlsplit(service).netloc,
        "upstream localidades": f"{log}{TEMPORARY_PATHS}upstream localidades",
        "listen 80;": f"listen 127.0.0.1:{port} backlog={_CLIENTS * 2};",
        "listen [::]:80;": "",
    }
    for shipped in (ROOT / "deploy" / "nginx").glob("*.conf"):
        text = shipped.read_text()
        for one, other in own.items():
            text = text.replace(one, other)
        (folder / shipped.name).write_text(text)
    started = ["-g", f"daemon off; pid {folder / 'pid'};"]
    with running_nginx(folder, folder / "nginx.conf", port, *started) as server:
        yield server


def _meet_crowd(server: Server, log: Path) -> None:
    """Have a thousand clients request an uncached page at once, and count the requests that reach the service."""
    answers = uvloop.run(_crowd(server))
    if any(status != HTTPStatus.OK for status, _ in answers):
        raise BenchmarkError("The crowd was not answered.")
    waits = sorted(seconds for _, seconds in answers)
    lines = log.read_text().splitlines()
    passed_on = sum(line.startswith(_COLD) and not line.endswith(" -") for line in lines)
    print(
        f"{_CLIENTS} clients, {_REPRESENTATIONS} representations of a cold page: {passed_on} requests"
        f" reached the service; p50 {waits[_CLIENTS // 2] * 1000:.0f} ms, last {waits[-1] * 1000:.0f} ms"
    )


async def _crowd(server: Server) -> list[tuple[int, float]]:
    address = urlsplit(server.base)
    connections = [await asyncio.open_connection(address.hostname, address.port) for _ in range(_CLIENTS)]
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def ask(number: int, wish: Mapping[str, str]) -> tuple[int, float]:
        reader, writer = connections[number]
        head = "".join(f"{name}: {value}\r\n" for name, value in wish.items())
        writer.write(f"GET {PATH}?{_COLD} HTTP/1.1\r\nHost: {address.netloc}\r\n{head}\r\n".encode())
        status, _, _ = await read_answer(reader)
        return status, loop.time() - began

    answers = await asyncio.gather(*(ask(number, _WISHES[number % len(_WISHES)]) for number in range(_CLIENTS)))
    for _, writer in connections:
        writer.close()
    return answers


if __name__ == "__main__":
    main()
