"""The page cache: cached pages are what routing answers, and no request makes them anything else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localidades_api.cache import release_poller
from localidades_api.cache.pages import PageCache, ReleasePages
from localidades_api.cache.tiles import PREWARMED_ZOOM
from localidades_api.domain.mercator import MEXICO_BOX, Tile
from localidades_api.domain.schemas import Locality, Page
from localidades_api.http.query import parse_plain_query
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware import cached_pages
from localidades_api.middleware.cached_pages import CachedPages
from localidades_api.middleware.suggestions import Suggestions
from tests.support.application import await_release, client_of, import_into, recorded_statements, running_app
from tests.support.asgi import as_asgi, scope_of
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.database import SOMEBODY_WAITS, connected
from tests.support.postgres import locked, new_database, run_sql
from tests.support.waiting import PATIENCE, eventually_async
from tests.support.wire import LOCALIDADES

ENOUGH = 1_000_000


def pages_of(app: FastAPI) -> PageCache:
    pages: PageCache = app.state.services.pages
    return pages


def before_routing(app: FastAPI) -> CachedPages:
    return CachedPages(Suggestions(app), app)


def cached_pages_client(app: FastAPI) -> httpx.AsyncClient:
    return client_of_path(before_routing(app))


def pages_held_by(app: FastAPI) -> ReleasePages | None:
    served = app.state.services.releases.served
    return pages_of(app).of(served) if served else None


def held_by(app: FastAPI) -> list[int]:
    held = pages_held_by(app)
    return [] if held is None else [number for number, page in enumerate(held.pages) if page is not None]


async def await_warm(app: FastAPI) -> None:
    """Wait until the pages are held."""

    async def is_warm() -> bool:
        held = pages_held_by(app)
        return held is not None and held.is_warm

    await eventually_async(is_warm)


async def await_tiles(app: FastAPI) -> None:
    """Wait until the tiles are drawn as well: no statement is left to run that nobody asks for."""
    last = Tile.at(PREWARMED_ZOOM, MEXICO_BOX.east, MEXICO_BOX.south)

    async def are_drawn() -> bool:
        return app.state.services.tiles.held(app.state.services.releases.served, last) is not None

    await eventually_async(are_drawn)


async def await_looks(app: FastAPI, count: int) -> None:
    """Wait until the releases have been read so many times more."""
    releases = app.state.services.releases
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            before = releases.checked_at
            while releases.checked_at == before:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
async def warm(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Lend an application that holds all of its pages."""
    with new_database(server, seeded) as url:
        async with running_app(url, page_cache_bytes=ENOUGH) as app:
            await await_warm(app)
            await await_tiles(app)
            yield app


PARTS = [
    "page=1", "page=3", "page=003", "page=0", "page=4", "page=+1", "page=", "page", f"page={3:020d}",
    "format=json", "format=api", "lang=es", "lang=en", "lang=fr", "lang=", "format=xml", "release=2020-01",
    "release=2019-01", "release=", "x=1", "", "page=99999999999999999999"]  # fmt: skip
ACCEPTS = ["*/*", "application/json", "text/html", "text/html;q=0.5, */*;q=0.4", "garbage", "", "application/xml",
           "application/json;q=0", "text/html, application/json;q=0.9", "text/html"]  # fmt: skip
LANGUAGES = ["es", "en", "es-MX,es;q=0.9,en;q=0.8", "fr", "*", "", "en;q=0.1, es;q=0.2", f"{'x' * 7}, " * 30 + "es",
             "e" * 2000]  # fmt: skip


@pytest.fixture(scope="module")
async def cold(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Lend an application that holds no page."""
    with new_database(server, seeded) as url:
        async with running_app(url) as app, client_of(app) as client:
            await await_release(client, "2020-01")
            yield app


@pytest.mark.parametrize("kind", ["warm", "cold"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=4),
    accept=st.none() | st.lists(st.sampled_from(ACCEPTS), max_size=2),
    languages=st.lists(st.sampled_from(LANGUAGES), max_size=2),
    if_none_match=st.sampled_from(["none", "none", "same", "html", "weak", "other", "any", "list"]),
    method=st.sampled_from(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST"]),
)
async def test_any_request_is_answered_alike_from_cached_pages_and_by_routing(
    *,
    warm: FastAPI,
    cold: FastAPI,
    kind: str,
    parts: list[str],
    accept: list[str] | None,
    languages: list[str],
    if_none_match: str,
    method: str,
) -> None:
    """Byte for byte: status, every header in its order, and body, before and after the response is cached."""
    app = {"warm": warm, "cold": cold}[kind]
    cached_pages = cached_pages_of(app)
    async with client_of(app) as routing, client_of_path(cached_pages) as cached:
        etag = (await routing.get(LOCALIDADES)).headers["etag"]
        of_html = (await routing.get(f"{LOCALIDADES}?format=api")).headers["etag"]
        conditions = {"same": etag, "weak": f"W/{etag}", "other": '"x"', "any": "*", "list": f'"x", {etag}'}
        conditions["html"] = of_html
        headers = [("accept", value) for value in accept or ()]
        headers += [("accept-language", value) for value in languages]
        if if_none_match in conditions:
            headers.append(("if-none-match", conditions[if_none_match]))
        target = f"{LOCALIDADES}?{'&'.join(parts)}" if parts else LOCALIDADES
        requests = [client.build_request(method, target, headers=headers) for client in (routing, cached)]
        if accept is None:
            for request in requests:
                del request.headers["accept"]  # httpx adds one of its own
        by_routing, by_cache = await routing.send(requests[0]), await cached.send(requests[1])
    assert by_cache.status_code == by_routing.status_code
    assert by_cache.headers.raw == by_routing.headers.raw
    assert by_cache.content == by_routing.content
    if response := cached_pages.try_respond(scope_of(requests[1])):
        lines = b"".join(b"%b: %b\r\n" % header for header in by_routing.headers.raw)
        assert as_sent(response) == (by_routing.status_code, lines, by_routing.content)


def as_sent(response: RawResponse | None) -> tuple[int, bytes, bytes] | None:
    """Return the status, the header lines and the body."""
    return response and (response.status, b"".join(response.headers), response.body)


_cached_pages: dict[int, CachedPages] = {}


def cached_pages_of(app: FastAPI) -> CachedPages:
    """Return the middleware that all requests to an application share: none may change the answer to another."""
    return _cached_pages.setdefault(id(app), before_routing(app))


def client_of_path(middleware: CachedPages) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(as_asgi(middleware)), base_url="http://test")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.sampled_from(PARTS), max_size=3),
    if_none_match=st.sampled_from(["same", "other"]),
)
async def test_cached_page_is_what_routing_would_send(warm: FastAPI, parts: list[str], if_none_match: str) -> None:
    async with client_of(warm) as client:
        etag = (await client.get(LOCALIDADES)).headers["etag"]
        headers = {"if-none-match": etag if if_none_match == "same" else '"x"'}
        request = client.build_request("GET", f"{LOCALIDADES}?{'&'.join(parts)}", headers=headers)
        answer = await client.send(request)
    response = before_routing(warm).try_respond(scope_of(request))
    if response is None:
        assert parts  # at the least the list's plain address is answered
    else:
        lines = b"".join(b"%b: %b\r\n" % header for header in answer.headers.raw)
        assert as_sent(response) == (answer.status_code, lines, answer.content)


HTML_REQUESTS = [
    ("", {"accept": "text/html", "accept-language": "es"}),
    ("?format=api", {}),
    ("?format=api&page=2", {}),
    ("?page=2&format=api", {"accept-language": "es-MX"}),
    ("?lang=es&page=2&format=api", {}),
    ("?page=2&lang=es", {"accept": "text/html,*/*;q=0.8", "accept-language": "en"}),
]


@pytest.mark.parametrize(("query", "headers"), HTML_REQUESTS)
async def test_html_page_is_cached_once_it_was_requested(warm: FastAPI, query: str, headers: dict[str, str]) -> None:
    cached_pages = before_routing(warm)
    async with client_of_path(cached_pages) as client:
        request = client.build_request("GET", LOCALIDADES + query, headers=headers)
        assert cached_pages.try_respond(scope_of(request)) is None
        answer = await client.send(request)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        with recorded_statements(warm) as statements:
            response = cached_pages.try_respond(scope_of(request))
        assert statements == []
        lines = b"".join(b"%b: %b\r\n" % header for header in answer.headers.raw)
        assert as_sent(response) == (200, lines, answer.content)


async def test_cached_html_page_links_on_in_the_language_only_if_the_request_named_it(warm: FastAPI) -> None:
    """The Link header keeps `lang`, and the language of a header may be the same."""
    plain = {"accept": "text/html", "accept-language": "es"}
    async with client_of(warm) as routing, cached_pages_client(warm) as cached:
        for query, headers in (("?lang=es", {"accept": "text/html"}), ("", plain), ("?lang=es", plain)):
            by_routing = await routing.get(LOCALIDADES + query, headers=headers)
            by_cache = await cached.get(LOCALIDADES + query, headers=headers)
            assert by_cache.headers["link"] == by_routing.headers["link"]
            assert ("lang=es" in by_cache.headers["link"]) == bool(query)


async def test_cached_html_page_is_not_served_under_the_next_release(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app:
        await await_warm(app)
        cached_pages = before_routing(app)
        async with client_of_path(cached_pages) as client:
            request = client.build_request("GET", f"{LOCALIDADES}?format=api")
            assert "2020-01" in (await client.send(request)).text
            places = [*many(132), Place("010019999", "Nuevo")]
            await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
            await await_release(client, "2021-01")
            assert cached_pages.try_respond(scope_of(request)) is None
            assert (await client.send(request)).headers["catalogue-release"] == "2021-01"


async def test_cached_html_pages_are_bounded(warm: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_pages, "_MAX_HTML_CACHE", 60_000)
    path = before_routing(warm)
    async with client_of_path(path) as client:
        for language in ("en", "es"):
            for query in ("", "?page=1", "?page=2", "?page=3", "?lang=es", "?lang=en&page=3"):
                headers = {"accept": "text/html", "accept-language": language}
                assert (await client.get(LOCALIDADES + query, headers=headers)).status_code == 200
                assert path._html.currsize <= 60_000
        assert path._html
        before = path._html.currsize
        for query in ("?page=4", "?page=01", "?x=1", "?page=1&ambito=R", f"?search={'x' * 90}", "?release=2020-01"):
            await client.get(LOCALIDADES + query, headers={"accept": "text/html"})
        assert path._html.currsize == before


async def test_cached_html_page_is_answered_with_304(warm: FastAPI) -> None:
    path = before_routing(warm)
    async with client_of_path(path) as client:
        for language, other in (("en", "es"), ("es", "en")):
            headers = {"accept": "text/html", "accept-language": language}
            answer = await client.get(LOCALIDADES, headers=headers)
            condition = {"if-none-match": answer.headers["etag"]}
            again = await client.get(LOCALIDADES, headers={**headers, **condition})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["vary"] == answer.headers["vary"]
            headers["accept-language"] = other
            assert (await client.get(LOCALIDADES, headers={**headers, **condition})).status_code == 200


async def test_held_page_makes_no_statement(warm: FastAPI) -> None:
    assert held_by(warm) == [1, 2, 3]
    async with cached_pages_client(warm) as client:
        with recorded_statements(warm) as statements:
            for target in (LOCALIDADES, f"{LOCALIDADES}?page=2", f"{LOCALIDADES}?format=json&page=3&lang=es"):
                assert (await client.get(target)).status_code == 200
        assert statements == []


async def test_what_a_form_begins_with_is_known_once_pages_are_held(warm: FastAPI) -> None:
    async with client_of(warm) as client:
        for chosen in ("estado_id=1", "ambito=U", "ambito=R"):
            with recorded_statements(warm) as statements:
                assert (await client.get(f"{LOCALIDADES}?{chosen}")).json()["results"]
            assert len(statements) == 1  # of the page, none of which localities are meant


async def test_page_that_is_not_held_makes_one_statement_however_many_ask(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, cached_pages_client(app) as client:
        await client.get(f"{LOCALIDADES}?page=9")  # the release is known from here on
        with recorded_statements(app) as statements:
            answers = await asyncio.gather(*(client.get(f"{LOCALIDADES}?page=2") for _ in range(100)))
        assert len(statements) == 1
        assert len({answer.content for answer in answers}) == 1
        assert answers[0].status_code == 200


async def test_page_whose_first_asker_hangs_up_reaches_the_others(seeded_database: str) -> None:
    async with running_app(seeded_database) as app:
        release = await app.state.services.release(None)
        first = asyncio.create_task(pages_of(app).page(release, 1))
        second = asyncio.create_task(pages_of(app).page(release, 1))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).body.startswith(b'{"quantity":132')


async def test_page_asked_for_by_many_spellings_takes_one_place(warm: FastAPI) -> None:
    async with cached_pages_client(warm) as client:
        for query in ("", "?page=1", "?page=01", "?format=json", "?release=2020-01&page=1", "?page=1&format=json"):
            assert (await client.get(LOCALIDADES + query)).status_code == 200
        for number in range(500):  # what a client makes up finds no room at all
            await client.get(f"{LOCALIDADES}?page={number + 4}")
            await client.get(f"{LOCALIDADES}?page=1&x={number}")
    assert held_by(warm) == [1, 2, 3]


async def test_long_queries_and_headers_are_not_remembered(warm: FastAPI) -> None:
    async with cached_pages_client(warm) as client:
        await client.get(LOCALIDADES)
        await client.get(f"{LOCALIDADES}?format=api")
        memories = (parse_plain_query, cached_pages._preferred, cached_pages._language)
        before = [memory.cache_info().currsize for memory in memories]
        for number in range(20):
            long = f"{number:0300d}"
            await client.get(f"{LOCALIDADES}?page=1&x={long}", headers={"accept": f"text/a{long}"})
            await client.get(LOCALIDADES, headers={"accept": f"*/*, text/a{long}"})
            await client.get(f"{LOCALIDADES}?format=api", headers={"accept-language": f"es, x-{long}"})
        assert [memory.cache_info().currsize for memory in memories] == before


async def test_cache_with_little_room_holds_what_fits_and_serves_the_rest(seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=11_000) as app, cached_pages_client(app) as client:
        await await_warm(app)
        held = held_by(app)
        assert 0 < len(held) < 3
        bodies = [(await client.get(f"{LOCALIDADES}?page={number}")).json()["results"] for number in (1, 2, 3)]
        assert [len(body) for body in bodies] == [50, 50, 32]
        assert held_by(app) == held


async def test_held_pages_are_served_while_the_database_is_away(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, cached_pages_client(app) as client:
        await await_warm(app)
        before = await client.get(f"{LOCALIDADES}?page=2")
        name = seeded_database.partition("@/")[2].partition("?")[0]
        connection = await asyncpg.connect(server)
        try:
            await connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
            await connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
            assert (await client.get("/readyz")).status_code == 503
            after = await client.get(f"{LOCALIDADES}?page=2")
            assert (after.status_code, after.content) == (200, before.content)
        finally:
            await connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
            await connection.close()


async def test_page_that_is_not_held_is_503_before_routing_as_by_routing_while_the_database_is_away(
    seeded_database: str,
) -> None:
    async with (
        running_app(seeded_database, database_timeout=0.5) as app,
        client_of(app) as routing,
        cached_pages_client(app) as cached,
    ):
        await await_release(routing, "2020-01")
        await run_sql(seeded_database, "ALTER TABLE localities RENAME TO elsewhere")
        answers = [await client.get(LOCALIDADES) for client in (routing, cached)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert answers[0].headers.raw == answers[1].headers.raw
    assert answers[0].content == answers[1].content


async def test_new_release_is_served_with_its_pages_cached(seeded_database: str, tmp_path: Path) -> None:
    places = [*many(132), Place("010019999", "Nuevo")]
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, cached_pages_client(app) as client:
        await await_warm(app)
        await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        await await_release(client, "2021-01")
        assert held_by(app) == [1, 2, 3]
        with recorded_statements(app) as statements:
            assert (await client.get(f"{LOCALIDADES}?page=3")).json()["quantity"] == 133
        assert statements == []


async def test_pointer_that_moves_to_and_fro_ends_with_the_pages_of_where_it_stays(
    seeded_database: str, tmp_path: Path
) -> None:
    places = [*many(132), Place("010019999", "Nuevo")]
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
    async with running_app(seeded_database, page_cache_bytes=ENOUGH, release_poll=0.01) as app:
        for name in ("2020-01", "2021-01") * 10:
            await run_sql(
                seeded_database,
                f"UPDATE current_release SET release_id = (SELECT id FROM releases WHERE name = '{name}')",  # noqa: S608
            )
        # One that had begun before the last move, one that saw it and took it up, one after it.
        await await_looks(app, 3)
        async with cached_pages_client(app) as client:
            await await_warm(app)
            with recorded_statements(app) as statements:
                assert (await client.get(f"{LOCALIDADES}?page=3")).json()["quantity"] == 133
            assert statements == []
        assert len(pages_of(app)._held) == 1


async def test_older_release_is_served_but_takes_no_room(seeded_database: str, tmp_path: Path) -> None:
    places = [*many(132), Place("010019999", "Nuevo")]
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, cached_pages_client(app) as client:
        await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places))
        await await_release(client, "2021-01")
        await await_warm(app)
        answer = await client.get(f"{LOCALIDADES}?release=2020-01&page=3")
        assert answer.json()["quantity"] == 132
        assert answer.headers["catalogue-release"] == "2020-01"
        assert len(pages_of(app)._held) == 1  # that the old held is gone shows nowhere else


# Everything that JSON escapes and everything that it does not, as long as a line of a file can hold it.
NAMES = st.text(st.characters(codec="utf-8", exclude_characters='\0\n\r"'), min_size=1, max_size=60).filter(
    lambda name: not name.isspace()
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=30, max_size=60))
async def test_json_of_postgres_is_what_the_documented_models_write(
    server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    """Valid against the models, and byte for byte their own serialisation."""
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate([*names, "\x01\x1f\x7f\\/\u2028😀'"], 1)]

    file = write_catalogue(tmp_path_factory.mktemp("names") / "catun_localidad_2020-01.csv", places)
    with new_database(server, migrated) as url:
        await import_into(url, file)
        async with running_app(url) as app, client_of(app) as client:
            body = (await client.get(LOCALIDADES)).content
    page = Page[Locality].model_validate_json(body, strict=True)
    assert page.model_dump_json().encode() == body
    assert [record.nombre for record in page.results] == [place.nombre for place in places][:50]


@pytest.mark.parametrize(
    ("before", "then", "the_other"),
    [
        pytest.param(["2020-01"], "2021-01", "_RETURN_TIMEOUT", id="a new one"),
        pytest.param(["2021-01"], "2020-01", "_ACTIVATION_TIMEOUT", id="an earlier one", marks=pytest.mark.tail),
        pytest.param(
            ["2021-01", "2020-01"],
            "2021-01",
            "_ACTIVATION_TIMEOUT",
            id="one that was served before",
            marks=pytest.mark.tail,
        ),
    ],
)
async def test_release_whose_pages_cannot_be_fetched_is_served_all_the_same_after_a_moment(
    seeded_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: list[str],
    then: str,
    the_other: str,
) -> None:
    file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", [*many(132), Place("010019999", "Nuevo")])
    await import_into(seeded_database, file)
    numbers = {"2020-01": 1, "2021-01": 2}
    publish = "UPDATE current_release SET release_id = $1"
    options = {"page_cache_bytes": ENOUGH, "database_timeout": 60}
    async with running_app(seeded_database, **options):
        pass  # the names of the later release are indexed from here on
    await run_sql(seeded_database, publish, numbers[before[0]])
    async with running_app(seeded_database, **options) as app, client_of(app) as client:
        for name in before:
            await run_sql(seeded_database, publish, numbers[name])
            await await_release(client, name)
            await await_warm(app)
        monkeypatch.setattr(release_poller, the_other, 60)  # the one that is meant must end the wait
        async with connected(seeded_database) as other, other.transaction():
            await other.execute(f"LOCK TABLE localities_r{numbers[then]} IN ACCESS EXCLUSIVE MODE")
            await run_sql(seeded_database, publish, numbers[then])
            async with asyncio.timeout(15):  # it is 1.2 s at most; the lock is waited for twice as long as that
                while (await client.get("/api/census/")).headers["catalogue-release"] != then:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert held_by(app) == []
        await await_warm(app)
        assert held_by(app) == [1, 2, 3]


async def test_fetch_of_a_page_ends_with_the_application(seeded_database: str) -> None:
    """Its client may have gone; its connection must not stay."""
    before = asyncio.all_tasks()
    with locked(seeded_database):
        async with running_app(seeded_database, wants_names=False) as app, connected(seeded_database) as other:
            services = app.state.services
            release = await services.release(None)
            fetching = asyncio.create_task(services.pages.page(release, 2))
            await eventually_async(lambda: other.fetchval(SOMEBODY_WAITS))
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

        async def is_over() -> bool:
            return asyncio.all_tasks() <= before  # of which another test may have left one that has ended

        await eventually_async(is_over)  # for a cancelled task, SQLAlchemy closes the connection in another one
