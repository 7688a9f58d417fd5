"""Publications, older releases, and an unreachable database, as clients see them."""

import asyncio
import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from localidades_api.database.embedded_postgres import find_binaries
from localidades_api.releases import tracker
from tests.support.application import (
    await_answer,
    await_release,
    await_status,
    client_of,
    import_into,
    publish_again,
    recorded_statements,
    running_app,
    walk,
)
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.commands import assert_error, invoke
from tests.support.database import connected, photograph
from tests.support.pages import Page
from tests.support.postgres import execute, name_of, new_database, run_sql
from tests.support.records import in_order, listed
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
POINT_AT = "UPDATE current_release SET release_id = (SELECT id FROM releases WHERE name = $1)"
SMALL = many(132)
# Other places with the same keys, and fewer, so that pages of the two releases differ.
NEXT = [
    Place(place.cvegeo, f"Otro {place.cvegeo}", nom_ent=place.nom_ent, nom_abr=place.nom_abr)
    for place in SMALL[:1] + SMALL[6:]
]
RECORDS = {name: [listed(p) for p in in_order(places)] for name, places in (("2020-01", SMALL), ("2021-01", NEXT))}


@pytest.fixture(scope="module")
def next_catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a release that comes after the small catalogue's."""
    return write_catalogue(tmp_path_factory.mktemp("next") / "catun_localidad_2021-01.csv", NEXT)


@pytest.fixture(scope="module")
async def both(server: str, seeded: str, next_catalogue: Path) -> AsyncIterator[str]:
    """Yield a template database with both releases."""
    with new_database(server, seeded) as url:
        await import_into(url, next_catalogue)
        yield url


@pytest.fixture
def two_releases(server: str, both: str) -> Iterator[str]:
    """Yield this test's own database with two releases."""
    with new_database(server, both) as url:
        yield url


def assert_unavailable(answer: httpx.Response) -> None:
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
    problem = answer.json()
    assert (problem["type"], problem["detail"]) == ("/problems#database-unavailable", "The database does not answer.")


# -- Releases


async def recreate(server: str, url: str, template: str) -> None:
    """Replace a database, whose connections end, by a copy of a template."""
    await run_sql(server, f"DROP DATABASE {name_of(url)} WITH (FORCE)")
    await run_sql(server, f"CREATE DATABASE {name_of(url)} TEMPLATE {name_of(template)}")


async def test_tables_and_first_publication_are_picked_up_by_a_running_service(
    server: str, migrated: str, empty_database: str, small_catalogue: Path, next_catalogue: Path
) -> None:
    async with running_app(empty_database) as app, client_of(app) as client:
        answer = await client.get(LOCALIDADES)
        assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (503, True)
        await recreate(server, empty_database, migrated)
        await await_answer(client, LOCALIDADES, lambda answer: answer.json()["type"] == "/problems#no-release")
        for target in (LOCALIDADES, INDEX):
            page = await client.get(target, headers={"Accept": "text/html"})
            assert (page.status_code, page.headers["retry-after"]) == (503, "30")
            assert "No catalogue has been published yet." in page.text
            assert (await client.get(f"{target}?release=2020-01")).status_code == 404
        for path in ("tiles/0/0/0.mvt", "tiles.json", "backdrop.svg"):
            assert (await client.get(f"{LOCALIDADES}{path}")).status_code == 503, path
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["type"]) == (503, "/problems#no-release")
        assert "release" not in ready.json()
        await import_into(empty_database, small_catalogue)
        await await_release(client, "2020-01")
        assert (await client.get(LOCALIDADES)).json()["quantity"] == 132
        assert (await client.get("/readyz")).json()["release"] == "2020-01"
        await import_into(empty_database, next_catalogue)
        await await_release(client, "2021-01")  # by the polls, which the errors have not ended


async def test_new_release_is_served_by_name_before_the_service_polls(
    seeded_database: str, next_catalogue: Path
) -> None:
    async with running_app(seeded_database, in_background=False) as app, client_of(app) as client:
        by_name = f"{LOCALIDADES}?release=2021-01"
        assert (await client.get(by_name)).status_code == 404
        await import_into(seeded_database, next_catalogue)
        await await_status(client, by_name)  # a recheck a moment ago counts for a quarter of a second
        assert (await client.get(LOCALIDADES)).headers["catalogue-release"] == "2020-01"


async def test_requests_for_unknown_releases_share_a_statement(seeded_database: str) -> None:
    async with running_app(seeded_database, in_background=False, max_in_flight=50) as app, client_of(app) as client:
        await client.get(LOCALIDADES)
        with recorded_statements(app, of_releases=True) as asked:
            requests = (client.get(f"{LOCALIDADES}?release=none-{number}") for number in range(50))
            assert {answer.status_code for answer in await asyncio.gather(*requests)} == {404}
            assert (await client.get(f"{LOCALIDADES}?release=none-0")).status_code == 404
        assert 1 <= len(asked) <= 10  # a reading counts for a quarter of a second, and the requests may last longer


async def test_walk_during_a_publication_stays_in_one_release(seeded_database: str, next_catalogue: Path) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        walked: list[dict[str, object]] = []
        async for answer in walk(client, LOCALIDADES):
            assert answer.headers["catalogue-release"] == "2020-01"
            walked += answer.json()["results"]
            if len(walked) == 50:
                await import_into(seeded_database, next_catalogue)
                await await_release(client, "2021-01")
        assert walked == RECORDS["2020-01"]


# -- Rollbacks


async def test_publish_command_makes_a_release_current_and_logs_it(two_releases: str) -> None:
    reason = "2021-01 lacks a municipio, <b>go back</b>"

    async def said(*arguments: str) -> str:
        ended = await asyncio.to_thread(invoke, "releases", *arguments, url=two_releases)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    now = "Release 2020-01 is now the current one; before, it was 2021-01.\n"
    assert await said("publish", "2020-01", "--reason", reason) == now
    assert await said("publish", "2020-01") == "Release 2020-01 is already the current one.\n"
    for previous in ("2020-01", "2021-01"):
        answer = await said("publish", "2021-01", "--json", "--reason", "only the first time is a change")
        assert json.loads(answer) == {"release": "2021-01", "previous": previous}
    current = [(release["release"], release["current"]) for release in json.loads(await said("--json"))["releases"]]
    assert current == [("2020-01", False), ("2021-01", True)]

    log = "SELECT role, account, number, release, previous, action, reason FROM publications ORDER BY published_at DESC"
    [logged] = await asyncio.to_thread(execute, two_releases, log)
    account = f"{getpass.getuser()}@{socket.gethostname()}"
    assert len({publication[0] for publication in logged}) == 1
    assert [tuple(publication[1:]) for publication in logged] == [
        (account, 4, "2021-01", "2020-01", "publish", "only the first time is a change"),
        (account, 3, "2020-01", "2021-01", "publish", reason),
        (account, 2, "2021-01", "2020-01", "import", None),
        (account, 1, "2020-01", None, "import", None),
    ]


async def test_publication_of_an_unknown_release_changes_nothing(two_releases: str) -> None:
    before = await photograph(two_releases)
    ended = await asyncio.to_thread(invoke, "releases", "publish", "'; DROP TABLE releases; --", url=two_releases)
    assert_error(ended, "There is no release '; DROP TABLE releases; --: run `localidades-api releases`")
    assert await photograph(two_releases) == before


async def test_republished_release_gives_the_same_responses(two_releases: str) -> None:
    """Identical bytes and headers, so that copies in caches are valid again, and those of the other release are not."""
    pinned = [f"{target}release={name}" for name in ("2020-01", "2021-01") for target in (
        f"{LOCALIDADES}?", f"{LOCALIDADES}?page=3&", f"{INDEX}?",
    )]  # fmt: skip
    plain = [f"{LOCALIDADES}?page=2", f"{LOCALIDADES}?municipio_id=1001", INDEX, f"{LOCALIDADES}10010001/"]
    async with running_app(two_releases, page_cache_bytes=2**24) as app, client_of(app) as client:

        async def photograph_answers(targets: list[str]) -> list[tuple[httpx.Headers, bytes]]:
            answers = [await client.get(target) for target in targets]
            assert {answer.status_code for answer in answers} == {200}
            return [(answer.headers, answer.content) for answer in answers]

        await await_release(client, "2021-01")
        first = await photograph_answers(pinned)
        pages = [(await client.get(f"{INDEX}releases/?format=api")).headers["etag"]]  # which has a line for each
        seen: dict[str, list[tuple[httpx.Headers, bytes]]] = {"2021-01": await photograph_answers(plain)}
        for name in ("2020-01", "2021-01") * 2:
            await publish_again(two_releases, name)
            await await_release(client, name)
            assert await photograph_answers(pinned) == first
            pages.append((await client.get(f"{INDEX}releases/?format=api")).headers["etag"])
            assert seen.setdefault(name, await photograph_answers(plain)) == await photograph_answers(plain)
            for release, answers in seen.items():
                for target, (headers, _) in zip(plain, answers, strict=True):
                    again = await client.get(target, headers={"If-None-Match": headers["etag"]})
                    assert again.status_code == (304 if release == name else 200)
                    assert again.headers["catalogue-release"] == name
        assert len(set(pages)) == len(pages)


async def test_restored_database_gives_the_same_responses(
    two_releases: str, empty_database: str, tmp_path: Path
) -> None:
    """To the byte, validators included, so that copies in caches stay valid."""
    chosen = os.environ.get("LOCALIDADES_POSTGRES_BIN")
    binaries = find_binaries(Path(chosen) if chosen else None)
    dump = str(tmp_path / "localidades.dump")
    for program, *options in (
        ("pg_dump", "--format=custom", f"--file={dump}", two_releases),
        ("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={empty_database}", dump),
    ):
        await asyncio.to_thread(subprocess.run, [str(binaries / program), *options], check=True)
    targets = [
        f"{LOCALIDADES}{rest}" for rest in ("?page=2", "?release=2020-01", "?search=otro", "download/?format=csv")
    ]
    targets += [f"{INDEX}releases/", f"{INDEX}releases/2021-01/changes/?since=2020-01", f"{INDEX}municipios/"]
    seen = []
    for url in (two_releases, empty_database):
        async with running_app(url) as app, client_of(app) as client:
            answers = [await client.get(target) for target in targets]
        assert {answer.status_code for answer in answers} == {200}
        seen.append([({**answer.headers, "x-request-id": ""}, answer.content) for answer in answers])
    assert seen[0] == seen[1]


# -- The clock of the database


async def test_releases_are_ordered_by_import_not_by_clock(two_releases: str) -> None:
    await run_sql(two_releases, "UPDATE releases SET published_at = '2001-01-01' WHERE name = '2021-01'")
    async with running_app(two_releases) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        releases = (await client.get(f"{INDEX}releases/")).json()["results"]
        assert [release["release"] for release in releases] == ["2020-01", "2021-01"]
        page = Page.of(await client.get(f"{LOCALIDADES}{int(SMALL[0].cvegeo)}/?format=api"))
        assert [row[0] for row in page.rows()] == ["2020-01", "2021-01"]
        answer = await client.get(f"{LOCALIDADES}{int(SMALL[1].cvegeo)}/")
        assert (answer.status_code, answer.json()["last_release"]) == (410, "2020-01")


async def test_server_with_an_older_publication_is_ignored(two_releases: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lagging standby does so, after an import as after a rollback."""
    await run_sql(two_releases, "UPDATE releases SET published_at = '2001-01-01' WHERE name = '2021-01'")
    await publish_again(two_releases, "2020-01")
    earlier = "UPDATE current_release SET publication = publication - 1, release_id = $1"
    async with running_app(two_releases) as app, client_of(app) as client:
        await await_release(client, "2020-01")
        await run_sql(two_releases, earlier, 2)  # as before
        await assert_stays(client, "2020-01")
        monkeypatch.setattr(tracker, "BEHIND_TIMEOUT", 0.3)
        await await_release(client, "2021-01")  # no server is further ahead, so that publication is lost
        monkeypatch.undo()
        await run_sql(two_releases, earlier, 1)
        await assert_stays(client, "2021-01")


async def assert_stays(client: httpx.AsyncClient, name: str) -> None:
    """Check that a release is served during several polls of the database."""
    for _ in range(10):
        assert (await client.head(LOCALIDADES)).headers["catalogue-release"] == name
        await asyncio.sleep(0.05)


# -- An unreachable database


async def test_database_that_refuses_or_never_answers_is_503() -> None:
    with closing(socket.socket()) as holder, closing(socket.create_server(("127.0.0.1", 0))) as silent:
        holder.bind(("127.0.0.1", 0))  # where nothing listens
        for port in (listener.getsockname()[1] for listener in (holder, silent)):
            url = f"postgresql://someone:s3cr3t@127.0.0.1:{port}/x"
            async with running_app(url, database_timeout=0.2) as app, client_of(app) as client:
                for target in (LOCALIDADES, f"{LOCALIDADES}?release=2020-01", INDEX):
                    assert_unavailable(await client.get(target))
                assert (await client.get("/livez")).status_code == 204
                ready = await client.get("/readyz")
                assert (ready.status_code, "s3cr3t" in ready.text) == (503, False)


async def terminate_connections(server: str, url: str) -> int:
    terminate = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1"
    return len(await run_sql(server, terminate, name_of(url)))


async def test_terminated_connections_are_replaced_within_the_next_request(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database, pool_size=3) as app, client_of(app) as client:
        for _ in range(2):
            await asyncio.gather(*(client.get(LOCALIDADES) for _ in range(3)))
            assert await terminate_connections(server, seeded_database) >= 1
            assert (await client.get(LOCALIDADES)).json()["quantity"] == 132


async def test_recreated_database_leaves_no_stale_data(
    server: str, seeded_database: str, migrated: str, next_catalogue: Path
) -> None:
    """Its first release reuses an id, so pages and lists of the old release must not be served."""
    targets = (LOCALIDADES, f"{LOCALIDADES}?municipio_id=1001")
    async with running_app(seeded_database, page_cache_bytes=2**24) as app, client_of(app) as client:
        await await_release(client, "2020-01")
        before = [(await client.get(target)).content for target in targets]
        await recreate(server, seeded_database, migrated)
        await import_into(seeded_database, next_catalogue)
        await await_release(client, "2021-01")
        after = [await client.get(target) for target in targets]
    expected = RECORDS["2021-01"]
    assert after[0].json()["results"] == expected[:50]
    assert after[1].json()["results"] == [record for record in expected if record["municipio_id"] == 1001]
    assert not {answer.content for answer in after} & set(before)


async def test_release_missing_on_every_server_is_given_up_after_a_while(
    two_releases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it may be a single lagging server."""
    async with running_app(two_releases) as app, client_of(app) as client:
        await await_release(client, "2021-01")
        await run_sql(two_releases, POINT_AT, "2020-01")
        await await_release(client, "2020-01")  # both are there: the pointer was moved back
        await run_sql(two_releases, POINT_AT, "2021-01")
        await await_release(client, "2021-01")
        async with connected(two_releases) as connection:  # at once, as when a backup is restored
            await connection.execute(
                "UPDATE current_release SET release_id = 1, publication = 1; DROP TABLE localities_r2;"
                " DELETE FROM municipalities WHERE release_id = 2; DELETE FROM states WHERE release_id = 2;"
                " DELETE FROM releases WHERE id = 2"
            )

        await asyncio.sleep(0.5)  # in which several polls find another current release
        assert_unavailable(await client.get(f"{LOCALIDADES}?page_size=7"))
        assert (await client.get(LOCALIDADES)).status_code == 503
        monkeypatch.setattr(tracker, "BEHIND_TIMEOUT", 0.3)
        await await_release(client, "2020-01")
        assert (await client.get(LOCALIDADES)).json()["results"] == RECORDS["2020-01"][:50]
        assert (await client.get(f"{LOCALIDADES}?release=2021-01")).status_code == 404


async def test_page_with_deleted_rows_or_of_another_schema_is_503_without_details(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        assert (await client.get(f"{LOCALIDADES}?page=2")).status_code == 200
        await run_sql(seeded_database, "DELETE FROM localities WHERE position > 50")
        assert_unavailable(await client.get(f"{LOCALIDADES}?page=2"))
        assert (await client.get(LOCALIDADES)).status_code == 200
        await run_sql(seeded_database, "ALTER TABLE localities RENAME COLUMN nombre TO c4n4ry")
        assert_unavailable(await client.get(LOCALIDADES))
        page = await client.get(f"{LOCALIDADES}?format=api")
        assert page.status_code == 503
        assert not re.search("c4n4ry|nombre|SELECT|asyncpg|Traceback|Error:", page.text)
