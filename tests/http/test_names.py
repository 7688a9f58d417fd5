"""The index of names: built once on a machine, shared, kept up to date, and only needed for searches."""

import asyncio
import fcntl
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from localidades_api.caches.name_indexes import builder
from localidades_api.caches.name_indexes.builder import OutdatedIndexError, fingerprint
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
from tests.support.database import WHO_WAIT, connected
from tests.support.metrics import read_metrics
from tests.support.postgres import locked_in_thread, new_database, out_of_reach
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

SUGGEST = f"{LOCALIDADES}suggest/"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a cache folder for the test; return the folder of the indexes in it."""
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(tmp_path))
    return tmp_path / f"names-{os.getuid()}"


@pytest.fixture(scope="module")
def next_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a catalogue in which one place has another name."""
    places = many(132)
    changed = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in places]
    return write_catalogue(tmp_path_factory.mktemp("next") / "catun_localidad_2021-01.csv", changed)


@pytest.fixture(scope="module")
async def rolled_back(server: str, seeded: str, next_catalogue: Path) -> AsyncIterator[str]:
    """Yield a template database with release 2021-01, of which 2020-01 is the current one."""
    with new_database(server, seeded) as url:
        await import_into(url, next_catalogue)
        await publish_again(url, "2020-01")
        yield url


@pytest.fixture
def two_releases(server: str, rolled_back: str) -> Iterator[str]:
    """Yield this test's own database like that."""
    with new_database(server, rolled_back) as url:
        yield url


@pytest.fixture
async def index(two_releases: str) -> str:
    """Return the name of the index of 2021-01."""
    async with running_app(two_releases, in_background=False) as app:
        releases = app.state.services.releases
        return fingerprint(await releases.named("2021-01"), releases.every)


@contextmanager
def unfinished(folder: Path, name: str) -> Iterator[None]:
    """Keep the index of a name from being built, like another process that builds it, and requests from waiting."""
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder / f"{name}.lock", os.O_RDONLY | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builder, "MAX_IN_THREAD", 0)
            yield
    finally:
        os.close(descriptor)


async def suggested(client: httpx.AsyncClient, q: str) -> list[dict[str, Any]]:
    answer = await client.get(SUGGEST, params={"q": q})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def assert_refused(client: httpx.AsyncClient, target: str) -> None:
    answer = await client.get(target)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems#search-unavailable")
    assert answer.headers["retry-after"] == "5"


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


async def test_index_is_built_once_and_rebuilt_if_it_is_damaged(seeded_database: str, folder: Path) -> None:
    built_at = []
    for _ in range(3):
        async with running_app(seeded_database) as app, client_of(app) as client:
            assert (await suggested(client, "asientos"))[0]["nombre"] == "Asientos"
        [name] = names_of(folder)
        meta = folder / name / META
        built_at.append(meta.stat().st_mtime_ns)
        if len(built_at) == 2:
            meta.write_text("{")
    assert built_at[0] == built_at[1] < built_at[2]


async def test_index_stays_open_while_a_request_waits_for_the_database(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        paths = (await client.get("/openapi.json")).json()["paths"].items()
        named = {path: {one["name"] for one in get["get"].get("parameters", ())} for path, get in paths if "get" in get}
        targets = [
            f"{path}?search=lugar&format={format_}{'&bbox=-180,0,0,90' if 'bbox' in names else ''}"
            for path, names in named.items()
            if "search" in names
            for format_ in (("csv",) if "download" in path else ("json", "api"))
        ]
        assert len(targets) >= 7
        async with locked_in_thread(seeded_database), connected(seeded_database) as other:
            asked = [asyncio.create_task(client.get(target)) for target in targets]
            await eventually_async(lambda: other.fetchval(WHO_WAIT))
            await app.state.services.names.close()  # as when other releases take its place
        assert {target: (await one).status_code for target, one in zip(targets, asked, strict=True)} == dict.fromkeys(
            targets, 200
        )


async def test_searches_work_without_the_database(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        known = (await client.get(f"{LOCALIDADES}?page_size=1000")).json()["results"]
        before = await suggested(client, "lugar 1")
        assert len(before) == 10
        with out_of_reach(server, seeded_database):
            assert await suggested(client, "lugar 1") == before
            for filters in ("", "&municipio_id=02001&page_size=1"):
                results = (await client.get(f"{LOCALIDADES}?search=lugar{filters}")).json()["results"]
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


# In the new release, Nuevo Asiento is the cabecera of municipio 1002.
AREAS = [f"/api/census/municipios/?search=nuevo asiento{more}" for more in ("", "&format=api", "&fields=id")]
SEARCHES = [
    (f"{SUGGEST}?q=asientos, asientos&limit=1", None),
    (f"{SUGGEST}?q=asientos, asientos&limit=1&format=api", None),
    (f"{LOCALIDADES}?search=asientos asientos", None),
    (f"{LOCALIDADES}?search=asientos asientos&format=api", None),
    (f"{LOCALIDADES}?search=asientos asientos&fields=nombre", None),
    (f"{LOCALIDADES}download/?search=asientos asientos&format=ndjson", None),
    (f"{LOCALIDADES}match/", {"rows": [{"nombre": "asientos"}]}),
    ('/api/census/reconcile/?queries={"0":{"query":"asientos"}}', None),
    ("/api/census/reconcile/suggest/entity/?prefix=asientos, asientos", None),
]


async def assert_searched(client: httpx.AsyncClient, release: str) -> None:
    """Check that every search is in a release."""
    for target, rows in [*SEARCHES, *((target, None) for target in AREAS)]:
        answer = await client.request("POST" if rows else "GET", target, json=rows)
        assert (answer.status_code, answer.headers["catalogue-release"]) == (200, release), target
        found = "1002" in answer.text if target in AREAS else "Nuevo Asiento" in answer.text
        assert found is (release == "2021-01"), target
        assert target in AREAS or "Asiento" in answer.text, target


async def test_previous_release_is_searched_until_the_new_one_is_indexed(
    two_releases: str, folder: Path, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Searches in the new one are refused, which is counted and logged once."""
    caplog.set_level(logging.WARNING)

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name.startswith("localidades_api")]

    async with running_app(two_releases) as app, client_of(app) as client:

        async def count() -> float:
            metrics = read_metrics((await client.get("/metrics")).text)
            return metrics["requests_refused_total", frozenset({"search-unavailable"})]

        before = await count()
        with unfinished(folder, index):
            await publish_again(two_releases, "2021-01")
            await await_release(client, "2021-01")
            await assert_searched(client, "2020-01")
            assert (await client.get(f"{LOCALIDADES}10020001/")).json()["nombre"] == "Nuevo Asiento"
            refusing = [*SEARCHES[:-2], *((target, None) for target in (*AREAS, "/api/census/estados/?search=zac"))]
            for target, rows in refusing:
                named = f"{target}{'&' if '?' in target else '?'}release=2021-01"
                assert (await client.request("POST" if rows else "GET", named, json=rows)).status_code == 503, target
            await assert_refused(client, f"{SUGGEST}?q=asientos&release=2021-01")
            assert (await client.get("/api/census/municipios/?release=2021-01&sort=nombre")).status_code == 200
            assert logged() == ["The names of release 2021-01 are not indexed yet: searches in it are refused."]
        await await_searched(client, "2021-01")
        refused = await count() - before
        assert refused > len(refusing)
        assert logged()[1:] == [f"The names of release 2021-01 are indexed: {refused:.0f} searches were refused."]
        await assert_searched(client, "2021-01")


async def test_startup_waits_for_the_index(two_releases: str, folder: Path, index: str) -> None:
    await publish_again(two_releases, "2021-01")
    async with running_app(two_releases, wants_names=False) as app, client_of(app) as client:
        with unfinished(folder, index):
            await await_release(client, "2021-01")
            await assert_refused(client, "/startupz")
            assert (await client.get("/readyz")).status_code == 200
        await await_searched(client, "2021-01")
        answer = await client.get("/startupz")
        assert (answer.status_code, answer.json()["release"]) == (200, "2021-01")


async def test_after_a_rollback_the_bad_release_is_not_searched(two_releases: str, folder: Path) -> None:
    await publish_again(two_releases, "2021-01")
    async with running_app(two_releases) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        releases = app.state.services.releases
        with unfinished(folder, fingerprint(await releases.named("2020-01"), releases.every)):
            await publish_again(two_releases, "2020-01")
            await await_release(client, "2020-01")
            await assert_refused(client, f"{SUGGEST}?q=asientos")


async def test_index_of_a_removed_release_is_deleted_even_if_open(
    seeded_database: str, next_catalogue: Path, folder: Path
) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        indexes, old = app.state.services.names, app.state.services.releases.served
        before = names_of(folder)
        await import_into(seeded_database, next_catalogue)
        await await_searched(client, "2021-01")

        async def is_closing() -> bool:
            return indexes.held(old) is None

        async def is_forgotten() -> bool:
            return (await suggested(client, "asientos, asientos"))[0]["otro_nombre"] is None

        async def is_removed() -> bool:  # and so is that of 2021-01 with the names of 2020-01
            return len(names_of(folder)) == 1 and before[0] not in names_of(folder)

        async with indexes.using(old) as index:
            await retire(seeded_database, "2020-01")
            await eventually_async(is_closing)
            assert index.suggest("asientos")[0].nombre == "Asientos"
            assert set(before) <= set(names_of(folder))
        await eventually_async(is_forgotten)
        await eventually_async(is_removed)


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


@pytest.mark.tail  # a process of its own builds the index
async def test_index_overtaken_by_a_retirement_is_built_afterwards(
    two_releases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "MAX_IN_THREAD", 0)
    await publish_again(two_releases, "2021-01")
    async with running_app(two_releases, in_background=False) as app:
        services = app.state.services
        release = await services.releases.current()
        await retire(two_releases, "2020-01")
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
async def test_without_an_index_only_searches_are_503(seeded_database: str, caplog: pytest.LogCaptureFixture) -> None:
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:

        async def has_started() -> bool:
            return (await client.get("/startupz")).status_code == 200

        await eventually_async(has_started)
        for target in (f"{SUGGEST}?q=a", f"{LOCALIDADES}?search=a") * 2:
            await assert_refused(client, target)
        assert (await client.get(LOCALIDADES)).status_code == 200
    assert "Can't index the names of release 2020-01" in caplog.text
