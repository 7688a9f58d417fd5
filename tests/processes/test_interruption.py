"""Commands that are interrupted, terminated, killed or out of memory at critical moments."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from tests.support.catalogue import many, write_catalogue
from tests.support.database import assert_nothing_left, connected, photograph
from tests.support.postgres import execute
from tests.support.waiting import PATIENCE, eventually_async
from tests.support.wire import COMMAND, ROOT, environment, run

pytestmark = pytest.mark.tail

ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@contextmanager
def started(*arguments: str, env: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """Start a command; leave no process of it."""
    with subprocess.Popen(
        [*COMMAND, *arguments], env=env, cwd=ROOT, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


async def end_of(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for the end of a command; return its exit code and what it said."""
    out, err = await asyncio.to_thread(process.communicate, timeout=PATIENCE)
    assert "Traceback" not in out + err
    return process.returncode, err


async def await_process(observer: asyncpg.Connection, condition: str) -> int:
    """Wait until a process of this database fulfils the condition, and return it."""
    query = f"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND {condition}"  # noqa: S608  # ours
    return int(await eventually_async(lambda: observer.fetchval(query)))


WAITS_FOR_ANOTHER = "cardinality(pg_blocking_pids(pid)) > 0"
VACUUMS = "backend_type = 'client backend' AND pid IN (SELECT pid FROM pg_stat_progress_vacuum)"


async def current_release(observer: asyncpg.Connection) -> str:
    return str(await observer.fetchval("SELECT name FROM releases JOIN current_release ON release_id = id"))


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """Return a file that follows the seeded catalogue."""
    return write_catalogue(tmp_path / "catun_localidad_2020-02.csv", many(133))


# Before the publication


@pytest.mark.parametrize(("number", "code"), ENDS)
async def test_import_interrupted_before_publishing_changes_nothing(
    seeded_database: str, catalogue: Path, number: signal.Signals, code: int
) -> None:
    before = await photograph(seeded_database)
    async with connected(seeded_database) as observer, connected(seeded_database) as holder:
        with started("import", str(catalogue), env=environment(seeded_database)) as process:
            async with holder.transaction():
                await holder.execute("SELECT * FROM current_release FOR UPDATE")
                await await_process(observer, WAITS_FOR_ANOTHER)
                process.send_signal(number)
                returncode, err = await end_of(process)
    assert returncode == code
    assert "published" not in err
    await assert_nothing_left(seeded_database, before)


# While it commits


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, None], ids=["SIGINT", "SIGTERM", "lost connection"])
async def test_import_interrupted_during_commit_has_published_or_says_how_to_check(
    seeded_database: str, catalogue: Path, end: signal.Signals | None
) -> None:
    execute(
        seeded_database,
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON releases DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION wait()",
    )
    async with connected(seeded_database) as observer:
        async with connected(seeded_database) as holder:
            await holder.execute("SELECT pg_advisory_lock(1)")
            with started("import", str(catalogue), env=environment(seeded_database)) as process:
                backend = await await_process(observer, WAITS_FOR_ANOTHER)
                if end is None:
                    await observer.execute("SELECT pg_terminate_backend($1)", backend)
                else:
                    process.send_signal(end)
                    await holder.execute("SELECT pg_advisory_unlock(1)")
                returncode, err = await end_of(process)
        if end is None:
            assert returncode == 1
            assert "lost while release 2020-02 was being published: check with `localidades-api releases`" in err
        else:
            assert returncode == 0, err
            assert "published release 2020-02 in " in err
            assert await current_release(observer) == "2020-02"


# After the publication


@pytest.fixture
def slow_to_settle(database: str, tmp_path: Path) -> tuple[str, Path]:
    """Return a database with a slow VACUUM, and a file of many pages."""
    name = database.partition("@/")[2].partition("?")[0]
    execute(database, *(f"ALTER DATABASE {name} SET vacuum_cost_{what}" for what in ("delay = 100", "limit = 1")))
    return database, write_catalogue(tmp_path / "catun_localidad_2020-03.csv", many(6_000))


@pytest.mark.parametrize(
    ("command", "end"),
    [("import", signal.SIGINT), ("import", None), ("migrate", signal.SIGTERM)],
    ids=["Ctrl-C", "lost connection", "SIGTERM of a seed"],
)
async def test_import_interrupted_after_publishing_succeeds(
    slow_to_settle: tuple[str, Path], command: str, end: signal.Signals | None
) -> None:
    url, path = slow_to_settle
    arguments = ("import", str(path)) if command == "import" else ("migrate",)
    async with connected(url) as observer:
        with started(*arguments, env=environment(url, LOCALIDADES_SEED=str(path))) as process:
            backend = await await_process(observer, VACUUMS)
            if end is None:
                await observer.execute("SELECT pg_terminate_backend($1)", backend)
            else:
                process.send_signal(end)
            returncode, err = await end_of(process)
        assert returncode == 0, err
        assert "Release 2020-03 is published, but its VACUUM did not finish (" in err
        assert "published release 2020-03 in " in err
        assert "error" not in err
        assert await current_release(observer) == "2020-03"
        assert not await observer.fetchval("SELECT EXISTS (SELECT FROM pending_seed)") or command == "import"


# Memory

# An import with a limit on its memory beyond what it has loaded.
SHORT_OF_MEMORY = """
import resource, sys
from localidades_api.cli import app, import_catalogue
from localidades_api.importer.run import import_catalogue

limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
app()
"""


def test_import_out_of_memory_is_explained(database: str) -> None:
    command = (sys.executable, "-c", SHORT_OF_MEMORY, str(30 * 1024**2))
    ended = run("import", "demo", env=environment(database), command=command)
    assert (ended.returncode, ended.stdout) == (1, "")
    said = r"error: There is not enough memory: .+ takes about [0-9]+ MB. Raise the limit, .+\."
    # Python itself may report an object that it couldn't finalize.
    assert re.search(rf"^{said}\n\Z", ended.stderr, re.MULTILINE)
    assert "demo" not in run("releases", env=environment(database)).stdout
