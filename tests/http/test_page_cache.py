"""The page cache: cached pages are what routing answers, and no request makes them anything else."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localidades_api.cache import release_poller
from localidades_api.domain.schemas import Locality, Page
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware import Middleware, build_middleware_stack, cached_pages
from localidades_api.settings import Settings
from tests.support.application import (
    await_release,
    client_in_front_of,
    client_of,
    import_into,
    running_app,
)
from tests.support.asgi import as_asgi, scope_of
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.database import SOMEBODY_WAITS, connected
from tests.support.postgres import locked, new_database, out_of_reach, run_sql
from tests.support.waiting import PATIENCE, eventually_async
from tests.support.wire import LOCALIDADES

ENOUGH = 1_000_000


HTML = {"accept": "text/html"}


def front_of(app: FastAPI) -> Middleware:
    return build_middleware_stack(app, Settings())


def at_once(front: Middleware, query: str = "", **headers: str) -> RawResponse | None:
    """Return the page that needs neither routing nor the database."""
    request = httpx.Request("GET", f"http://test{LOCALIDADES}{query}", headers=headers)
    return front.try_respond(scope_of(request))


def cached(app: FastAPI) -> list[int]:
    """Return the numbers of the pages that are cached."""
    front = front_of(app)
    return [number for number in (1, 2, 3) if at_once(front, f"?page={number}")]


async def await_warm(app: FastAPI) -> None:
    """Wait until every page is cached."""

    async def is_warm() -> bool:
        return cached(app) == [1, 2, 3]

    await eventually_async(is_warm)


async def await_looks(app: FastAPI, count: int) -> None:
    """Wait until the releases have been read so many times more."""
    releases = app.state.services.releases
    async with asyncio.timeout(PATIENCE):
        for _ in range(count):
            before = releases.checked_at
            while releases.checked_at == before:  # noqa: ASYNC110  # it has no event
                await asyncio.sleep(0.001)


@pytest.fixture(scope="module")
async def warm(server: str, seeded: str) -> AsyncIterator[FastAPI]:
    """Lend an application that holds all of its pages."""
    with new_database(server, seeded) as url:
        async with running_app(url, page_cache_bytes=ENOUGH) as app:
            await await_warm(app)
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
    front = shared_front_of(app)
    async with client_of(app) as routing, client_through(front) as cached:
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
    if response := front.try_respond(scope_of(requests[1])):
        lines = b"".join(b"%b: %b\r\n" % header for header in by_routing.headers.raw)
        assert as_sent(response) == (by_routing.status_code, lines, by_routing.content)


def as_sent(response: RawResponse | None) -> tuple[int, bytes, bytes] | None:
    """Return the status, the header lines and the body."""
    return response and (response.status, b"".join(response.headers), response.body)


_fronts: dict[int, Middleware] = {}


def shared_front_of(app: FastAPI) -> Middleware:
    """Return the middleware that all requests to an application share: none may change the answer to another."""
    return _fronts.setdefault(id(app), front_of(app))


def client_through(front: Middleware) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(as_asgi(front)), base_url="http://test")


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
    front = front_of(warm)
    async with client_through(front) as client:
        assert at_once(front, query, **headers) is None
        answer = await client.get(LOCALIDADES + query, headers=headers)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        lines = b"".join(b"%b: %b\r\n" % header for header in answer.headers.raw)
        assert as_sent(at_once(front, query, **headers)) == (200, lines, answer.content)


async def test_cached_html_page_links_on_in_the_language_only_if_the_request_named_it(warm: FastAPI) -> None:
    """The Link header keeps `lang`, and the language of a header may be the same."""
    plain = {"accept": "text/html", "accept-language": "es"}
    async with client_of(warm) as routing, client_in_front_of(warm) as cached:
        for query, headers in (("?lang=es", {"accept": "text/html"}), ("", plain), ("?lang=es", plain)):
            by_routing = await routing.get(LOCALIDADES + query, headers=headers)
            by_cache = await cached.get(LOCALIDADES + query, headers=headers)
            assert by_cache.headers["link"] == by_routing.headers["link"]
            assert ("lang=es" in by_cache.headers["link"]) == bool(query)


async def test_cached_html_page_is_not_served_under_the_next_release(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app:
        await await_warm(app)
        front = front_of(app)
        async with client_through(front) as client:
            assert "2020-01" in (await client.get(f"{LOCALIDADES}?format=api")).text
            assert at_once(front, "?format=api")
            await import_into(seeded_database, next_catalogue(tmp_path))
            await await_release(client, "2021-01")
            assert at_once(front, "?format=api") is None
            answer = await client.get(f"{LOCALIDADES}?format=api")
            assert answer.headers["catalogue-release"] == "2021-01"


async def test_cached_html_pages_are_bounded(warm: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_pages, "MAX_HTML_CACHE", 60_000)
    front = front_of(warm)
    asked = [
        (query, {"accept": "text/html", "accept-language": language})
        for language in ("en", "es")
        for query in ("", "?page=1", "?page=2", "?page=3")
    ]

    def kept() -> list[bytes]:
        return [page.body for query, headers in asked if (page := at_once(front, query, **headers))]

    async with client_through(front) as client:
        for query, headers in asked:
            assert (await client.get(LOCALIDADES + query, headers=headers)).status_code == 200
        before = kept()
        assert 0 < sum(map(len, before)) <= 60_000
        for query in ("?page=4", "?page=01", "?x=1", "?page=1&ambito=R", f"?search={'x' * 90}", "?release=2020-01"):
            await client.get(LOCALIDADES + query, headers=HTML)
        assert kept() == before


async def test_cached_html_page_is_answered_with_304(warm: FastAPI) -> None:
    async with client_in_front_of(warm) as client:
        for language, other in (("en", "es"), ("es", "en")):
            headers = {"accept": "text/html", "accept-language": language}
            answer = await client.get(LOCALIDADES, headers=headers)
            condition = {"if-none-match": answer.headers["etag"]}
            again = await client.get(LOCALIDADES, headers={**headers, **condition})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["vary"] == answer.headers["vary"]
            headers["accept-language"] = other
            assert (await client.get(LOCALIDADES, headers={**headers, **condition})).status_code == 200


async def test_cached_page_needs_neither_routing_nor_the_database(warm: FastAPI) -> None:
    front = front_of(warm)
    for query in ("", "?page=2", "?format=json&page=3&lang=es", "?release=2020-01"):
        response = at_once(front, query)
        assert response is not None
        assert response.status == 200


async def test_long_headers_are_left_to_routing_and_not_remembered(warm: FastAPI) -> None:
    front, long = front_of(warm), "x" * 300
    assert at_once(front, accept="*/*, text/a")
    assert at_once(front, accept=f"*/*, text/{long}") is None
    async with client_through(front) as client:
        for languages in ("es", f"es, {long}"):
            headers = {"accept": "text/html", "accept-language": languages}
            await client.get(f"{LOCALIDADES}?page=2", headers=headers)
            assert (at_once(front, "?page=2", **headers) is None) == (long in languages)


async def test_page_whose_first_asker_hangs_up_reaches_the_others(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_in_front_of(app) as client:
        await client.get(f"{LOCALIDADES}?page=9")  # the release is known from here on
        async with connected(seeded_database) as other:
            with locked(seeded_database, "localities"):
                first, second = (asyncio.create_task(client.get(LOCALIDADES)) for _ in range(2))
                await eventually_async(lambda: other.fetchval(SOMEBODY_WAITS))
                first.cancel()
            assert (await second).content.startswith(b'{"quantity":132')


async def test_cache_with_little_room_holds_what_fits_and_serves_the_rest(seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=11_000) as app, client_in_front_of(app) as client:

        async def is_filled() -> list[int]:
            return cached(app)

        held = await eventually_async(is_filled)
        assert len(held) < 3
        bodies = [(await client.get(f"{LOCALIDADES}?page={number}")).json()["results"] for number in (1, 2, 3)]
        assert [len(body) for body in bodies] == [50, 50, 32]
        assert cached(app) == held


async def test_held_pages_are_served_while_the_database_is_away(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, client_in_front_of(app) as client:
        await await_warm(app)
        before = await client.get(f"{LOCALIDADES}?page=2")
        with out_of_reach(server, seeded_database):
            assert (await client.get("/readyz")).status_code == 503
            after = await client.get(f"{LOCALIDADES}?page=2")
            assert (after.status_code, after.content) == (200, before.content)


async def test_page_that_is_not_held_is_503_before_routing_as_by_routing_while_the_database_is_away(
    seeded_database: str,
) -> None:
    async with (
        running_app(seeded_database, database_timeout=0.5) as app,
        client_of(app) as routing,
        client_in_front_of(app) as cached,
    ):
        await await_release(routing, "2020-01")
        await run_sql(seeded_database, "ALTER TABLE localities RENAME TO elsewhere")
        answers = [await client.get(LOCALIDADES) for client in (routing, cached)]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert answers[1].headers.pop("x-request-id")
    assert answers[0].headers.raw == answers[1].headers.raw
    assert answers[0].content == answers[1].content


def next_catalogue(folder: Path) -> Path:
    """Write a catalogue with one place more."""
    return write_catalogue(folder / "catun_localidad_2021-01.csv", [*many(132), Place("010019997", "Nuevo")])


async def test_new_release_is_served_with_its_pages_cached(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, client_in_front_of(app) as client:
        await await_warm(app)
        await import_into(seeded_database, next_catalogue(tmp_path))
        await await_release(client, "2021-01")
        page = at_once(front_of(app), "?page=3")
        assert page is not None
        assert b'"quantity":133' in page.body


async def test_pointer_that_moves_to_and_fro_ends_with_the_pages_of_where_it_stays(
    seeded_database: str, tmp_path: Path
) -> None:
    await import_into(seeded_database, next_catalogue(tmp_path))
    async with running_app(seeded_database, page_cache_bytes=ENOUGH, release_poll=0.01) as app:
        for name in ("2020-01", "2021-01") * 10:
            await run_sql(
                seeded_database,
                f"UPDATE current_release SET release_id = (SELECT id FROM releases WHERE name = '{name}')",  # noqa: S608
            )
        # One that had begun before the last move, one that saw it and took it up, one after it.
        await await_looks(app, 3)
        await await_warm(app)
        page = at_once(front_of(app), "?page=3")
        assert page is not None
        assert b'"quantity":133' in page.body
        assert pages_in_memory(app) == 3


def pages_in_memory(app: FastAPI) -> float:
    """Return what the metrics tell of the pages of every release."""
    pages: float = app.state.services.pages.gauges()["page_cache_pages",]
    return pages


async def test_older_release_is_served_but_takes_no_room(seeded_database: str, tmp_path: Path) -> None:
    async with running_app(seeded_database, page_cache_bytes=ENOUGH) as app, client_in_front_of(app) as client:
        await await_warm(app)
        await import_into(seeded_database, next_catalogue(tmp_path))
        await await_release(client, "2021-01")
        await await_warm(app)
        answer = await client.get(f"{LOCALIDADES}?release=2020-01&page=3")
        assert answer.json()["quantity"] == 132
        assert answer.headers["catalogue-release"] == "2020-01"
        assert pages_in_memory(app) == 3


# Everything that JSON escapes and everything that it does not, as long as a line of a file can hold it.
CHARACTERS = [chr(code) for code in (*range(1, 0xD800), *range(0xE000, 0x10000)) if chr(code) not in '\n\r"']
NAMES = [f"A{''.join(CHARACTERS[start : start + 60])}z" for start in range(0, len(CHARACTERS), 60)]


async def test_json_of_postgres_is_what_the_documented_models_write(server: str, migrated: str, tmp_path: Path) -> None:
    """Valid against the models, and byte for byte their own serialisation."""
    places = [Place(f"01001{number:04d}", name) for number, name in enumerate([*NAMES, "\\/\U0001f600'"], 1)]
    file = write_catalogue(tmp_path / "catun_localidad_2020-01.csv", places)
    names = []
    with new_database(server, migrated) as url:
        await import_into(url, file)
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            for number in range(1, -(-len(places) // 50) + 1):
                body = (await client.get(f"{LOCALIDADES}?page={number}")).content
                page = Page[Locality].model_validate_json(body, strict=True)
                assert page.model_dump_json().encode() == body
                names += [record.nombre for record in page.results]
    assert names == [place.nombre for place in places]


@pytest.mark.parametrize(
    ("before", "then", "the_other"),
    [
        pytest.param(["2020-01"], "2021-01", "RETURN_TIMEOUT", id="a new one"),
        pytest.param(["2021-01"], "2020-01", "ACTIVATION_TIMEOUT", id="an earlier one", marks=pytest.mark.tail),
        pytest.param(
            ["2021-01", "2020-01"],
            "2021-01",
            "ACTIVATION_TIMEOUT",
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
    await import_into(seeded_database, next_catalogue(tmp_path))
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
            assert cached(app) == []
        await await_warm(app)


async def test_fetch_of_a_page_ends_with_the_application(seeded_database: str) -> None:
    """Its client may have gone; its connection must not stay."""
    before = asyncio.all_tasks()
    with locked(seeded_database):
        async with running_app(seeded_database, wants_names=False) as app, connected(seeded_database) as other:
            client = client_in_front_of(app)
            await client.head("/api/census/")  # the release is known from here on
            fetching = asyncio.create_task(client.get(f"{LOCALIDADES}?page=2"))
            await eventually_async(lambda: other.fetchval(SOMEBODY_WAITS))
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

        async def is_over() -> bool:
            return asyncio.all_tasks() <= before  # of which another test may have left one that has ended

        await eventually_async(is_over)  # for a cancelled task, SQLAlchemy closes the connection in another one
