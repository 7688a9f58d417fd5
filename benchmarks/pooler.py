"""Measures the cost of PgBouncer: the same requests with and without it, five releases.

`python -m benchmarks.pooler [--rounds 5] [--seconds 5] [--pgbouncer /path/of/another/version]`, with `pgbouncer` and
`wrk` installed. One worker, 16 connections, transaction mode, the configuration of deploy/; the service has just
started in every round.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from random import Random

from benchmarks.contenders import COMMAND, OURS, OURS_COLD, Contender
from benchmarks.database import environment, read_rows, seeded_postgres, write_catalogue
from benchmarks.lab import await_pages_held
from benchmarks.processes import PATH, ROOT, Server, fetch, free_port, serving, unwind_at_sigterm
from benchmarks.series import Series
from benchmarks.wrk import drive
from localidades_api.database.embedded_postgres.data_directory import choose_account

_RELEASES = ("2021-01", "2022-01", "2023-01", "2024-01")  # in addition to the demo
_TARGETS = 2000  # of each kind
_READER = "localidades_reader"
_WORKER = ", by the worker's processor"


def measure(folder: Path, rounds: int, seconds: int, program: str) -> None:
    """Print requests a second of each kind, directly and through the pooler, and their ratio."""
    with seeded_postgres(folder / "postgres", None) as url:
        _publish_more(url, folder)
        kinds = _write_targets(url, folder)
        direct = url.replace("//postgres@", f"//{_READER}@")
        figures: dict[tuple[str, bool], list[float]] = defaultdict(list)
        with _pgbouncer(program, url, folder) as pooled:
            for number in range(rounds):
                for is_pooled in (False, True) if number % 2 else (True, False):
                    address = pooled if is_pooled else direct
                    for kind, rate in _rates(address, folder, kinds, seconds).items():
                        figures[kind, is_pooled].append(rate)
                        print(f"round {number + 1}  {'pooled' if is_pooled else 'direct'}  {kind:36} {rate:8,.0f}/s")
        for kind in dict.fromkeys(kind for kind, _ in figures):
            without, through = (Series.of(figures[kind, is_pooled]) for is_pooled in (False, True))
            ratio = through.over(without)
            print(
                f"{kind:36} direct {without.median:8,.0f}/s  pooled {through.median:8,.0f}/s"
                f"  ratio {ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
            )


def _publish_more(url: str, folder: Path) -> None:
    catalogue = write_catalogue(folder / "catalogue.csv")
    words = [["import", str(catalogue), "--keep-demo", "--release", name] for name in _RELEASES]
    for command in (*words, ["roles"]):
        with catalogue.open("ab") as file:
            file.write(b"\r\n")  # the same file would be refused
        subprocess.run([*COMMAND, *command], env=environment(url), check=True, capture_output=True)


def _write_targets(url: str, folder: Path) -> dict[str, Path]:
    chance = Random(1)  # noqa: S311  # the same in every run
    rows = read_rows(
        url,
        "SELECT id, latitud, longitud FROM localities JOIN current_release USING (release_id)"
        " WHERE latitud IS NOT NULL",
    )
    places = chance.sample(rows, _TARGETS)
    pages = [chance.randint(1, len(rows) // 50) for _ in places]
    kinds = {
        "records": [f"{PATH}{id_}/" for id_, _, _ in places],
        "pages": [f"{PATH}?page={page}" for page in pages],
        "nearest": [f"{PATH}nearest/?lat={latitude:.3f}&lon={longitude:.3f}" for _, latitude, longitude in places],
    }
    files = {}
    for kind, targets in kinds.items():
        files[kind] = folder / f"{kind}.txt"
        files[kind].write_text("".join(f"{target}\n" for target in targets))
    return files


def _rates(address: str, folder: Path, kinds: dict[str, Path], seconds: int) -> dict[str, float]:
    """Return requests a second, and requests per second of the worker's processor, which other load hardly changes."""
    rates = {}
    with _service(OURS_COLD, address, folder) as server:
        for kind, targets in kinds.items():
            drive(server.base, 2, targets=targets)  # opens sessions and reads their catalogues
            before = server.cpu_seconds()
            load = drive(server.base, seconds, targets=targets)
            rates[kind] = load.rate
            rates[f"{kind}{_WORKER}"] = load.requests / (server.cpu_seconds() - before)
    with _service(OURS, address, folder) as server:
        rates["pages, cached"] = drive(server.base, seconds, targets=kinds["pages"]).rate
    return rates


@contextmanager
def _service(contender: Contender, address: str, folder: Path) -> Iterator[Server]:
    port = free_port()
    command = [part.replace("{port}", str(port)) for part in contender.command]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCALIDADES_")}
    variables = {**kept, **contender.settings, "DATABASE_URL": address}
    with serving(command, port, variables, folder / f"service-{port}.log") as server:
        if contender is OURS:
            await_pages_held(server)
        while fetch(f"{server.base}{PATH}suggest/?q=a").status != HTTPStatus.OK:
            time.sleep(0.1)  # building the index of names keeps a processor busy
        yield server


@contextmanager
def _pgbouncer(program: str, url: str, folder: Path) -> Iterator[str]:
    """Run PgBouncer before the Postgres of this run, which asks for no password; yield the reader's address."""
    port, variables, account = free_port(), environment(url), choose_account(folder)
    (folder / "users.txt").write_text(f'"{_READER}" ""\n')
    shutil.copy(ROOT / "deploy" / "pgbouncer.ini", folder)
    (folder / "own.ini").write_text(
        f"%include {folder}/pgbouncer.ini\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\n"
        f"auth_file = {folder}/users.txt\n"
        f"[databases]\nlocalidades = host={variables['PGHOST']} port={variables['PGPORT']}\n"
    )
    process = subprocess.Popen(
        [program, "--quiet", str(folder / "own.ini")],
        cwd="/",
        user=account and account.uid,
        group=account and account.gid,
        extra_groups=[] if account else None,
    )
    try:
        yield f"postgresql://{_READER}@127.0.0.1:{port}/localidades?sslmode=disable&pgbouncer=true"
    finally:
        process.terminate()
        process.wait(10)


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    system = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") or "pgbouncer"
    parser.add_argument("--pgbouncer", default=system, help="the program, to compare versions")
    options = parser.parse_args()
    unwind_at_sigterm()
    with tempfile.TemporaryDirectory(prefix="localidades-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the servers' user reads it
        measure(folder, options.rounds, options.seconds, str(Path(options.pgbouncer).resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(_main())
