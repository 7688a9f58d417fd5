"""The index of names: fetched once on a machine, shared, and only needed for searches."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from localidades_api.caches import name_indexes, release_poller
from localidades_api.caches.index_folders import locked_by_thread
from localidades_api.names.files.layout import META
from tests.support.application import (
    await_release,
    await_searched,
    await_status,
    client_of,
    complete,
    import_into,
    publish_again,
    retire,
    running_app,
)
from tests.support.catalogue import many, write_catalogue
from tests.support.database import WHO_WAIT, connected
from tests.support.metrics import read_metrics
from tests.support.postgres import locked_in_thread, new_database, out_of_reach, run_sql
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


@contextmanager
def unfetched(folder: Path) -> Iterator[None]:
    """Keep indexes from being fetched, like another process that is fetching one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with locked_by_thread(folder):
        yield


async def await_newest(app: FastAPI, name: str) -> None:
    """Wait until the application has noticed a publication."""
    releases = app.state.services.releases
    await eventually_async(lambda: releases.newest is not None and releases.newest.name == name)


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


async def forget_index(url: str, release: str) -> None:
    """Take a release's index out of the database, as if another version had imported it."""
    await run_sql(url, "DELETE FROM name_index USING releases WHERE id = release_id AND releases.name = $1", release)


async def test_index_is_fetched_once_and_again_if_it_is_damaged(seeded_database: str, folder: Path) -> None:
    fetched_at = []
    for _ in range(3):
        async with running_app(seeded_database) as app, client_of(app) as client:
            assert (await suggested(client, "asientos"))[0]["nombre"] == "Asientos"
        [name] = names_of(folder)
        meta = folder / name / META
        fetched_at.append(meta.stat().st_ctime_ns)
        if len(fetched_at) == 2:
            meta.write_text("{")
    assert fetched_at[0] == fetched_at[1] < fetched_at[2]


async def test_index_stays_open_while_a_request_waits_for_the_database(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        paths = (await client.get("/openapi.json")).json()["paths"].items()
        named = {
            path: {part["name"] for part in get["get"].get("parameters", ())} for path, get in paths if "get" in get
        }
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
        statuses = {target: (await answer).status_code for target, answer in zip(targets, asked, strict=True)}
        assert statuses == dict.fromkeys(targets, 200)


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
                assert [record for record in known if record in results] == results


async def test_search_includes_former_names_of_earlier_releases_only(
    seeded_database: str, next_catalogue: Path
) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        pinned = f"{LOCALIDADES}?search=nuevo asiento&release=2020-01"
        before = await client.get(pinned)
        assert before.json()["results"] == []
        await import_into(seeded_database, next_catalogue)
        await await_release(client, "2021-01")
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
        is_newer = "1002" in answer.text if target in AREAS else "Nuevo Asiento" in answer.text
        assert is_newer is (release == "2021-01"), target
        assert target in AREAS or "Asiento" in answer.text, target


async def test_new_release_is_listed_and_searched_together(
    two_releases: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_poller, "ACTIVATION_TIMEOUT", 0.1)
    async with running_app(two_releases, page_cache_bytes=1_000_000) as app, client_of(app) as client:
        services = app.state.services
        with unfetched(folder):
            await publish_again(two_releases, "2021-01")
            await await_newest(app, "2021-01")
            await asyncio.sleep(0.5)  # longer than it takes to prepare the rest
            assert services.pages.held(services.releases.served)
            await assert_searched(client, "2020-01")
            assert (await client.get(f"{LOCALIDADES}10020001/")).json()["nombre"] == "Asientos"
        await await_release(client, "2021-01")
        await assert_searched(client, "2021-01")
        assert (await client.get(f"{LOCALIDADES}10020001/")).json()["nombre"] == "Nuevo Asiento"


async def test_release_without_an_index_is_listed_and_searched_once_it_has_one(
    two_releases: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches are refused meanwhile, which is counted and logged once."""
    monkeypatch.setattr(name_indexes, "_RETRY_INTERVAL", 0.3)
    caplog.set_level(logging.WARNING)

    def logged(start: str) -> list[str]:
        return [message for record in caplog.records if (message := record.getMessage()).startswith(start)]

    async with running_app(two_releases) as app, client_of(app) as client:

        async def count() -> float:
            metrics = read_metrics((await client.get("/metrics")).text)
            return metrics["requests_refused_total", frozenset({"search-unavailable"})]

        before = await count()
        await forget_index(two_releases, "2021-01")
        await publish_again(two_releases, "2021-01")
        await await_release(client, "2021-01")
        assert (await client.get(f"{LOCALIDADES}10020001/")).json()["nombre"] == "Nuevo Asiento"
        refusing = [*SEARCHES[:-2], *((target, None) for target in (*AREAS, "/api/census/estados/?search=zac"))]
        for target, rows in refusing:
            assert (await client.request("POST" if rows else "GET", target, json=rows)).status_code == 503, target
        await assert_refused(client, f"{SUGGEST}?q=asientos")
        assert (await client.get("/api/census/municipios/?sort=nombre")).status_code == 200
        assert (await client.get("/startupz")).status_code == 200
        await complete(two_releases)
        await await_searched(client, "2021-01")
        refused = await count() - before
        assert refused > len(refusing)
        await assert_searched(client, "2021-01")
    missing = "Can't fetch the names of release 2021-01: the database has none for this version: run `localidades-api"
    assert logged(missing)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE name_index SET bytes = overlay(bytes PLACING '\\x00' FROM 9)",
        "UPDATE name_index SET bytes = substr(bytes, 2)",
        "UPDATE name_index SET part = 1",
    ],
)
async def test_damaged_index_is_not_served(
    seeded_database: str, folder: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    await run_sql(seeded_database, damage)
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        await assert_refused(client, f"{SUGGEST}?q=asientos")
        assert (await client.get(LOCALIDADES)).status_code == 200
    assert "the database has not all of it as it was stored: run `localidades-api migrate`" in caplog.text
    assert names_of(folder) == []


async def test_startup_waits_for_the_index(two_releases: str, folder: Path) -> None:
    async with running_app(two_releases, wants_names=False) as app, client_of(app) as client:
        with unfetched(folder):
            await await_release(client, "2020-01")
            await assert_refused(client, "/startupz")
            assert (await client.get("/readyz")).status_code == 200
        await await_searched(client, "2020-01")
        answer = await client.get("/startupz")
        assert (answer.status_code, answer.json()["release"]) == (200, "2020-01")


async def test_rows_sent_during_a_publication_are_of_one_release(two_releases: str) -> None:
    """tests/model has short requests at any moment."""
    some = b'{"nombre":"Asientos"}\n' * 10
    async with running_app(two_releases) as app, client_of(app) as client:

        async def rows() -> AsyncIterator[bytes]:
            yield some
            await publish_again(two_releases, "2021-01")
            await await_searched(client, "2021-01")
            yield some

        headers = {"Content-Type": "application/x-ndjson"}
        answer = await client.post(f"{LOCALIDADES}match/", content=rows(), headers=headers)
    matches = [json.loads(line) for line in answer.text.splitlines()]
    labels = [match["label"] or match["candidates"][0]["label"] for match in matches]
    assert len(labels) == 20
    name = {"2020-01": "Asientos", "2021-01": "Nuevo Asiento"}[answer.headers["catalogue-release"]]
    assert {label.partition(",")[0] for label in labels} == {name}


async def test_retirement_changes_no_other_index_and_closes_its_own(two_releases: str) -> None:
    await publish_again(two_releases, "2021-01")
    target = f"{SUGGEST}?q=asientos, asientos"
    async with running_app(two_releases) as app, client_of(app) as client:
        indexes, old = app.state.services.names, await app.state.services.releases.named("2020-01")
        before = await client.get(target)
        async with indexes.using(old) as index:
            await retire(two_releases, "2020-01")
            await eventually_async(lambda: indexes.held(old) is None)
            assert index.suggest("asientos")[0].nombre == "Asientos"
        again = await client.get(target, headers={"If-None-Match": before.headers["etag"]})
        assert (before.status_code, again.status_code) == (200, 304)


@pytest.fixture
def unusable(folder: Path) -> None:
    """Put a file in place of the folder of indexes."""
    folder.write_text("not a folder")


@pytest.mark.usefixtures("unusable")
async def test_without_an_index_only_searches_are_503(seeded_database: str, caplog: pytest.LogCaptureFixture) -> None:
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        await await_status(client, "/startupz")
        for target in (f"{SUGGEST}?q=a", f"{LOCALIDADES}?search=a") * 2:
            await assert_refused(client, target)
        assert (await client.get(LOCALIDADES)).status_code == 200
    assert "Can't fetch the names of release 2020-01" in caplog.text
