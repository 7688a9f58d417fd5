"""Old releases are removed while others are read, and what a killed run leaves is finished by the next."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from sqlalchemy import text

from localidades_api.database.import_lock import begin_publication
from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError, ImportRunningError, ReleaseError
from localidades_api.releases.publish import set_current
from tests.importer.imports import started
from tests.support.application import (
    await_release,
    await_status,
    client_of,
    database_with,
    import_into,
    publish_again,
    retire,
    retire_all_but,
    running_app,
)
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.commands import invoke
from tests.support.database import WHO_WAIT, connected, photograph, read_release, rows_of
from tests.support.postgres import execute, new_database
from tests.support.waiting import eventually_async
from tests.support.wire import environment, run

LIST = "/api/census/localidades/"
NAMES = ["2019-01", "2020-01", "2021-01"]

IS_PENDING = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)"
LOCK_IS_FREE = """
    SELECT NOT EXISTS (SELECT FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
                        WHERE d.datname = current_database() AND l.locktype = 'advisory')
"""
DETACHMENT_WAITS = """
    SELECT EXISTS (SELECT FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE '%DETACH%' AND wait_event_type = 'Lock'
                      AND pid <> pg_backend_pid())
"""


def cut(year: int) -> list[Place]:
    """Return the places of a year: each has one fewer than the year before, and another name for one."""
    places = many(150)[year - 2019 :]
    return [replace(places[0], nombre=f"De {year}"), *places[1:]]


def write_cut(folder: Path, name: str, year: int | None = None) -> Path:
    return write_catalogue(folder / f"catun_localidad_{name}.csv", cut(year or int(name[:4])))


@pytest.fixture(scope="module")
def template(server: str, migrated: str) -> Iterator[str]:
    """Yield a database with three releases, not to be written to."""
    with database_with(server, migrated, {name: cut(int(name[:4])) for name in NAMES}) as url:
        yield url


@pytest.fixture
def releases(server: str, template: str) -> Iterator[str]:
    """Yield a database of this test's own with three releases."""
    with new_database(server, template) as url:
        yield url


async def until(connection: asyncpg.Connection, query: str) -> None:
    await eventually_async(lambda: connection.fetchval(query))


def names_of(url: str) -> list[tuple[str, bool]]:
    """Return the releases, and whether each is retired."""
    return [tuple(row) for row in execute(url, "SELECT name, retired_at IS NOT NULL FROM releases ORDER BY id")[0]]


async def assert_only(url: str, *names: str) -> None:
    """Check that these releases are whole, and that nothing is left of any other, in no table."""
    for name in names:
        assert (await read_release(url, name))[1] == rows_of(cut(int(name[:4])))
    async with connected(url) as connection:
        rows = await connection.fetch("SELECT id, name FROM releases ORDER BY id")
        assert [row["name"] for row in rows] == list(names)
        ids = [row["id"] for row in rows]
        for table in ("states", "municipalities", "localities"):
            found = await connection.fetch(f"SELECT DISTINCT release_id FROM {table} ORDER BY 1")  # noqa: S608  # our names
            assert [row[0] for row in found] == ids
        compared = await connection.fetch("SELECT release_id, previous_id, changes_since FROM comparisons ORDER BY 1")
        assert [tuple(row) for row in compared] == list(zip(ids[1:], ids, ids, strict=False))
        tables = "SELECT relname::text FROM pg_class WHERE relname ~ '^localities_r[0-9]+$' ORDER BY 1"
        assert [row[0] for row in await connection.fetch(tables)] == [f"localities_r{id_}" for id_ in ids]


def counts_of(url: str) -> dict[str, tuple[Any, ...]]:
    """Return, for each release, the one that it was compared with, and how many places were added and renamed."""
    [rows] = execute(
        url,
        "SELECT n.name, o.name, c.added, c.removed, c.renamed FROM comparisons AS c"
        " JOIN releases AS n ON n.id = c.release_id JOIN releases AS o ON o.id = c.previous_id",
    )
    return {row[0]: tuple(row)[1:] for row in rows}


def mark_as_if(url: str, seconds_ago: int) -> None:
    """Have each release that is retired from now on seem to be so for some seconds, and note when it was."""
    execute(
        url,
        "CREATE TABLE marks (at timestamptz)",
        f"""
        CREATE FUNCTION earlier() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO marks VALUES (NEW.retired_at);
            NEW.retired_at = NEW.retired_at - interval '{seconds_ago} s'; RETURN NEW; END $$
        """,  # noqa: S608  # a number of this test
        "CREATE TRIGGER earlier BEFORE UPDATE OF retired_at ON releases FOR EACH ROW EXECUTE FUNCTION earlier()",
    )


# -- By hand


async def test_release_after_a_retired_one_is_compared_with_the_one_before(releases: str, tmp_path: Path) -> None:
    assert counts_of(releases) == {"2020-01": ("2019-01", 0, 1, 1), "2021-01": ("2020-01", 0, 1, 1)}
    await retire(releases, "2020-01")
    assert counts_of(releases) == {"2021-01": ("2019-01", 0, 2, 1)}
    # Its name and its file can be published again.
    await import_into(releases, write_cut(tmp_path, "2020-01"))
    assert (await read_release(releases))[0].name == "2020-01"
    await retire(releases, "2021-01")
    await assert_only(releases, "2019-01", "2020-01")


async def test_command_removes_a_release_when_its_readers_have_ended(releases: str) -> None:
    mark_as_if(releases, 9)
    settings = environment(releases, LOCALIDADES_RELEASE_POLL="0.1")
    ended = await asyncio.to_thread(run, "releases", "retire", "2019-01", env=settings)
    assert (ended.returncode, ended.stdout) == (0, "Release 2019-01 is retired.\n"), ended.stderr
    async with connected(releases) as connection:
        waited = await connection.fetchval("SELECT extract(epoch FROM now() - at)::float8 + 9 FROM marks")
    assert waited > 10  # within which a request that has begun to read it has ended
    await assert_only(releases, "2020-01", "2021-01")
    ended = await asyncio.to_thread(run, "releases", "retire", "--keep", "2", env=environment(releases))
    said = "No release is retired: none but the current one is older than the 2 newest.\n"
    assert (ended.returncode, ended.stdout) == (0, said), ended.stderr


def test_retirement_of_what_cannot_be_retired_changes_nothing(template: str) -> None:
    before = asyncio.run(photograph(template))
    for words, code, sentence in [
        (["2021-01"], 1, "error: Release 2021-01 is the current one: first make another one current with"
         " `localidades-api releases publish`.\n"),
        (["2018-01"], 1, "error: There is no release 2018-01: run `localidades-api releases` to list the releases.\n"),
        (["'; DROP TABLE releases; --"], 1, "error: There is no release '; DROP TABLE releases; --: run"),
        ([""], 1, "error: There is no release : run"),
        ([], 2, "--keep"),
        (["2019-01", "--keep", "2"], 2, "--keep"),
        (["--keep", "0"], 2, "--keep"),
    ]:  # fmt: skip
        ended = invoke("releases", "retire", *words, url=template)
        assert (ended.returncode, ended.stdout) == (code, "")
        assert sentence in ended.stderr
    assert asyncio.run(photograph(template)) == before


async def test_release_that_was_marked_is_retired_without_a_new_grace(releases: str) -> None:
    execute(releases, "UPDATE releases SET retired_at = now() - interval '5 minutes' WHERE name = '2019-01'")
    async with asyncio.timeout(60):
        assert await retire(releases, "2019-01", grace=240) == ["2019-01"]


async def test_older_mark_does_not_shorten_the_grace_of_a_new_one(releases: str) -> None:
    execute(releases, "UPDATE releases SET retired_at = now() - interval '1 h' WHERE name = '2019-01'")
    retiring = asyncio.create_task(retire(releases, "2020-01", grace=60))
    async with connected(releases) as watcher:
        await until(watcher, "SELECT retired_at IS NOT NULL FROM releases WHERE name = '2020-01'")
    await asyncio.sleep(0.5)  # a retirement that didn't wait would have removed them by then
    assert names_of(releases) == [("2019-01", True), ("2020-01", True), ("2021-01", False)]
    retiring.cancel()
    await asyncio.wait({retiring})


# -- All but the newest


@pytest.mark.parametrize(
    ("keep", "current", "left"),
    [(1, "2021-01", NAMES[2:]), (2, "2021-01", NAMES[1:]), (3, "2021-01", NAMES),
     (1, "2019-01", ["2019-01", "2021-01"])],
)  # fmt: skip
async def test_all_but_the_newest_and_the_current_release_are_retired(
    releases: str, keep: int, current: str, left: list[str]
) -> None:
    await publish_again(releases, current)
    async with asyncio.timeout(20):  # nothing is waited for where nothing is retired
        retired = await retire_all_but(releases, keep, grace=60 if left == NAMES else 0)
    assert retired == [name for name in NAMES if name not in left]
    await assert_only(releases, *left)
    assert (await read_release(releases))[0].name == current


async def test_newest_releases_are_those_imported_last(releases: str, tmp_path: Path) -> None:
    await import_into(releases, write_cut(tmp_path, "2018-01", 2022))
    assert await retire_all_but(releases, 2) == ["2019-01", "2020-01"]
    assert names_of(releases) == [("2021-01", False), ("2018-01", False)]


# -- Interrupted

# What a retirement of 2020-01 has done, at the most.
MARK = "UPDATE releases SET retired_at = now() - interval '1 h' WHERE name = '2020-01'"
DETACH = "ALTER TABLE localities DETACH PARTITION localities_r2"
DROP = "DROP TABLE localities_r2"


async def kill_amid_detachment(url: str) -> None:
    """Kill the command while its detachment waits for a reader, and wait until the server has noticed."""
    async with connected(url) as watcher, connected(url) as reader:
        async with reader.transaction():
            await reader.fetch("SELECT FROM localities LIMIT 1")
            with started(url, "releases", "retire", "2020-01"):
                await until(watcher, IS_PENDING)
            await until(watcher, LOCK_IS_FREE)
        assert await watcher.fetchval(IS_PENDING)


@pytest.mark.parametrize(
    ("done", "is_killed"),
    [([MARK], False), ([MARK], True), ([MARK, DETACH], False), ([MARK, DETACH, DROP], False)],
    ids=["marked", "killed as it detaches", "detached", "dropped"],
)
async def test_interrupted_retirement_is_finished_by_that_of_another_release(
    releases: str, tmp_path: Path, done: list[str], *, is_killed: bool
) -> None:
    execute(releases, *done)
    if is_killed:
        await kill_amid_detachment(releases)
    for name in ("2019-01", "2021-01"):
        assert (await read_release(releases, name))[1] == rows_of(cut(int(name[:4])))
    with pytest.raises(CatalogueError, match=r"Release 2020-01 is half removed: .* releases retire 2020-01`"):
        await import_into(releases, write_cut(tmp_path, "2020-01"))
    await import_into(releases, write_cut(tmp_path, "2022-01"))
    assert sorted(await retire(releases, "2019-01")) == ["2019-01", "2020-01"]
    await assert_only(releases, "2021-01", "2022-01")


async def test_retirement_of_the_oldest_finishes_an_interrupted_one(releases: str) -> None:
    await publish_again(releases, "2020-01")
    execute(releases, "UPDATE releases SET retired_at = now() WHERE name = '2021-01'")
    assert await retire_all_but(releases, 2) == ["2021-01"]
    await assert_only(releases, "2019-01", "2020-01")


# -- The demo


@pytest.fixture(scope="module")
def template_of_demo(server: str, migrated: str) -> Iterator[str]:
    """Yield a database whose only release passes for the demo, which takes seconds to generate."""
    with database_with(server, migrated, {"2021-01": cut(2021)}) as url:
        execute(url, "UPDATE releases SET name = 'demo'")
        yield url


@pytest.fixture
def demo(server: str, template_of_demo: str) -> Iterator[str]:
    with new_database(server, template_of_demo) as url:
        yield url


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """Return a catalogue with another name for each place of the demo, and three places fewer."""
    places = [replace(place, nombre=f"Real {place.cvegeo}") for place in cut(2021)[3:]]
    return write_catalogue(tmp_path / "catun_localidad_2022-01.csv", places)


async def test_import_of_a_real_catalogue_retires_the_demo(demo: str, real: Path) -> None:
    mark_as_if(demo, 3600)
    before = await photograph(demo)
    tried = await asyncio.to_thread(run, "import", str(real), "--dry-run", env=environment(demo))
    assert "the demo would be retired because its places are invented" in tried.stderr
    assert await photograph(demo) == before
    ended = await asyncio.to_thread(run, "import", str(real), "--json", env=environment(demo))
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert (report["demo_retired"], report["compared_with"], report["changes"]) == (True, None, None)
    assert names_of(demo) == [("2022-01", False)]
    assert execute(demo, "SELECT to_regclass('localities_r1')")[0][0][0] is None


async def test_demo_that_is_withdrawn_goes_on_finding_nothing_until_its_rows_are_gone(demo: str, real: Path) -> None:
    """Processes serve it for a second or two after the publication: what finds nothing there is no fault."""
    async with running_app(demo, release_poll=60) as app, client_of(app) as client:
        assert (await client.get(f"{LIST}suggest/?q=lugar")).json()["results"]
        report = await import_into(demo, real)
        assert (report.demo_retired, report.comparison.previous) == (True, None)
        assert names_of(demo) == [("demo", True), ("2022-01", False)]
        for target in ("?municipio_id=31999", "suggest/?q=lugar"):
            answer = await client.get(f"{LIST}{target}")
            assert (answer.status_code, answer.headers["catalogue-release"]) == (200, "demo")
        execute(demo, "ALTER TABLE localities DETACH PARTITION localities_r1")
        assert (await client.get(f"{LIST}?municipio_id=31998")).status_code == 503
        assert (await client.get(f"{LIST}suggest/?q=otro")).status_code == 200  # its names are indexed


async def test_demo_that_a_killed_import_has_only_withdrawn_is_removed_by_the_next(
    demo: str, real: Path, tmp_path: Path
) -> None:
    await import_into(demo, real)
    execute(demo, "UPDATE releases SET retired_at = retired_at - interval '1 h'")  # its grace is over
    source = write_cut(tmp_path, "2023-01", 2019)
    ended = await asyncio.to_thread(run, "import", str(source), "--allow-renames", env=environment(demo))
    assert (ended.returncode, "the demo" in ended.stderr) == (0, False), ended.stderr
    assert names_of(demo) == [("2022-01", False), ("2023-01", False)]


async def test_import_whose_demo_cannot_be_removed_now_has_published_all_the_same(demo: str, real: Path) -> None:
    mark_as_if(demo, 3600)
    execute(
        demo,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$",
        "CREATE TRIGGER refuse BEFORE DELETE ON releases EXECUTE FUNCTION refuse()",
    )
    ended = await asyncio.to_thread(run, "import", str(real), env=environment(demo))
    assert ended.returncode == 0, ended.stderr
    assert "published release 2022-01" in ended.stderr
    assert "The retired release is not removed yet" in ended.stderr
    assert names_of(demo) == [("demo", True), ("2022-01", False)]


async def test_demo_that_is_kept_is_compared_with_nothing_and_in_no_history(
    demo: str, real: Path, tmp_path: Path
) -> None:
    report = await import_into(demo, real, keep_demo=True)
    assert (report.demo_retired, report.comparison.previous) == (False, None)
    here, gone = cut(2021)[5], int(cut(2021)[0].cvegeo)
    page = f"{LIST}{int(here.cvegeo)}/?format=api"
    async with running_app(demo) as app, client_of(app) as client:
        await await_release(client, "2022-01")
        listed = (await client.get("/api/census/releases/")).json()["results"]
        assert [one["release"] for one in listed] == ["demo", "2022-01"]
        assert "demo" not in (await client.get(page)).text
        of_demo = (await client.get(f"{page}&release=demo")).text
        assert (here.nombre in of_demo, f"Real {here.cvegeo}" in of_demo) == (True, False)
        assert (await client.get(f"{LIST}{gone}/?release=demo")).status_code == 200
        assert (await client.get(f"{LIST}{gone}/")).status_code == 404
        assert "since=demo" not in (await client.get("/api/census/releases/?format=api")).text
    assert await retire_all_but(demo, 1) == []
    following = await import_into(demo, write_cut(tmp_path, "2023-01", 2019))
    assert (following.demo_retired, following.comparison.previous) == (True, "2022-01")
    assert counts_of(demo) == {"2023-01": ("2022-01", 5, 0, 145)}


# -- One at a time


async def test_release_that_is_becoming_the_current_one_is_not_retired(releases: str) -> None:
    """Its retirement waits for the publication, and is refused then."""
    database = Database.for_writing(releases)
    try:
        async with database.connect() as publishing, connected(releases) as watcher:
            await begin_publication(publishing)
            id_ = await publishing.scalar(text("SELECT id FROM releases WHERE name = '2020-01'"))
            await set_current(publishing, id_, action="publish")
            retiring = asyncio.create_task(retire(releases, "2020-01"))
            await until(watcher, WHO_WAIT)
            await publishing.commit()
        with pytest.raises(ReleaseError, match="Release 2020-01 is the current one"):
            await retiring
    finally:
        await database.dispose()
    await assert_only(releases, *NAMES)


# -- Readers meanwhile


@pytest.fixture
async def client(releases: str) -> AsyncIterator[httpx.AsyncClient]:
    async with running_app(releases) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        yield client


async def test_requests_for_a_retired_release_are_404_and_all_others_go_on(
    releases: str, client: httpx.AsyncClient
) -> None:
    """Readers of every kind ask all the while: nobody gets a wrong answer, and none waits for a lock."""
    targets = [f"{LIST}?release={name}&{query}" for name in NAMES for query in ("page=1", "ambito=R&page_size=7")]
    targets += [f"/api/census/releases/2021-01/changes/?since={name}" for name in NAMES[:2]]
    expected = {target: (await client.get(target)).content for target in targets}
    seen: dict[str, set[int]] = {target: set() for target in targets}
    over = asyncio.Event()

    async def read(target: str) -> None:
        while not over.is_set():
            answer = await client.get(target)
            seen[target].add(answer.status_code)
            assert answer.status_code != 200 or answer.content == expected[target] or "changes" in target
            await asyncio.sleep(0.01)

    readers = [asyncio.create_task(read(target)) for target in targets]
    assert await retire(releases, "2020-01", grace=2) == ["2020-01"]
    await asyncio.sleep(0.3)
    over.set()
    await asyncio.gather(*readers)
    assert seen == {target: {200, 404} if "=2020-01" in target else {200} for target in targets}
    assert (await client.get(f"{LIST}?release=2020-01")).json()["detail"] == "There is no such release."
    listed = (await client.get("/api/census/releases/")).json()["results"]
    assert [one["release"] for one in listed] == ["2019-01", "2021-01"]


async def test_history_and_successors_pass_over_a_retired_release(releases: str, client: httpx.AsyncClient) -> None:
    """The first place of 2020 has no key in 2021: it is gone, and the last release that had it is retired.

    The mark alone counts: the rows stay until its grace is over.
    """
    key, kept = int(cut(2020)[0].cvegeo), int(cut(2021)[3].cvegeo)
    pages = [f"{LIST}{kept}/?format=api", f"/api/census/municipios/{kept // 10_000}/?format=api"]
    gone = await client.get(f"{LIST}{key}/")
    assert (gone.status_code, gone.json()["last_release"]) == (410, "2020-01")
    for target in pages:
        assert "2020-01" in (await client.get(target)).text
    execute(releases, "UPDATE releases SET retired_at = now() WHERE name = '2020-01'")
    await await_status(client, f"{LIST}{key}/?release=2020-01", 404)
    gone = await client.get(f"{LIST}{key}/")
    assert (gone.status_code, gone.json()["last_release"]) == (410, "2019-01")
    for target in pages:
        page = await client.get(target)
        assert (page.status_code, "2020-01" in page.text, "2019-01" in page.text) == (200, False, True)


async def test_reader_for_long_holds_up_the_retirement_and_imports_and_nobody_else(
    releases: str, tmp_path: Path
) -> None:
    """A backup reads every table in one transaction: what is dropped waits for its end, and the others do not.

    Whoever goes back from a bad release must not wait for what only takes up space.
    """
    file = write_cut(tmp_path, "2022-01")
    async with connected(releases) as backup, connected(releases) as watcher:
        async with backup.transaction(isolation="repeatable_read", readonly=True):
            tables = "localities, municipalities, states, releases, current_release"
            await backup.execute(f"LOCK TABLE {tables} IN ACCESS SHARE MODE")
            before = await backup.fetchval("SELECT count(*) FROM localities")
            retiring = asyncio.create_task(retire(releases, "2019-01"))
            await until(watcher, DETACHMENT_WAITS)
            with pytest.raises(ImportRunningError, match="or a release is being retired"):
                await import_into(releases, file)
            with pytest.raises(ImportRunningError):
                await retire(releases, "2020-01")
            assert (await read_release(releases, "2021-01"))[1] == rows_of(cut(2021))
            assert await publish_again(releases, "2020-01") == "2021-01"
            with pytest.raises(ReleaseError, match="2019-01 is half removed"):
                await publish_again(releases, "2019-01")
            assert not retiring.done()
            assert await backup.fetchval("SELECT count(*) FROM localities") == before
        assert await retiring == ["2019-01"]
    assert (await read_release(releases))[0].name == "2020-01"
    await import_into(releases, file)
    await assert_only(releases, "2020-01", "2021-01", "2022-01")


async def test_reader_of_municipios_for_long_holds_up_the_dropping_and_no_other_reader(releases: str) -> None:
    """Dropping locks `municipalities` (its foreign key); readers must not queue behind that lock for long."""
    async with connected(releases) as reader, connected(releases) as other:
        async with reader.transaction():
            await reader.execute("LOCK TABLE municipalities IN ACCESS SHARE MODE")
            retiring = asyncio.create_task(retire(releases, "2020-01"))
            await until(other, WHO_WAIT)
            slowest, now = 0.0, asyncio.get_running_loop().time
            for _ in range(10):
                began = now()
                await other.fetch("SELECT id FROM municipalities WHERE release_id = 1")
                slowest = max(slowest, now() - began)
                await asyncio.sleep(0.05)
            assert not retiring.done()
            assert slowest < 5  # the lock is asked for during a quarter of a second
        assert await retiring == ["2020-01"]
