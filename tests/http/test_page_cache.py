"""The page cache: the pages of the served release, which don't need the database."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from fastapi import FastAPI

from localidades_api.api import Services
from localidades_api.caches import release_poller
from localidades_api.catalogue.schemas import LocalityPage
from tests.support.application import await_release, client_of, database_with, import_into, running_app
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.database import WHO_WAIT, connected
from tests.support.postgres import locked_in_thread, run_sql
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES

ENOUGH = 1_000_000


def pages_of(app: FastAPI) -> list[bytes]:
    """Return the cached pages of the served release."""
    services: Services = app.state.services
    served = services.releases.served
    held = services.pages.held(served) if served else None
    return [page for page in held.pages if page] if held else []


async def await_warm(app: FastAPI) -> None:
    """Wait until every page is cached."""
    await eventually_async(lambda: len(pages_of(app)) == 3)


async def test_page_is_served_to_the_others_if_the_first_client_disconnects(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        await client.get(f"{LOCALIDADES}?page=9")  # the release is known now
        async with connected(seeded_database) as other:
            async with locked_in_thread(seeded_database, "localities"):
                first, second = (asyncio.create_task(client.get(LOCALIDADES)) for _ in range(2))
                await eventually_async(lambda: other.fetchval(WHO_WAIT))
                first.cancel()
            assert (await second).content.startswith(b'{"quantity":132')


async def test_small_cache_holds_what_fits_and_serves_the_rest(seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=9_000) as app, client_of(app) as client:
        held = await eventually_async(lambda: pages_of(app))
        bodies = [(await client.get(f"{LOCALIDADES}?page={number}")).json()["results"] for number in (1, 2, 3)]
        assert [len(body) for body in bodies] == [50, 50, 32]
        assert len(pages_of(app)) == len(held) < 3


def next_catalogue(folder: Path) -> Path:
    """Write a catalogue with one place more."""
    return write_catalogue(folder / "catun_localidad_2021-01.csv", [*many(132), Place("010019997", "Nuevo")])


async def test_pages_follow_the_last_of_quick_publications(seeded_database: str, tmp_path: Path) -> None:
    await import_into(seeded_database, next_catalogue(tmp_path))
    async with running_app(seeded_database, page_cache_bytes=ENOUGH, release_poll=0.01) as app:
        for name in ("2020-01", "2021-01") * 10:
            choose = "UPDATE current_release SET release_id = (SELECT id FROM releases WHERE name = $1)"
            await run_sql(seeded_database, choose, name)
        services: Services = app.state.services
        for _ in range(3):  # one poll began before the last change, one noticed it, one came after it
            before = services.releases.checked_at
            while services.releases.checked_at == before:  # noqa: ASYNC110  # it has no event
                await asyncio.sleep(0.001)
        await await_warm(app)
        assert b'"quantity":133' in pages_of(app)[2]
        assert services.pages.gauges()["page_cache_pages",] == 3


# All characters that a line of the file can hold, whether JSON escapes them or not.
CHARACTERS = [chr(code) for code in (*range(1, 0xD800), *range(0xE000, 0x10000)) if chr(code) not in '\n\r"']
NAMES = [f"A{''.join(CHARACTERS[start : start + 60])}z" for start in range(0, len(CHARACTERS), 60)]


async def test_json_from_postgres_equals_that_of_the_models(server: str, migrated: str) -> None:
    """It is valid for the models, and identical to their own serialization."""
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate([*NAMES, "\\/\U0001f600'"], 1)]
    names = []
    with database_with(server, migrated, {"2020-01": places}) as url:
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            for number in range(1, -(-len(places) // 50) + 1):
                body = (await client.get(f"{LOCALIDADES}?page={number}")).content
                page = LocalityPage.model_validate_json(body, strict=True)
                assert page.model_dump_json().encode() == body
                names += [record.nombre for record in page.results]
    assert names == [place.nombre for place in places]


@pytest.mark.parametrize(
    ("before", "then", "the_other"),
    [
        pytest.param(["2020-01"], "2021-01", "RETURN_TIMEOUT", id="a new one"),
        pytest.param(["2021-01"], "2020-01", "ACTIVATION_TIMEOUT", id="an earlier one", marks=pytest.mark.tail),
        pytest.param(["2021-01", "2020-01"], "2021-01", "ACTIVATION_TIMEOUT", id="a return", marks=pytest.mark.tail),
    ],
)
async def test_release_is_served_even_if_its_pages_cannot_be_preloaded(
    seeded_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[str], then: str, the_other: str
) -> None:
    await import_into(seeded_database, next_catalogue(tmp_path))
    numbers = {"2020-01": 1, "2021-01": 2}
    publish = "UPDATE current_release SET release_id = $1"
    options = {"page_cache_bytes": ENOUGH, "database_timeout": 60}
    await run_sql(seeded_database, publish, numbers[before[0]])
    async with running_app(seeded_database, **options) as app, client_of(app) as client:
        for name in before:
            await run_sql(seeded_database, publish, numbers[name])
            await await_release(client, name)
            await await_warm(app)
        monkeypatch.setattr(release_poller, the_other, 60)  # the timeout under test must end the wait
        async with connected(seeded_database) as other, other.transaction():
            await other.execute(f"LOCK TABLE localities_r{numbers[then]} IN ACCESS EXCLUSIVE MODE")
            await run_sql(seeded_database, publish, numbers[then])
            async with asyncio.timeout(15):  # it is 1.2 s at most; the lock is waited for twice as long as that
                while (await client.get("/api/census/")).headers["catalogue-release"] != then:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert pages_of(app) == []
        await await_warm(app)


@pytest.mark.parametrize("target", [f"{LOCALIDADES}?page=2", "/api/census/releases/2020-01/changes/?since=2020-01"])
async def test_fetch_ends_with_the_application(seeded_database: str, target: str) -> None:
    """Its client may have disconnected; its connection must be returned."""
    before = asyncio.all_tasks()
    options = {"in_background": False, "database_timeout": 30}
    async with AsyncExitStack() as locks:
        async with running_app(seeded_database, **options) as app, connected(seeded_database) as other:
            client = client_of(app)
            await client.head("/api/census/")  # the release is known now
            await locks.enter_async_context(locked_in_thread(seeded_database, "localities, comparisons"))
            fetching = asyncio.create_task(client.get(target))
            await eventually_async(lambda: other.fetchval(WHO_WAIT))
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

        # While the tables are still locked. SQLAlchemy closes the connection of a cancelled task in another task, and
        # another test may have left an ended one.
        await eventually_async(lambda: asyncio.all_tasks() <= before, within=20)
