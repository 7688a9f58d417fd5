import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Any

import pytest

from localidades_api.database.pool import Database
from localidades_api.errors import CatalogueError, ConfigurationError, ImportRunningError
from localidades_api.importer.checks import refuse_broken_letters
from localidades_api.importer.run import ImportReport, import_catalogue
from localidades_api.observability.progress import ImportStep, Step
from tests.importer.imports import Observer, started
from tests.support.application import import_into, publish_again
from tests.support.catalogue import TRAPS, Place, many, read_catalogue, write_catalogue
from tests.support.database import WHO_WAIT, assert_nothing_left, connected, photograph, read_release, rows_of
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually_async

# Steps of an import from a path, and all but the last before anything is published.
UNPUBLISHED = [step for step in ImportStep if step not in {ImportStep.FETCH, ImportStep.DONE}]
LARGE = 6_000  # localities, enough for the observer to be told of some in the middle of COPY
PLACES = many(132)  # of the seeded database
RENAMED = [replace(PLACES[0], nombre="New"), *PLACES[1:]]


async def import_watched(url: str, source: Path, observer: Observer) -> ImportReport:
    database = Database.for_writing(url)
    try:
        return await import_catalogue(database, str(source), observer)
    finally:
        await database.dispose()


@pytest.fixture(scope="module")
def next_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that follows the seeded catalogue: one locality renamed."""
    return write_catalogue(tmp_path_factory.mktemp("next") / "catun_localidad_2020-02.csv", RENAMED)


@pytest.fixture(scope="module")
def large_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_catalogue(tmp_path_factory.mktemp("large") / "catun_localidad_2020-03.csv", many(LARGE))


# Publishing


async def test_import_tells_its_observer_each_step_in_order_and_nobody_else(
    seeded_database: str, large_catalogue: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    began: dict[Step, datetime] = {}
    observer = Observer(lambda step: began.update({step: datetime.now(UTC)}))
    report = await import_watched(seeded_database, large_catalogue, observer)
    assert list(began) == [*UNPUBLISHED, ImportStep.DONE]
    assert report.localities == LARGE
    assert observer.expected == {ImportStep.COPY: LARGE}
    assert observer.amounts == {ImportStep.READ: [5000, LARGE - 5000], ImportStep.COPY: [5000, LARGE - 5000]}
    assert capfd.readouterr() == ("", "")
    async with connected(seeded_database) as connection:
        published_at = await connection.fetchval("SELECT published_at FROM releases WHERE name = '2020-03'")
    # Not when its transaction began: what a cache got meanwhile would be taken for newer.
    assert began[ImportStep.PUBLISH] <= published_at <= began[ImportStep.DONE]


# Nothing changed


async def test_dry_run_reports_and_changes_nothing(seeded_database: str, tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", PLACES[1:])
    before = await photograph(seeded_database)
    report = await import_into(seeded_database, path, dry_run=True)
    assert (report.release, report.localities, report.comparison.removed) == ("2020-02", 131, 1)
    await assert_nothing_left(seeded_database, before)
    await import_into(seeded_database, path)
    assert (await read_release(seeded_database))[0].name == "2020-02"


def of_estado(estado: str, count: int, clave: str = "01", start: int = 1) -> list[Place]:
    return [Place(f"{clave}001{start + n:04d}", f"Lugar {n}", nom_ent=estado, nom_abr="") for n in range(count)]


COLIMA = of_estado("Colima", 100, "06")
MORE = of_estado("Colima", 100, "06", 101)


@pytest.mark.parametrize(
    ("before", "after", "losses"),
    [
        # As many localities as before do not make up for those that are gone.
        (COLIMA, [*COLIMA[11:], *MORE], "The file lacks 11 of the 100 localities of release 2020-01, over 10%."),
        (COLIMA, COLIMA[10:], None),
        (COLIMA[:3], of_estado("Jalisco", 30, "14"),
         "The file has only Jalisco: it lacks Colima, and 3 of the 3 localities of release 2020-01."),
        # Fewer than a tenth of the localities, but all of an estado.
        (PLACES, [place for place in PLACES if place.nom_ent != "Zacatecas"],
         "The file has 9 estados: it lacks Zacatecas, and 1 of the 132 localities of release 2020-01."),
    ],
)  # fmt: skip
async def test_file_that_lacks_much_is_refused_unless_told_to(
    database: str, tmp_path: Path, before: list[Place], after: list[Place], losses: str | None
) -> None:
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", before))
    path = write_catalogue(tmp_path / "2020-02.csv", after)
    photographed = await photograph(database)
    for options in ({}, {"dry_run": True}) if losses else ():
        with pytest.raises(CatalogueError) as refused:
            await import_into(database, path, **options)
        assert str(refused.value) == f"{losses} If that is right, pass --allow-shrink."
    await assert_nothing_left(database, photographed)
    report = await import_into(database, path, allow_shrink=losses is not None)
    assert (report.losses, report.localities) == (losses, len(after))
    assert report.comparison.removed == len({place.cvegeo for place in before} - {place.cvegeo for place in after})


async def test_first_file_says_if_it_is_not_of_the_whole_country(database: str, tmp_path: Path) -> None:
    places = [place for clave in ("06", "14") for place in of_estado(f"Estado {clave}", 2, clave)]
    report = await import_into(database, write_catalogue(tmp_path / "2020-01.csv", places))
    assert report.losses == "The file has only Estado 06 and Estado 14; Mexico has 32 estados."
    every = [place for clave in range(1, 33) for place in of_estado(f"Estado {clave}", 2, f"{clave:02d}")]
    assert (await import_into(database, write_catalogue(tmp_path / "2020-02.csv", every))).losses is None


async def test_file_that_renames_more_than_a_tenth_is_refused_unless_told_to(database: str, tmp_path: Path) -> None:
    """Localities that are new don't make up for those that are renamed."""
    await import_into(database, write_catalogue(tmp_path / "2020-01.csv", COLIMA))
    photographed = await photograph(database)

    def renamed(count: int) -> Path:
        places = [replace(place, nombre=f"El {place.nombre}") for place in COLIMA[:count]]
        return write_catalogue(tmp_path / f"2020-{count}.csv", [*places, *COLIMA[count:], *MORE])

    refusal = r"renames 11 of the 100 localities that release 2020-01 .*--allow-renames\."
    with pytest.raises(CatalogueError, match=refusal):
        await import_into(database, renamed(11), allow_renames=False)
    await assert_nothing_left(database, photographed)
    assert (await import_into(database, renamed(11), dry_run=True)).comparison.renamed == 11
    assert (await import_into(database, renamed(10), allow_renames=False)).comparison.renamed == 10


@pytest.mark.parametrize(
    ("name", "is_broken"),
    [
        *(("Ánimas, Ñandú y Güémez".encode().decode(by), True) for by in ("latin-1", "cp850", "cp437", "mac_roman")),
        ("El Cajón y Güémez".encode().decode("cp1252"), True),
        ("La Mar\N{LATIN CAPITAL LETTER A WITH TILDE}\N{SOFT HYPHEN}a", True),
        ("Güémez".encode("ascii", "replace").decode(), True),
        ("Güémez".encode("cp1252").decode(errors="replace"), True),
        *((trap.nombre, False) for trap in TRAPS),
        ("Ânimas", False),
        ("SÃO JOÃO", False),
    ],
)
def test_broken_letters_are_told_from_rare_ones(tmp_path: Path, name: str, *, is_broken: bool) -> None:
    """Those of a hundredth of the names may be the places' own."""
    places = COLIMA[:98]  # with the names of the estado and the municipio, a hundred
    for count in (1, 2):
        places = [replace(places[count - 1], nombre=name), *places[: count - 1], *places[count:]]
        catalogue = read_catalogue(write_catalogue(tmp_path / f"{count}.csv", places))
        if is_broken and count == 2:
            with pytest.raises(CatalogueError) as refused:
                refuse_broken_letters(catalogue)
            sentence = f"2 of the 100 names in the file have broken letters, such as {name!r}: a program"
            assert str(refused.value).startswith(sentence)
        else:
            refuse_broken_letters(catalogue)


async def test_file_with_broken_letters_is_refused_unless_told_to(database: str, tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "2020-01.csv", of_estado("MÃ©xico", 3))
    before = await photograph(database)
    with pytest.raises(CatalogueError, match=r"1 of the 5 names .* as 'MÃ©xico': .* pass --allow-broken-letters\."):
        await import_into(database, path)
    await assert_nothing_left(database, before)
    assert (await import_into(database, path, allow_broken_letters=True)).localities == 3


@pytest.fixture(scope="module")
async def refusing(server: str, seeded: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield a seeded database that every import leaves as it is, and what is in it."""
    with new_database(server, seeded) as url:
        yield url, await photograph(url)


BAD_NAME = "A release's name must begin with a letter or a digit"


@pytest.mark.parametrize(
    ("source", "release", "sentence"),
    [
        *(("next", bad, BAD_NAME) for bad in ("", "../etc", "-x", "a b", "año", "2020-02\n", "x" * 65, "a\0")),
        ("next", "demo", "Only the bundled catalogue can be named demo"),
        ("demo", "2020-02", "Only the bundled catalogue can be named demo"),
        ("same", None, "This very file is already published, as release 2020-01"),
        ("twice", None, "The key 010010001 appears twice"),
    ],
)
async def test_import_that_is_refused_changes_nothing(
    refusing: tuple[str, dict[str, Any]], tmp_path: Path, next_catalogue: Path, small_catalogue: Path,
    source: str, release: str | None, sentence: str,
) -> None:  # fmt: skip
    url, before = refusing
    twice = write_catalogue(tmp_path / "catun_localidad_2020-02.csv", [PLACES[0]] * 2)
    sources: dict[str, Path | str] = {"next": next_catalogue, "same": small_catalogue, "demo": "demo", "twice": twice}
    with pytest.raises(CatalogueError) as refused:
        await import_into(url, sources[source], release=release, allow_shrink=True)
    assert str(refused.value).startswith(sentence)
    await assert_nothing_left(url, before)


async def test_file_without_a_date_must_be_named(seeded_database: str, tmp_path: Path) -> None:
    path = write_catalogue(tmp_path / "localidades.csv", PLACES[1:])
    with pytest.raises(CatalogueError, match="--release"):
        await import_into(seeded_database, path)
    assert (await import_into(seeded_database, path, release="2020.02_b-1")).release == "2020.02_b-1"
    assert (await read_release(seeded_database))[0].name == "2020.02_b-1"


async def test_import_without_tables_is_explained(empty_database: str, small_catalogue: Path) -> None:
    with pytest.raises(ConfigurationError, match="The database has no tables yet: run `localidades-api migrate` first"):
        await import_into(empty_database, small_catalogue)


# At once


@contextmanager
def stepwise(url: str, source: Path) -> Iterator[Iterator[Step]]:
    """Import in a thread, and yield its steps: it stops at the beginning of each until the next is asked for."""
    begun: SimpleQueue[Step | None] = SimpleQueue()
    let_go = Semaphore(0)

    def hold(step: Step) -> None:
        begun.put(step)
        assert let_go.acquire(timeout=PATIENCE)

    def run() -> None:
        try:
            asyncio.run(import_watched(url, source, Observer(hold)))
        finally:
            begun.put(None)

    def steps() -> Iterator[Step]:
        while step := begun.get(timeout=PATIENCE):
            yield step
            let_go.release()

    thread = Thread(target=run)
    thread.start()
    try:
        yield steps()
    finally:
        let_go.release(len(ImportStep))
        thread.join()


async def test_each_step_keeps_readers_at_one_release_and_other_imports_out(
    server: str, seeded: str, seeded_database: str, next_catalogue: Path, large_catalogue: Path
) -> None:
    """A reader waits for no lock: any that is in its way would fail it. An import elsewhere on the server goes on."""
    old = await read_release(seeded_database)
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    seen = {}
    async with connected(seeded_database) as reader:
        await reader.execute("SET lock_timeout = '50ms'")
        with stepwise(seeded_database, next_catalogue) as steps, new_database(server, seeded) as other:
            for step in steps:
                seen[step] = await read_release(seeded_database)
                assert await read_release(seeded_database, "2020-01") == old
                for (table,) in await reader.fetch(tables):
                    await reader.execute(f'SELECT FROM "{table}" LIMIT 1')
                if step is not ImportStep.DONE:
                    with pytest.raises(ImportRunningError, match="Another import is running"):
                        await import_into(seeded_database, large_catalogue)
                if step is ImportStep.PUBLISH:
                    assert (await import_into(other, next_catalogue)).release == "2020-02"
                    with pytest.raises(ImportRunningError):
                        await publish_again(seeded_database, "2020-01")
                elif step is not ImportStep.DONE:
                    await publish_again(seeded_database, "2020-01")  # an operator may undo meanwhile
    new = await read_release(seeded_database)
    assert (new[0].name, new[1]) == ("2020-02", rows_of(RENAMED))
    assert await read_release(seeded_database, "2020-01") == old
    assert seen == dict.fromkeys(UNPUBLISHED, old) | {ImportStep.DONE: new}


# Killed


async def test_import_killed_amid_a_statement_is_noticed_by_the_server(
    seeded_database: str, next_catalogue: Path
) -> None:
    """A server looks at a client's socket between statements; the import asks it to look in the middle too."""
    before = await photograph(seeded_database)
    async with connected(seeded_database) as other:
        name = await other.fetchval("SELECT current_database()")
        await other.execute(f'ALTER DATABASE "{name}" SET client_connection_check_interval = 0')
        async with other.transaction():
            await other.execute("LOCK TABLE municipalities IN ROW EXCLUSIVE MODE")  # the import's foreign key waits
            with started(seeded_database, "import", str(next_catalogue)):
                await eventually_async(lambda: other.fetchval(WHO_WAIT))
            await assert_nothing_left(seeded_database, before)


async def test_rows_are_marked_as_seen_by_all_once_what_began_before_the_import_has_ended(
    seeded_database: str, next_catalogue: Path
) -> None:
    """Else each row that a search finds by an index is looked up, until autovacuum comes by."""
    async with connected(seeded_database) as reader, connected(seeded_database) as watcher:
        await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM releases")
        importing = asyncio.create_task(import_into(seeded_database, next_catalogue))
        await eventually_async(lambda: watcher.fetchval("SELECT count(*) = 2 FROM releases"))
        await asyncio.sleep(0.5)
        await reader.execute("COMMIT")
        await importing
        assert await watcher.fetchval(
            "SELECT relallvisible = relpages FROM pg_class"
            " WHERE relname = (SELECT 'localities_r' || release_id FROM current_release)"
        )
