import asyncio
import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localidades_api.caches.name_indexes import builder
from localidades_api.caches.name_indexes.builder import fingerprint, open_or_build, reading, run_builder
from localidades_api.caches.name_indexes.folders import locked, remove_unreachable
from localidades_api.caches.name_indexes.imports import ImportIndexer
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.errors import CatalogueError
from localidades_api.importer.run import ImportReport
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import FILES, META
from tests.support.application import import_into
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.waiting import eventually_async


@pytest.fixture(autouse=True)
def every_catalogue_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAX_IN_THREAD", 0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the folder of indexes in the test's cache folder."""
    folder = tmp_path / f"names-{os.getuid()}"
    folder.mkdir(mode=0o700)
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


async def published(url: str) -> list[Release]:
    async with reading(url) as database:
        return (await get_release_snapshot(database)).every


def arguments_of_builder(root: Path) -> list[str]:
    """Return the arguments of a process that builds an index in a folder, or none."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            arguments = path.read_text().rstrip("\0").split("\0")
            if any(argument.startswith(f"{root}/") for argument in arguments):
                return arguments
    return []


def names_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.suffix != ".lock")


def replace_by_file(root: Path) -> None:
    root.rmdir()
    root.write_text("not a folder")


def files_of(index: Path) -> dict[str, bytes]:
    return {name: (index / name).read_bytes() for name in (*FILES, META)}


async def has_less_priority(root: Path, importing: asyncio.Task[ImportReport]) -> bool:
    """Wait for the process that builds an import's index, and for the import; return whether it has less priority."""
    arguments = await eventually_async(lambda: asyncio.to_thread(arguments_of_builder, root))
    await importing
    return arguments[-1] == "nice"


async def test_import_builds_the_index_that_the_database_gives(
    database: str, releases: list[Path], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_into(database, releases[0])
    indexer = ImportIndexer(database, tmp_path, always=True)
    await import_into(database, releases[1], indexer=indexer)
    importing = asyncio.create_task(import_into(database, releases[2], indexer=indexer))
    assert not await has_less_priority(root, importing)
    every = await published(database)
    assert names_in(root) == sorted(fingerprint(one, every) for one in every[1:])
    monkeypatch.setattr(builder, "MAX_IN_THREAD", 132)
    for release in every[1:]:
        built = tmp_path / fingerprint(release, every)
        (await open_or_build(built, database, release, every, nice=False)).close()
        assert files_of(root / built.name) == files_of(built)
    names = NameIndex(root / built.name)
    assert names.suggest("lugar 20 nuevo", kinds=["localidad"])
    assert names.suggest("villa hidalgo", kinds=["municipio"])
    names.close()


async def test_index_is_only_built_where_a_service_serves_the_database_and_with_less_priority(
    database: str, releases: list[Path], root: Path, tmp_path: Path
) -> None:
    await import_into(database, releases[0], indexer=ImportIndexer(database, tmp_path))
    (root / "another.list").write_text("0" * 24)
    await import_into(database, releases[1], indexer=ImportIndexer(database, tmp_path))
    assert names_in(root) == ["another.list"]
    every = await published(database)
    remove_unreachable(root, "service", [fingerprint(one, every) for one in every])
    indexer = ImportIndexer(database, tmp_path)
    importing = asyncio.create_task(import_into(database, releases[2], indexer=indexer))
    assert await has_less_priority(root, importing)
    every = await published(database)
    assert (root / fingerprint(every[2], every) / META).exists()


async def test_import_that_is_small_or_publishes_nothing_builds_no_index(
    database: str, releases: list[Path], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer = ImportIndexer(database, tmp_path, always=True)
    await import_into(database, releases[0], indexer=indexer, dry_run=True)
    with monkeypatch.context() as patch:
        patch.setattr(builder, "MAX_IN_THREAD", 132)
        await import_into(database, releases[0], indexer=indexer)
    assert names_in(root) == []
    few = write_catalogue(tmp_path / "catun_localidad_2023-01.csv", [Place("010010001", "Sola")])
    with pytest.raises(CatalogueError, match="lacks"):
        await import_into(database, few, indexer=indexer)
    # The index of one place may be complete before the import is refused; a service removes it then.
    assert not arguments_of_builder(root)


async def test_import_succeeds_without_an_index(
    database: str, releases: list[Path], root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replace_by_file(root)
    with caplog.at_level(logging.WARNING):
        await import_into(database, releases[0], indexer=ImportIndexer(database, tmp_path, always=True))
    assert [one.name for one in await published(database)] == ["2020-01"]
    assert "Can't index the names of release 2020-01 during its import" in caplog.text


async def test_interruption_after_the_publication_does_not_wait_for_the_index(
    database: str, releases: list[Path], root: Path, tmp_path: Path
) -> None:
    sha256 = hashlib.sha256(releases[0].read_bytes()).hexdigest()
    release = Release(id=1, name="2020-01", source="", sha256=sha256, published_at=datetime.now(UTC), states=0,
                      municipalities=0, localities=132)  # fmt: skip
    async with locked(root / f"{fingerprint(release, [])}.lock"):  # as if another process built it, for ever
        importing = asyncio.create_task(
            import_into(database, releases[0], indexer=ImportIndexer(database, tmp_path, always=True))
        )
        await eventually_async(lambda: published(database))
        assert await asyncio.wait([importing], timeout=0.5) == (set(), {importing})
        importing.cancel()
        assert (await importing).release == "2020-01"


async def test_cancelled_build_leaves_no_process_and_no_files(database: str, releases: list[Path], root: Path) -> None:
    await import_into(database, releases[0])
    every = await published(database)
    name = fingerprint(every[0], every)
    building = asyncio.create_task(run_builder(database, every[0].name, root / name, nice=False))
    await eventually_async(lambda: asyncio.to_thread(names_in, root))  # it has begun to write
    building.cancel()
    with pytest.raises(asyncio.CancelledError):
        await building
    assert await asyncio.to_thread(arguments_of_builder, root) == []
    assert names_in(root) == []
