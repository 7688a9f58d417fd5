import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from urllib.parse import parse_qs, urlsplit

import pytest

from localidades_api.database.embedded_postgres import binaries, find_binaries, provide_database, run_embedded
from localidades_api.database.embedded_postgres.binaries import DISK_FULL
from localidades_api.errors import EmbeddedPostgresError
from localidades_api.settings import Settings
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.downloads import read_csv, stalled
from tests.support.postgres import execute
from tests.support.servers import DEBIAN_15, IS_ROOT, find_processes, lend_folder
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Live, ask, environment, run, serving, start_command

pytestmark = pytest.mark.tail

# A process that uses the server: it prints the URL and stays until its input ends.
USER = """
import signal, sys
from pathlib import Path
from localidades_api.database.embedded_postgres import run_embedded

def leave(number, frame):
    raise SystemExit(0)

signal.signal(signal.SIGTERM, leave)
with run_embedded(Path(sys.argv[1]), None) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root changes to another user")
User = Popen[str]
StartUser = Callable[[Path], User]


@pytest.fixture
def home() -> Iterator[Path]:
    with lend_folder() as folder:
        yield folder


@pytest.fixture
def data_dir(home: Path) -> Path:
    """Return the folder of a server that was never started."""
    return home / "data"


@pytest.fixture(scope="module")
def used_dir() -> Iterator[Path]:
    """Yield the folder of a server that has run before; the module shares it, because creating one takes a second."""
    with lend_folder() as folder:
        with run_embedded(folder / "used", None):
            pass
        yield folder / "used"


@pytest.fixture
def start_user() -> Iterator[StartUser]:
    """Start processes that use a server; end them and their servers with the test."""
    users: list[User] = []
    folders: list[Path] = []

    def start(data_dir: Path) -> User:
        words = [sys.executable, "-c", USER, str(data_dir)]
        user = Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True)
        users.append(user)
        folders.append(data_dir)
        return user

    yield start
    for user in users:
        user.kill()
        user.communicate()
    eventually(lambda: not any(map(find_processes, folders)))


def read_url(user: User) -> str:
    assert user.stdout is not None
    url = user.stdout.readline().strip()
    assert url, user.communicate()[1]
    return url


def query(url: str, statement: str) -> object:
    return execute(url, statement)[0][0][0]


def leave_mark(url: str) -> str:
    """Write a row and return the statement that finds it."""
    name = f"mark_{time.time_ns()}"
    execute(url, f"CREATE TABLE {name} ()")
    return f"SELECT to_regclass('{name}') IS NOT NULL"


def find_socket_dir(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def refusal(data_dir: Path, binaries: Path | None = None) -> str:
    with pytest.raises(EmbeddedPostgresError) as caught, run_embedded(data_dir, binaries):
        pass
    return str(caught.value)


def test_server_starts_and_stops_with_its_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data_dir = home / 'two "words" 100% & más'
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for name, value in (("PGPORT", "1"), ("PGDATA", "/nowhere"), ("PGHOST", "nowhere.invalid")):
        monkeypatch.setenv(name, value)
    with provide_database(Settings(data_dir=data_dir)) as url:
        assert query(url, "SELECT current_database()") == "localidades"
        assert query(url, "SELECT 'ñandú' ~ '^\\w+$' AND upper('ñ') = 'Ñ'") is True
        assert query(url, "SELECT datcollate || datctype FROM pg_database LIMIT 1") == "C.UTF-8" * 2
        assert query(url, "SHOW listen_addresses") == ""
        assert query(url, "SHOW fsync") == "on"
        assert find_socket_dir(url).stat().st_mode & 0o777 == 0o700
        assert find_processes(data_dir).keys() == {"watchdog", "postmaster"}
    assert not find_processes(data_dir)
    assert not (data_dir / "run").exists()
    assert data_dir.stat().st_mode & 0o777 == (0o755 if IS_ROOT else 0o700)
    assert (data_dir / "postgres.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("end", ["ends", "is killed", "is interrupted"])
def test_server_stays_while_it_has_a_user(used_dir: Path, start_user: StartUser, end: str) -> None:
    first = start_user(used_dir)
    url = read_url(first)
    with run_embedded(used_dir, None) as second_url:
        assert second_url == url
        before = find_processes(used_dir)
        if end == "is killed":
            first.kill()
        elif end == "is interrupted":
            os.killpg(first.pid, signal.SIGINT)  # as a terminal does
        first.communicate(timeout=PATIENCE)  # closes its input and waits until no process holds its output
        time.sleep(0.1)
        assert query(url, "SELECT 1") == 1
        assert find_processes(used_dir) == before
    assert not find_processes(used_dir)


@pytest.mark.parametrize(
    ("role", "number"),
    [
        *(("user", number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)),
        ("watchdog", signal.SIGKILL),
        ("postmaster", signal.SIGKILL),
        ("postmaster", signal.SIGTERM),
    ],
)
def test_next_user_gets_a_new_server_with_the_same_data(
    used_dir: Path, start_user: StartUser, role: str, number: signal.Signals
) -> None:
    user = start_user(used_dir)
    mark = leave_mark(read_url(user))
    before = find_processes(used_dir)
    if role == "user":
        user.send_signal(number)
        user.communicate(timeout=PATIENCE)
        if number == signal.SIGKILL:
            eventually(lambda: not find_processes(used_dir))
        assert not find_processes(used_dir)
    else:
        os.kill(before[role], number)
        eventually(lambda: role not in find_processes(used_dir))
    with run_embedded(used_dir, None) as url:
        eventually(lambda: before.items().isdisjoint(find_processes(used_dir).items()))
        assert query(url, mark) is True


def test_terminated_watchdog_waits_for_its_users_for_a_while(used_dir: Path) -> None:
    with run_embedded(used_dir, None, shutdown_timeout=1) as url:
        before = find_processes(used_dir)
        told = time.monotonic()
        for _ in range(2):
            os.kill(before["watchdog"], signal.SIGTERM)
        assert query(url, "SELECT 1") == 1
        eventually(lambda: not find_processes(used_dir))
        assert time.monotonic() - told >= 1


@only_linux
def test_stale_pid_file_is_ignored(used_dir: Path, start_user: StartUser) -> None:
    user = start_user(used_dir)
    read_url(user)
    before = find_processes(used_dir)
    pid_file = next(used_dir.glob("cluster-*")) / "postmaster.pid"
    text = pid_file.read_text()
    for pid in (before["watchdog"], before["postmaster"], user.pid):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not find_processes(used_dir))
    account = "nobody" if IS_ROOT else None
    with Popen(["/bin/sleep", "60"], user=account, cwd=pid_file.parent) as innocent:
        pid_file.write_text("\n".join([str(innocent.pid), *text.split("\n")[1:]]))
        try:
            with run_embedded(used_dir, None) as url:
                assert query(url, "SELECT 1") == 1
            assert innocent.poll() is None
        finally:
            innocent.kill()


def test_concurrent_first_users_share_the_server(data_dir: Path, start_user: StartUser) -> None:
    users = [start_user(data_dir) for _ in range(2)]
    first_url, second_url = (read_url(user) for user in users)
    assert first_url == second_url
    assert query(first_url, "SELECT 1") == 1
    assert len(list(data_dir.glob("cluster-*"))) == 1


def test_remains_are_cleaned_up(used_dir: Path) -> None:
    leftover = used_dir / "cluster-18.abc.partial" / "base"
    leftover.mkdir(parents=True)
    with (used_dir / "postgres.log").open("w") as log:
        log.truncate(11_000_000)
    with run_embedded(used_dir, None):
        assert (used_dir / "postgres.log").stat().st_size < 10_000
        assert (used_dir / "postgres.log.1").stat().st_size == 11_000_000
    assert not leftover.parent.exists()


def test_server_that_cannot_start_is_explained(data_dir: Path) -> None:
    with run_embedded(data_dir, None):
        pass
    (options,) = data_dir.glob("cluster-*/postmaster.opts")
    aside = options.rename(data_dir / "aside")
    options.symlink_to("/dev/full")  # every write to it fails as on a full disk
    assert refusal(data_dir) == (
        f"The Postgres in {data_dir} did not start: {DISK_FULL} Its log is {data_dir}/postgres.log."
    )
    aside.rename(options)
    with (options.parent / "postgresql.conf").open("a") as configuration:
        configuration.write("nonsense = 1\n")
    for _ in range(2):
        said = refusal(data_dir)
        assert re.search(r"did not start: configuration file .*contains errors\. Its log is (.*)\.", said)
        assert str(data_dir / "postgres.log") in said
        assert len(said) < 500


def test_full_disk_is_named_whatever_fails(small_catalogue: Path, tmp_path: Path) -> None:
    """A device stands for the disk of one table, as ordinary users can't make a small file system."""
    with lend_folder() as folder:
        env = environment("", LOCALIDADES_DATA_DIR=str(data := folder / "data"), LOCALIDADES_SEED=str(small_catalogue))
        assert run("migrate", env=env).returncode == 0
        with run_embedded(data, None) as url:
            [[(path,)]] = execute(url, "SELECT pg_relation_filepath('publications')")
        later = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140))
        [table] = data.glob(f"cluster-*/{path}")
        table.unlink()
        table.symlink_to("/dev/full")
        ended = run("import", str(later), "--allow-renames", env=env)
        assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
            1,
            f"error: The Postgres in {data} failed: {DISK_FULL} Its log is {data}/postgres.log.",
        )


def test_unusable_folder_is_explained_and_unchanged(home: Path) -> None:
    (home / "file").touch()
    assert "LOCALIDADES_DATA_DIR" in refusal(home / "file" / "data")
    if IS_ROOT:  # which changes to another user
        (closed := home / "closed").mkdir(mode=0o700)
        assert f"{closed}: set LOCALIDADES_DATA_DIR" in refusal(closed / "data")
        assert closed.stat().st_mode & 0o777 == 0o700


@only_root
def test_inaccessible_binaries_are_copied_once(home: Path) -> None:
    root = find_binaries(None).parent
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    for part in (root, root.parent.with_name(f"{root.parent.name}.libs")):
        if part.exists():
            shutil.copytree(part, closed / part.relative_to(root.parent.parent), symlinks=True)
    folder = closed / root.relative_to(root.parent.parent) / "bin"
    for _ in range(2):
        with run_embedded(home / "data", folder) as url:
            assert query(url, "SELECT 1") == 1
            command = Path(f"/proc/{find_processes(home)['postmaster']}/cmdline").read_bytes()
            assert command.startswith(os.fsencode(home / "data" / "postgres-"))
    assert len(list((home / "data").glob("postgres-*"))) == 1


@pytest.mark.skipif(not DEBIAN_15.exists(), reason="PostgreSQL 15 is not installed")
def test_data_of_another_version_are_never_hidden(data_dir: Path) -> None:
    with run_embedded(data_dir, DEBIAN_15) as url:
        assert str(query(url, "SHOW server_version")).startswith("15.")
        assert query(url, "SELECT 'ñandú' ~ '^\\w+$' AND upper('ñ') = 'Ñ'") is True
        mark = leave_mark(url)
        with run_embedded(data_dir, None) as other_url:
            assert other_url == url  # a folder has one server, of any version
    newest, said = binaries.read_version(find_binaries(None)).partition(".")[0], refusal(data_dir)
    for words in ("PostgreSQL 15 made the data", f"is PostgreSQL {newest}", f"move {data_dir}/cluster-15 away",
                  "LOCALIDADES_POSTGRES_BIN", "docs/operations/recover.md", "LOCALIDADES_DATA_DIR"):  # fmt: skip
        assert words in said
    assert [path.name for path in data_dir.glob("cluster-*")] == ["cluster-15"]
    with run_embedded(data_dir, DEBIAN_15) as url:
        assert query(url, mark) is True
    (data_dir / "cluster-15").rename(data_dir / "aside")
    with run_embedded(data_dir, None) as url:
        assert str(query(url, "SHOW server_version")).startswith(newest)


def test_binaries_on_the_path_are_used_without_the_wheel(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbeddedPostgresError, match="LOCALIDADES_POSTGRES_BIN"):
        find_binaries(home)
    (home / "postgres").symlink_to(find_binaries(None) / "postgres")
    expected = find_binaries(None)
    monkeypatch.setitem(sys.modules, "embedded_postgres", None)
    monkeypatch.setenv("PATH", str(home))
    assert find_binaries(None) == expected


# -- Under the service

WORKERS = pytest.mark.parametrize("workers", ["1", "2"])
# Variables of libpq, each of which would keep the service from its embedded Postgres.
MEANT_FOR_ANOTHER = {
    "PGDATABASE": "another", "PGHOST": "nowhere.invalid", "PGOPTIONS": "-c nonsense=1", "PGPORT": "x",
    "PGSERVICE": "another", "PGSSLMODE": "verify-full", "PGSSLNEGOTIATION": "direct",
    "PGSSLROOTCERT": "/no/such/file", "PGTARGETSESSIONATTRS": "standby", "PGUSER": "another",
}  # fmt: skip


@pytest.fixture(scope="module")
def service_dir(large_rows: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of a server with a catalogue large enough to interrupt its download."""
    file = write_catalogue(tmp_path_factory.mktemp("large") / "catun_localidad_2020-01.csv", large_rows)
    with lend_folder() as folder:
        service_dir = folder / "data"
        with serving("", LOCALIDADES_DATA_DIR=str(service_dir), LOCALIDADES_SEED=str(file)):
            pass
        assert not find_processes(service_dir)
        yield service_dir


@contextmanager
def serve(service_dir: Path, *arguments: str, **settings: str) -> Iterator[Live]:
    """Run `serve` on the folder; leave nothing running at the end."""
    with serving("", *arguments, LOCALIDADES_DATA_DIR=str(service_dir), **settings) as live:
        yield live
    assert not find_processes(service_dir)


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
            assert refused.stderr.startswith("error: The database is at revision 9999, which this version of ")


def test_first_start_ends_in_order_when_it_is_terminated() -> None:
    with lend_folder() as folder:
        starting = start_command("serve", "--port", "0", env=environment("", LOCALIDADES_DATA_DIR=str(folder / "data")))
        eventually(lambda: "postmaster" in find_processes(folder))
        starting.terminate()
        assert starting.wait(PATIENCE) == 0


@WORKERS
def test_download_completes_when_service_and_watchdog_stop_together(
    service_dir: Path, large_rows: list[Place], workers: str
) -> None:
    with (
        serve(service_dir, "--workers", workers, **MEANT_FOR_ANOTHER) as live,
        stalled(live.base, "format=csv") as download,
    ):
        watchdog = find_processes(service_dir)["watchdog"]
        os.kill(watchdog, signal.SIGTERM)
        live.process.terminate()
        time.sleep(1.5)  # a watchdog that doesn't wait would have stopped itself and the server by now
        assert live.process.poll() is None
        assert len(read_csv(download.read_on())) == len(large_rows)
        assert live.process.wait(PATIENCE) == 0
        assert not find_processes(service_dir)
        assert re.search("Traceback|died", live.output.read_text()) is None
