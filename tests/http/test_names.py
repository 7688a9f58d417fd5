"""The index of names: built once on a machine, shared, kept up to date, and only needed for searches."""

import asyncio
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from localidades_api.catalogue.mercator import Tile
from localidades_api.catalogue.schemas import Release
from localidades_api.name_indexes import open_indexes
from localidades_api.name_indexes.build import fingerprint
from localidades_api.name_indexes.builder import OutdatedIndexError
from localidades_api.names.layout import META
from tests.support.application import (
    await_release,
    await_searched,
    client_of,
    import_into,
    publish_again,
    retire,
    running_app,
)
from tests.support.catalogue import many, write_catalogue
from tests.support.metrics import read_metrics
from tests.support.postgres import new_database, out_of_reach
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

SUGGEST = f"{LOCALIDADES}suggest/"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a cache folder for the test; return the folder of the indexes in it."""
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(tmp_path))
    return tmp_path / f"names-{os.getuid()}"


@pytest.fixture
def next_catalogue(tmp_path: Path) -> Path:
    """Return a catalogue in which one place has another name."""
    places = many(132)
    changed = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in places]
    return write_catalogue(tmp_path / "catun_localidad_2021-01.csv", changed)


async def suggested(client: httpx.AsyncClient, q: str, **parameters: str) -> list[dict[str, Any]]:
    answer = await client.get(SUGGEST, params={"q": q, **parameters})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def listed_at(folder: Path) -> list[int]:
    """Return when the services have listed their indexes, in nanoseconds."""
    return [path.stat().st_mtime_ns for path in folder.glob("*.list")]


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


async def test_index_is_built_once_and_reused_by_the_next_process(seeded_database: str, folder: Path) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        first = await suggested(client, "asientos")
        [name] = names_of(folder)
        built_at = (folder / name / META).stat().st_mtime_ns
        assert mode_of(folder) == 0o700
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert await suggested(client, "asientos") == first
        assert names_of(folder) == [name]
        assert (folder / name / META).stat().st_mtime_ns == built_at


async def test_searches_work_without_the_database(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        known = (await client.get(f"{LOCALIDADES}?page_size=1000")).json()["results"]
        before = await suggested(client, "lugar 1")
        assert len(before) == 10
        with out_of_reach(server, seeded_database):
            assert await suggested(client, "lugar 1") == before
            for filters in ("", "&municipio_id=02001&page_size=1"):
                answer = await client.get(f"{LOCALIDADES}?search=lugar{filters}")
                assert answer.status_code == 200
                results = answer.json()["results"]
                assert results
                assert [one for one in known if one in results] == results


async def test_search_includes_former_names_of_earlier_releases_only(
    seeded_database: str, next_catalogue: Path
) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        pinned = f"{LOCALIDADES}?search=nuevo asiento&release=2020-01"
        before = await client.get(pinned)
        assert before.json()["results"] == []
        await import_into(seeded_database, next_catalogue)
        await await_searched(client, "2021-01")
        [today] = (await client.get(f"{LOCALIDADES}?search=asientos asientos")).json()["results"]
        assert today["nombre"] == "Nuevo Asiento"
        again = await client.get(pinned, headers={"If-None-Match": before.headers["etag"]})
        assert (again.status_code, again.headers["etag"]) == (304, before.headers["etag"])


@contextmanager
def unfinished(folder: Path, name: str) -> Iterator[None]:
    """Keep the index of a name from being built, like another process that builds it."""
    descriptor = os.open(folder / f"{name}.lock", os.O_RDONLY | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@pytest.fixture
async def unindexed(seeded_database: str, next_catalogue: Path, folder: Path) -> str:
    """Import release 2021-01 without publishing it; return the name of the index that it lacks."""
    await import_into(seeded_database, next_catalogue)
    async with running_app(seeded_database) as app:
        releases = app.state.services.releases
        index = fingerprint(releases.served, releases.every)
    shutil.rmtree(folder / index)
    await publish_again(seeded_database, "2020-01")
    return index


SEARCHES = {
    "suggestions": (f"{SUGGEST}?q=asientos, asientos&limit=1", None),
    "suggestions, routed": (f"{SUGGEST}?q=asientos, asientos&limit=1&format=api", None),
    "list": (f"{LOCALIDADES}?search=asientos asientos", None),
    "list, a page": (f"{LOCALIDADES}?search=asientos asientos&format=api", None),
    "list, some columns": (f"{LOCALIDADES}?search=asientos asientos&fields=nombre", None),
    "download": (f"{LOCALIDADES}download/?search=asientos asientos&format=ndjson", None),
    "match": (f"{LOCALIDADES}match/", {"rows": [{"nombre": "asientos"}]}),
    "reconciliation": ('/api/census/reconcile/?queries={"0":{"query":"asientos"}}', None),
    "reconciliation, suggestions": ("/api/census/reconcile/suggest/entity/?prefix=asientos, asientos", None),
}


async def search(client: httpx.AsyncClient, kind: str) -> tuple[str, bool]:
    """Return the release of a search, and whether it found the new name."""
    target, rows = SEARCHES[kind]
    answer = await client.request("POST" if rows else "GET", target, json=rows)
    assert answer.status_code == 200, (kind, answer.text)
    assert "Asiento" in answer.text, kind
    return answer.headers["catalogue-release"], "Nuevo Asiento" in answer.text


async def test_previous_release_is_searched_until_the_new_one_is_indexed(
    seeded_database: str, folder: Path, unindexed: str
) -> None:
    async with running_app(seeded_database, database_timeout=2) as app, client_of(app) as client:
        with unfinished(folder, unindexed):
            await publish_again(seeded_database, "2021-01")
            await await_release(client, "2021-01")
            found = {kind: await search(client, kind) for kind in SEARCHES}
            assert found == dict.fromkeys(SEARCHES, ("2020-01", False))
            assert (await client.get(f"{LOCALIDADES}10020001/")).json()["nombre"] == "Nuevo Asiento"
            named = await client.get(SUGGEST, params={"q": "asientos", "release": "2021-01"})
            assert (named.status_code, named.json()["type"]) == (503, "/problems#search-unavailable")
        await await_searched(client, "2021-01")
        found = {kind: await search(client, kind) for kind in SEARCHES}
        assert found == dict.fromkeys(SEARCHES, ("2021-01", True))


async def test_search_of_areas_waits_for_the_names_of_its_release(
    seeded_database: str, folder: Path, unindexed: str
) -> None:
    """In the new release, Nuevo Asiento is the cabecera of municipio 1002."""
    targets = [f"/api/census/municipios/?search=nuevo asiento{more}" for more in ("", "&format=api", "&fields=id")]
    async with running_app(seeded_database, database_timeout=2) as app, client_of(app) as client:
        with unfinished(folder, unindexed):
            await publish_again(seeded_database, "2021-01")
            await await_release(client, "2021-01")
            for target in targets:
                before = await client.get(target)
                assert (before.status_code, before.headers["catalogue-release"]) == (200, "2020-01")
                assert "1002" not in before.text
            for target in (*targets, "/api/census/estados/?search=zac"):
                named = await client.get(f"{target}&release=2021-01")
                assert named.status_code == 503
                assert "search-unavailable" in named.text or "format=api" in target
            assert (await client.get("/api/census/municipios/?release=2021-01&sort=nombre")).status_code == 200
        await await_searched(client, "2021-01")
        for target in targets:
            after = await client.get(target)
            assert (after.status_code, after.headers["catalogue-release"]) == (200, "2021-01")
            assert "1002" in after.text


async def test_refused_searches_are_counted_and_logged_once(
    server: str,
    seeded_database: str,
    folder: Path,
    unindexed: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(open_indexes, "MAX_IN_THREAD", 0)  # no request waits

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name.startswith("localidades_api")]

    async with running_app(seeded_database) as app, client_of(app) as client:

        async def count() -> float:
            metrics = read_metrics((await client.get("/metrics")).text)
            return metrics["requests_refused_total", frozenset({"search-unavailable"})]

        before = await count()
        with unfinished(folder, unindexed):
            await publish_again(seeded_database, "2021-01")
            await await_release(client, "2021-01")
            for target, rows in SEARCHES.values():
                named = f"{target}{'&' if '?' in target else '?'}release=2021-01"
                answer = await client.request("POST" if rows else "GET", named, json=rows)
                if "/reconcile/" not in target:
                    assert answer.status_code == 503, target
            assert await count() - before >= len(SEARCHES) - 2
            await asyncio.sleep(0.5)  # lines of requests are written every 0.2 s
            assert logged() == ["The names of release 2021-01 are not indexed yet: searches in it are refused."]
            assert " 503 " not in capsys.readouterr().err
        await await_searched(client, "2021-01")
        refused = await count() - before
        assert logged()[1:] == [f"The names of release 2021-01 are indexed: {refused:.0f} searches were refused."]
        with out_of_reach(server, seeded_database):
            assert (await client.get(f"{LOCALIDADES}?page=2")).status_code == 503

            async def is_logged() -> bool:
                return " list_localities 503 " in capsys.readouterr().err

            await eventually_async(is_logged)


async def test_map_appears_once_names_are_indexed(seeded_database: str, folder: Path, unindexed: str) -> None:
    """Each takes a processor, and requests need the other one."""
    async with running_app(seeded_database, page_cache_bytes=10**6) as app, client_of(app) as client:
        services = app.state.services

        async def is_drawn() -> bool:
            return services.tiles.held(services.releases.served, Tile(0, 0, 0)) is not None

        with unfinished(folder, unindexed):
            await publish_again(seeded_database, "2021-01")
            await await_release(client, "2021-01")
            await asyncio.sleep(0.5)  # nothing is drawn meanwhile; a map drawn too early would have appeared by then
            assert not await is_drawn()
        await eventually_async(is_drawn)


async def test_startup_waits_for_the_index(seeded_database: str, folder: Path, unindexed: str) -> None:
    await publish_again(seeded_database, "2021-01")
    with unfinished(folder, unindexed):
        async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
            await await_release(client, "2021-01")
            answer = await client.get("/startupz")
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")
            assert (await client.get("/readyz")).status_code == 200
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        await await_searched(client, "2021-01")
        answer = await client.get("/startupz")
        assert (answer.status_code, answer.json()["release"]) == (200, "2021-01")


async def test_startup_does_not_wait_for_an_index_that_cannot_be_built(
    seeded_database: str, folder: Path, unindexed: str
) -> None:
    await publish_again(seeded_database, "2021-01")
    (folder / unindexed).write_text("not a folder")
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:

        async def has_started() -> bool:
            return (await client.get("/startupz")).status_code == 200

        await eventually_async(has_started)
        assert (await client.get(SUGGEST, params={"q": "asientos"})).status_code == 503


async def test_removed_release_is_no_longer_searched(seeded_database: str, folder: Path, unindexed: str) -> None:
    async with running_app(seeded_database, database_timeout=2) as app, client_of(app) as client:
        after = await app.state.services.releases.named("2021-01")
        alone = fingerprint(after, [after])  # without the other's names it has another index
        with unfinished(folder, unindexed), unfinished(folder, alone):
            await publish_again(seeded_database, "2021-01")
            await await_release(client, "2021-01")
            assert await search(client, "list") == ("2020-01", False)
            await retire(seeded_database, "2020-01")

            async def is_gone() -> bool:
                return (await client.head(LOCALIDADES, params={"release": "2020-01"})).status_code == 404

            await eventually_async(is_gone)
            answer = await client.get(LOCALIDADES, params={"search": "asientos"})
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")
        await await_searched(client, "2021-01")


async def test_republished_release_reuses_its_index_in_a_new_process(
    seeded_database: str, next_catalogue: Path, folder: Path
) -> None:
    await import_into(seeded_database, next_catalogue)
    async with running_app(seeded_database, database_timeout=2) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        releases = app.state.services.releases
        with unfinished(folder, fingerprint(await releases.named("2020-01"), releases.every)):
            await publish_again(seeded_database, "2020-01")
            await await_release(client, "2020-01")
            answer = await client.get(SUGGEST, params={"q": "asientos"})
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")


async def test_damaged_index_is_rebuilt(seeded_database: str, folder: Path) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        expected = await suggested(client, "lugar 2")
    [name] = names_of(folder)
    (folder / name / META).write_text("{")
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert await suggested(client, "lugar 2") == expected
    assert names_of(folder) == [name]


async def test_index_is_unaffected_by_later_releases(seeded_database: str, next_catalogue: Path, folder: Path) -> None:
    """It has the names of earlier releases and nothing else."""
    async with running_app(seeded_database) as app, client_of(app) as client:
        [of_first] = names_of(folder)
        await import_into(seeded_database, next_catalogue)
        await await_searched(client, "2021-01")
        assert len(await suggested(client, "asientos", release="2020-01")) > 0
        both = names_of(folder)
        assert (len(both), of_first in both) == (2, True)
        await publish_again(seeded_database, "2020-01")
        await await_release(client, "2020-01")
        await retire(seeded_database, "2021-01")
        await eventually_async(lambda: have_become(folder, [of_first]))
        assert (await suggested(client, "asientos"))[0]["nombre"] == "Asientos"


async def have_become(folder: Path, names: list[str]) -> bool:
    return names_of(folder) == names


async def test_index_of_a_removed_release_is_deleted_even_if_open(
    seeded_database: str, next_catalogue: Path, folder: Path
) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        indexes, old = app.state.services.names, app.state.services.releases.served
        before = names_of(folder)
        await import_into(seeded_database, next_catalogue)
        await await_searched(client, "2021-01")
        async with indexes.using(old) as index:
            await retire(seeded_database, "2020-01")
            await eventually_async(lambda: is_closing(indexes, old))
            assert index.suggest("asientos")[0].nombre == "Asientos"
            assert set(before) <= set(names_of(folder))

        async def is_removed() -> bool:  # and so is that of 2021-01 with the names of 2020-01
            return len(names_of(folder)) == 1 and before[0] not in names_of(folder)

        await eventually_async(is_removed)


async def is_closing(indexes: open_indexes.NameIndexes, release: Release) -> bool:
    return indexes.held(release) is None


async def has_none(folder: Path, name: str) -> bool:
    return name not in names_of(folder)


async def test_indexes_of_another_service_are_kept(
    server: str, seeded_database: str, migrated: str, next_catalogue: Path, folder: Path
) -> None:
    """For a week, stopped or not. An index of both is removed once neither uses it."""
    with new_database(server, migrated) as other:
        await import_into(other, write_catalogue(next_catalogue.with_name("catun_localidad_2019-01.csv"), many(120)))
        async with running_app(other):
            [of_other] = names_of(folder)
    async with running_app(seeded_database) as app, client_of(app) as client:
        [of_first] = set(names_of(folder)) - {of_other}
        await import_into(seeded_database, next_catalogue)
        await await_searched(client, "2021-01")
        await retire(seeded_database, "2020-01")
        await eventually_async(lambda: has_none(folder, of_first))
        assert of_other in names_of(folder)
    long_ago = time.time() - 8 * 86_400
    for listed in await asyncio.to_thread(os.listdir, folder):
        with suppress(FileNotFoundError):  # a thread of the service that has just stopped may be replacing its list
            os.utime(folder / listed, (long_ago, long_ago))
    async with running_app(seeded_database):
        await eventually_async(lambda: has_none(folder, of_other))
        assert len(names_of(folder)) == 1


async def test_unlisted_index_is_removed_unless_a_process_has_it_open_or_builds_it(
    seeded_database: str, folder: Path
) -> None:
    is_open, unused, killed, being_built = (folder / name for name in ("0open", "0unused", ".0killed-x", ".0built-x"))
    for index in (is_open, unused, killed, being_built):
        index.mkdir(parents=True)
    descriptor = os.open(is_open, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with unfinished(folder, "0built"):
            async with running_app(seeded_database):
                left = names_of(folder)
    finally:
        os.close(descriptor)
    assert {"0open", ".0built-x"} < set(left)
    assert (len(left), unused.exists(), killed.exists()) == (3, False, False)


async def test_index_held_open_by_another_process_is_not_checked_at_every_poll(
    seeded_database: str, folder: Path
) -> None:
    (folder / "0open").mkdir(parents=True)
    descriptor = os.open(folder / "0open", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        async with running_app(seeded_database):
            await asyncio.sleep(1)  # the first polls
            before = listed_at(folder)
            await asyncio.sleep(2)  # four polls
            assert listed_at(folder) == before != []
    finally:
        os.close(descriptor)


async def test_replaced_index_stays_open_while_in_use(seeded_database: str, next_catalogue: Path) -> None:
    await import_into(seeded_database, next_catalogue)
    async with running_app(seeded_database) as app, client_of(app) as client:
        await await_searched(client, "2021-01")
        indexes, release = app.state.services.names, app.state.services.releases.served

        async def is_made_anew() -> bool:
            return (await indexes.get(release)) is not index

        async with indexes.using(release) as index:
            await retire(seeded_database, "2020-01")  # it has its names
            await eventually_async(is_made_anew)
            assert index.suggest("asientos, asientos")[0].match == "former"
        assert (await suggested(client, "asientos, asientos"))[0]["otro_nombre"] is None
        with pytest.raises(ValueError, match=r"closed|released"):
            index.suggest("lugar 3")


async def test_requests_do_not_wait_for_a_large_index(
    seeded_database: str, folder: Path, unindexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_indexes, "MAX_IN_THREAD", 0)
    await publish_again(seeded_database, "2021-01")
    with unfinished(folder, unindexed):
        async with (
            running_app(seeded_database, wants_names=False, database_timeout=60) as app,
            client_of(app) as client,
        ):
            await await_release(client, "2021-01")

            async def is_refused() -> bool:  # a request before the build has begun may wait
                with suppress(TimeoutError):
                    async with asyncio.timeout(5):
                        answer = await client.get(SUGGEST, params={"q": "asientos"})
                        return (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")
                return False

            await eventually_async(is_refused)


async def test_index_overtaken_by_a_retirement_is_built_afterwards(
    seeded_database: str, next_catalogue: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_indexes, "MAX_IN_THREAD", 0)
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(folder.parent))
    await import_into(seeded_database, next_catalogue)
    async with running_app(seeded_database, in_background=False) as app:
        services = app.state.services
        release = await services.releases.current()
        await retire(seeded_database, "2020-01")
        with pytest.raises(OutdatedIndexError):
            await services.names.prepare(release)
        await services.releases.refresh()
        await services.names.prepare(release)
        assert services.names.is_ready(release)


@pytest.fixture
def unusable(folder: Path) -> None:
    """Put a file in place of the folder of indexes."""
    folder.write_text("not a folder")


@pytest.mark.usefixtures("unusable")
async def test_without_an_index_only_searches_are_503(
    seeded_database: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        for _ in range(5):
            answer = await client.get(SUGGEST, params={"q": "a"})
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")
            assert answer.headers["retry-after"] == "5"
            searched = await client.get(LOCALIDADES, params={"search": "a"})
            assert (searched.status_code, searched.json()["type"]) == (503, "/problems#search-unavailable")
        assert (await client.get(LOCALIDADES)).status_code == 200
        await asyncio.to_thread(folder.unlink)  # it could be indexed now, but no request tries
        assert (await client.get(SUGGEST, params={"q": "a"})).status_code == 503
    assert "Can't index the names of release 2020-01" in caplog.text
