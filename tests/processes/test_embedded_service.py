"""`serve` with its embedded Postgres, which is restarted if it dies and stopped after its last user."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from localidades_api.database.embedded_postgres import run_embedded
from tests.support.catalogue import Place, write_catalogue
from tests.support.downloads import read_csv, stalled
from tests.support.postgres import execute
from tests.support.servers import find_processes, lend_folder, only_linux
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Live, ask, environment, run, serving

pytestmark = pytest.mark.tail

WORKERS = pytest.mark.parametrize("workers", ["1", "2"])
_keys = count(10_010_001)


@pytest.fixture(scope="module")
def data_dir(large_rows: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of a server with a catalogue large enough to interrupt its download."""
    file = write_catalogue(tmp_path_factory.mktemp("large") / "catun_localidad_2020-01.csv", large_rows)
    with lend_folder() as folder:
        data_dir = folder / "data"
        with serving("", LOCALIDADES_DATA_DIR=str(data_dir), LOCALIDADES_SEED=str(file)):
            pass
        assert not find_processes(data_dir)
        yield data_dir


@contextmanager
def serve(data_dir: Path, *arguments: str, **settings: str) -> Iterator[Live]:
    """Run `serve` on the folder; leave nothing running at the end."""
    with serving("", *arguments, LOCALIDADES_DATA_DIR=str(data_dir), **settings) as live:
        yield live
    assert not find_processes(data_dir)


def read(live: Live) -> int:
    """Return the status of a list that wasn't requested before, so it isn't cached."""
    return ask(live.base, f"{LOCALIDADES}?cvegeo={next(_keys)}").status


def await_that(is_so: Callable[[], bool], live: Live) -> None:
    """Wait until a condition holds for a server; fail with its log."""
    eventually(is_so, otherwise=live.output.read_text)


def kill(data_dir: Path, *roles: str) -> dict[str, int]:
    """Kill the processes of the server and return them."""
    before = find_processes(data_dir)
    for role in roles:
        os.kill(before[role], signal.SIGKILL)
    return before


def runs_anew(data_dir: Path, before: dict[str, int]) -> bool:
    now = find_processes(data_dir)
    return now.keys() == before.keys() and now.items().isdisjoint(before.items())


def test_embedded_database_gets_the_demo_by_default_and_refuses_an_unknown_revision() -> None:
    with lend_folder() as folder:
        env = environment(DATABASE_URL="", LOCALIDADES_DATA_DIR=str(folder / "data"))
        listed = run("releases", "--json", env=env)
        assert (listed.returncode, json.loads(listed.stdout)) == (0, {"releases": []}), listed.stderr  # nor the demo
        migrated = run("migrate", env=env)
        assert migrated.returncode == 0, migrated.stderr
        with serve(folder / "data") as live:
            assert ask(live.base, LOCALIDADES).all("catalogue-release") == ["demo"]
        with run_embedded(folder / "data", None) as url:
            execute(url, "UPDATE localidades_alembic_version SET version_num = '9999'")
        for command in (("releases",), ("serve", "--port", "0")):
            refused = run(*command, env=env)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert refused.stderr == (
                f"error: The database in {folder / 'data'} is at revision 9999, which this version of localidades-api"
                " doesn't know: install the version that migrated it, or set LOCALIDADES_DATA_DIR to another folder.\n"
            )


@only_linux
@WORKERS
def test_killed_embedded_server_is_restarted(data_dir: Path, workers: str) -> None:
    with serve(data_dir, "--workers", workers) as live:
        assert read(live) == 200
        for number, roles in enumerate([("postmaster",), ("watchdog",), ("watchdog", "postmaster")], 1):
            before = kill(data_dir, *roles)
            await_that(lambda: runs_anew(data_dir, before), live)  # noqa: B023  # it ends before the next iteration
            await_that(lambda: read(live) == 200, live)
            await_that(lambda: live.output.read_text().count("is running again") == number, live)  # noqa: B023  # as above
            assert live.output.read_text().count("The embedded Postgres has died") == number
        assert [read(live) for _ in range(20)] == [200] * 20


@only_linux
def test_shared_embedded_server_is_restarted_once(data_dir: Path) -> None:
    with ExitStack() as stack:
        lives = [stack.enter_context(serving("", LOCALIDADES_DATA_DIR=str(data_dir))) for _ in range(2)]
        before = kill(data_dir, "watchdog")
        for live in lives:
            await_that(lambda: runs_anew(data_dir, before) and read(live) == 200, live)  # noqa: B023  # as above
        after = find_processes(data_dir)
        lives[0].process.terminate()
        assert lives[0].process.wait(PATIENCE) == 0
        assert read(lives[1]) == 200
        assert find_processes(data_dir) == after
    assert not find_processes(data_dir)


@only_linux
def test_embedded_server_with_deleted_data_is_not_recreated(data_dir: Path) -> None:
    with lend_folder() as folder:
        copy = folder / "data"
        shutil.copytree(data_dir, copy, symlinks=True)
        for path in copy.rglob("*"):
            found = (data_dir / path.relative_to(copy)).lstat()
            os.chown(path, found.st_uid, found.st_gid, follow_symlinks=False)
        with serving("", LOCALIDADES_DATA_DIR=str(copy)) as live:
            assert ask(live.base, LOCALIDADES).status == 200
            (cluster,) = copy.glob("cluster-*")
            cluster.rename(copy / "aside")
            kill(copy, "watchdog", "postmaster")
            await_that(lambda: f"{cluster} is missing" in live.output.read_text(), live)
            assert ask(live.base, LOCALIDADES).status == 200, "it is held"
            (copy / "aside").rename(cluster)
            await_that(lambda: read(live) == 200, live)
        assert not find_processes(copy)


@WORKERS
def test_download_completes_when_service_and_watchdog_stop_together(
    data_dir: Path, large_rows: list[Place], workers: str
) -> None:
    with serve(data_dir, "--workers", workers) as live, stalled(live.base, "format=csv") as download:
        watchdog = find_processes(data_dir)["watchdog"]
        os.kill(watchdog, signal.SIGTERM)
        live.process.terminate()
        time.sleep(1.5)  # a watchdog that doesn't wait would have stopped itself and the server by now
        assert live.process.poll() is None
        assert len(read_csv(download.read_on())) == len(large_rows)
        assert live.process.wait(PATIENCE) == 0
        assert not find_processes(data_dir)
        assert re.search("Traceback|died", live.output.read_text()) is None
