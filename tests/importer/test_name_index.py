"""The index of names of a release: built by its import, or by `migrate`, and stored."""

import asyncio
import os
import resource
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from localidades_api.caches.index_folders import CODE, index_root
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import IndexingError
from localidades_api.importer import name_index
from localidades_api.importer.name_index import Source
from localidades_api.names.files.layout import FILES, META
from localidades_api.names.index import NameIndex
from tests.importer.imports import started
from tests.support.application import complete, import_into, retire, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.database import assert_nothing_left, photograph
from tests.support.postgres import run_sql
from tests.support.waiting import eventually, eventually_async


@pytest.fixture(params=[0, 132], ids=["process", "thread"])
def largest_in_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "MAX_IN_THREAD", request.param)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def releases(tmp_path: Path) -> list[Path]:
    """Return three releases: names, keys, municipios and points change, places come and go."""
    places = many(132)
    renamed = {place.cvegeo: replace(place, nombre=f"{place.nombre} Nuevo") for place in places[::9]}
    moved = {place.cvegeo: replace(place, cvegeo=f"{place.cvegeo[:5]}9{place.cvegeo[6:]}", latitud=f"21.{n:06d}")
             for n, place in enumerate(places[::17])}  # fmt: skip
    at_a_point = {key: replace(place, cvegeo=key) for key, place in moved.items()}
    first = [at_a_point.get(place.cvegeo, place) for place in places]
    second = [
        moved.get(place.cvegeo, renamed.get(place.cvegeo, place)) for place in places if place not in places[::40]
    ]
    third = [replace(place, nom_mun="Villa Hidalgo") if place.cvegeo[2:5] == "003" else place for place in second[3:]]
    return [
        write_catalogue(tmp_path / f"catun_localidad_{name}.csv", sorted(one, key=lambda place: place.cvegeo))
        for name, one in (("2020-01", first), ("2021-01", second), ("2022-01", third))
    ]


async def fetched(url: str, cache: Path) -> Mapping[str, Mapping[str, bytes]]:
    """Return the files of each release's index, as a service fetches them."""
    indexes = {}
    async with running_app(url, cache_dir=cache, in_background=False) as app:
        services = app.state.services
        await services.releases.refresh()
        for release in services.releases.every:
            folder = (await services.names.get(release)).layout.folder
            indexes[release.name] = {name: (folder / name).read_bytes() for name in (*FILES, META)}
    return indexes


def builders(folder: Path) -> list[int]:
    """Return the processes that build an index in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if f"\0{folder}/" in path.read_text():
                found.append(int(path.parent.name))
    return found


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


@pytest.mark.usefixtures("largest_in_thread")
async def test_import_stores_the_index_that_migrate_builds_from_the_database(
    database: str, releases: list[Path], temporary: Path, tmp_path: Path
) -> None:
    for path in releases:
        await import_into(database, path)
    imported = await fetched(database, tmp_path / "imported")
    await run_sql(database, "TRUNCATE name_index")  # as in a dump without its data
    await complete(database)
    assert await fetched(database, tmp_path / "built") == imported
    before = await photograph(database)
    await complete(database)
    assert await photograph(database) == before
    names = [NameIndex(path) for path in index_root(tmp_path / "built", "names").glob("[!.]*")]
    assert sum(bool(one.suggest("villa hidalgo", kinds=["municipio"])) for one in names) == 1
    assert is_empty(temporary)


async def test_release_keeps_its_index_when_an_earlier_one_is_retired(
    database: str, releases: list[Path], tmp_path: Path
) -> None:
    for path in releases[:2]:
        await import_into(database, path)
    before = await fetched(database, tmp_path)
    await retire(database, "2020-01")
    await complete(database)
    assert await fetched(database, tmp_path / "after") == {"2021-01": before["2021-01"]}


async def test_releases_and_the_code_decide_the_name_of_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(number: int, name: str = "") -> Release:
        given = {"id": number, "name": name or f"202{number}-01", "source": "", "sha256": "ab", "states": 1}
        return Release.model_validate(
            given | {"municipalities": 1, "localities": 1, "published_at": "2020-01-01T00:00:00Z"}
        )

    older, newest, demo = release(1), release(2), release(0, "demo")
    sources = [Source.of(newest, [newest]), Source.of(newest, [demo, older, newest]), Source.of(older, [older, newest])]
    names = [source.name for source in sources]
    assert Source.of(newest, [newest, older]).name == names[1]  # a later release changes no index, nor does the demo
    monkeypatch.setattr(name_index, "CODE", "another")
    assert len({*names, sources[0].name}) == 4


# Faults


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process and its children grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_import_without_room_for_its_index_fails_and_changes_nothing(
    database: str, releases: list[Path], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_index, "MAX_IN_THREAD", 0)
    before = await photograph(database)
    with full_disk(), pytest.raises(IndexingError, match=r"^Can't index the names of release 2020-01: .*too large"):
        await import_into(database, releases[0])
    await assert_nothing_left(database, before)
    assert is_empty(temporary)


async def test_import_whose_builder_is_killed_fails_and_changes_nothing(
    database: str, releases: list[Path], temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_index, "MAX_IN_THREAD", 0)
    before = await photograph(database)
    importing = asyncio.create_task(import_into(database, releases[0]))
    [builder] = await eventually_async(lambda: asyncio.to_thread(builders, temporary))
    os.kill(builder, signal.SIGKILL)
    with pytest.raises(IndexingError, match=r"release 2020-01: it was killed\.$"):
        await importing
    await assert_nothing_left(database, before)
    assert is_empty(temporary)


@pytest.mark.tail  # of a whole country
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_import_that_is_ended_takes_its_builder_and_its_files_along(
    database: str, temporary: Path, number: signal.Signals
) -> None:
    before = await photograph(database)
    with started(database, "import", "demo", TMPDIR=str(temporary)) as importing:
        await eventually_async(lambda: asyncio.to_thread(lambda: list(temporary.glob("*/.index-*"))))  # it is written
        os.kill(importing.pid, number)
        importing.wait()
    eventually(lambda: not builders(temporary) and is_empty(temporary))
    await assert_nothing_left(database, before)


async def test_migrate_replaces_a_damaged_index_and_keeps_those_of_the_code_before(
    database: str, releases: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_into(database, releases[0])
    before = await fetched(database, tmp_path / "before")
    await run_sql(database, "UPDATE name_index SET bytes = overlay(bytes PLACING '\\x00' FROM 9)")
    for code in ("code 1", "code 2", CODE):
        monkeypatch.setattr(name_index, "CODE", code)
        await complete(database)
    codes = await run_sql(database, "SELECT DISTINCT code FROM name_index ORDER BY 1")
    assert {code for (code,) in codes} == {CODE, "code 2"}
    assert await fetched(database, tmp_path / "after") == before
