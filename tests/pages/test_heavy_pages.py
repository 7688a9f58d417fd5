"""No page for people is heavy, whatever it is asked for: rows, links, JSON and problems have an end."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import asyncpg
import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from localidades_api.html.renderer import MAX_HTML_BYTES
from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import BROWSER, Page, Shown
from tests.support.postgres import new_database

CENSUS = "/api/census/"
LOCALIDADES = f"{CENSUS}localidades/"
OLD, NEW = "o" * 57 + "2019-01", "n" * 57 + "2020-01"  # as long as a release's name may be
CHANGES = f"{CENSUS}releases/{NEW}/changes/"
LISTS = {
    f"{CENSUS}estados/": {},
    f"{CENSUS}municipios/": {},
    LOCALIDADES: {},
    f"{CENSUS}releases/": {},
    CHANGES: {"since": OLD},
}
MUNICIPIOS, RELEASES = 570, 130
BOLD = "\N{MATHEMATICAL BOLD SMALL S}\N{MATHEMATICAL BOLD SMALL A}\N{MATHEMATICAL BOLD SMALL N} "  # 12 bytes a letter


def heavy(word: str) -> Iterator[Place]:
    """Yield 1,140 places of Oaxaca's 570 municipios whose names are as long as INEGI's longest, all of two bytes."""
    for municipio in range(1, MUNICIPIOS + 1):
        for clave in (1, 2):
            name = f"San {word} {'ñ' * 86}"[:86]
            yield Place(
                f"20{municipio:03d}{clave:04d}", name, nom_ent="Oaxaca",
                nom_mun=f"Santa María Ñuñú Yucuxaco {municipio}",
                poblacion="1234567", poblacion_masculina="600000", poblacion_femenina="634567", viviendas="300000",
            )  # fmt: skip


PLACES = list(heavy("nuevo"))
KEYS = [place.cvegeo for place in PLACES]
ESTADO = Place("010010001", "Aguascalientes")
# A locality that each of the many releases has.
HISTORY = f"""
SET session_replication_role = replica;
DO $$ DECLARE number integer; BEGIN
  FOR number IN SELECT id FROM releases WHERE name LIKE 'xx%' LOOP
    EXECUTE format('CREATE TABLE localities_h%1$s PARTITION OF localities FOR VALUES IN (%1$s)', number);
    INSERT INTO localities SELECT (jsonb_populate_record(l, jsonb_build_object('release_id', number))).*
      FROM localities l JOIN releases r ON r.id = l.release_id WHERE r.name = '{NEW}' AND l.id = 200010001;
  END LOOP;
END $$
"""  # noqa: S608  # of ours


@pytest.fixture(scope="module")
async def client(
    server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of a service on two releases between which every name changed, and many without records."""
    folder: Path = tmp_path_factory.mktemp("heavy")
    with new_database(server, migrated) as url:
        connection = await asyncpg.connect(url)
        await connection.executemany(
            "INSERT INTO releases (name, source, sha256, states, municipalities, localities, published_at)"
            " VALUES ($1, $2, $3, 32, 570, 1140, '2018-01-01')",
            [(f"{'x' * 60}{n:04d}", "s" * 251 + ".zip", "0" * 64) for n in range(RELEASES)],
        )
        await connection.close()
        for name, word in ((OLD, "viejo"), (NEW, "nuevo")):
            places = [ESTADO, *(replace(place, nombre=place.nombre.replace("nuevo", word)) for place in PLACES)]
            await import_into(url, write_catalogue(folder / f"{name[0]}.csv", places), release=name)
        connection = await asyncpg.connect(url)
        await connection.execute(HISTORY)
        await connection.executemany(
            "INSERT INTO publications (number, release, previous, action, account, reason)"
            " VALUES ($1, $2, $3, 'publish', 'a@b', $4)",
            [(number, OLD, NEW, "<" * 200) for number in range(-30, 0)],
        )
        await connection.execute("UPDATE publications SET number = number + 100")
        await connection.close()
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def page_of(client: httpx.AsyncClient, target: str, query: dict[str, str]) -> httpx.Response:
    """Return the page of a list that a browser shows in the end."""
    answer = await client.get(target, params=query, headers=BROWSER)
    while answer.status_code == 307:
        assert int(query["page_size"]) > 100
        answer = await client.get(urljoin(str(answer.request.url), answer.headers["location"]), headers=BROWSER)
    return answer


QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "page": st.integers(1, 12).map(str),
        "page_size": st.sampled_from(["1", "50", "99", "100", "101", "200", "570", "999", "1000"]),
        "lang": st.sampled_from(["en", "es"]),
        "format": st.just("api"),
    },
)
OF_RELEASE = st.fixed_dictionaries({}, optional={"release": st.sampled_from([OLD, NEW])})
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "estado_id": st.just("20"),
        "ambito": st.just("R"),
        "search": st.sampled_from(["san", (BOLD * 25)[:100]]),
        "cvegeo": st.sampled_from([1, 50, 99, 100, 200, 500]).map(lambda count: ",".join(KEYS[:count])),
    },
)
WORST = {"format": "api", "lang": "es", "release": NEW, "estado_id": "20", "page_size": "100"}


@pytest.mark.tail
@example(path=LOCALIDADES, query=WORST, release={}, filters={"page": "5"})
@example(path=LOCALIDADES, query=WORST, release={}, filters={"cvegeo": ",".join(KEYS[:100])})
@example(path=LOCALIDADES, query=WORST, release={}, filters={"cvegeo": ",".join(KEYS[:500]), "page": "2"})
@example(path=LOCALIDADES, query=WORST, release={}, filters={"search": (BOLD * 25)[:100], "page": "2"})
@example(
    path=LOCALIDADES, query=WORST, release={}, filters={"search": (BOLD * 25)[:100], "cvegeo": ",".join(KEYS[:500])}
)
@example(path=CHANGES, query={"page_size": "100", "lang": "es"}, release={}, filters={})
@example(path=f"{CENSUS}municipios/", query=WORST, release={}, filters={})
@example(path=f"{CENSUS}releases/", query={"page_size": "100", "lang": "es", "page": "2"}, release={}, filters={})
@example(path=f"{CENSUS}releases/", query={"page_size": "100", "lang": "es"}, release={}, filters={})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(sorted(LISTS)), query=QUERIES, release=OF_RELEASE, filters=FILTERS)
async def test_page_of_any_list_is_below_the_bound_and_begins_with_what_was_asked_for(
    client: httpx.AsyncClient, path: str, query: dict[str, str], release: dict[str, str], filters: dict[str, str]
) -> None:
    query = {**LISTS[path], **query}
    if path not in {CHANGES, f"{CENSUS}releases/"}:
        query |= release
    if path == LOCALIDADES:
        query |= filters
    elif path == f"{CENSUS}municipios/":
        query |= {"estado_id": "20"} if "estado_id" in filters else {}
    else:
        query.pop("estado_id", None)
    answer = await page_of(client, path, query)
    assert len(answer.content) < MAX_HTML_BYTES
    page = Page.of(answer)
    rows = page.rows() if path != f"{CENSUS}releases/" else releases_on(page)
    assert len(rows) <= min(int(query.get("page_size", 50)), 100)
    data = await client.get(path, params={**query, "format": "json"})
    if data.is_success:
        assert answer.status_code == 200
        for first in data.json()["results"][:1]:
            assert any(listed_name(path, first) in cell for row in rows for cell in row)
    if answer.is_success and page.all("pre"):
        shown = Shown.on(page).body
        assert (
            to_json((await client.get(Shown.on(page).target)).json(), indent=2).decode().startswith(shown.rstrip("…"))
        )


def releases_on(page: Page) -> list[list[str]]:
    """Return the texts of a page's time line of releases; none on the page of a problem."""
    timelines = page.all("ol", **{"class": "timeline"})
    return [[item.text] for timeline in timelines for item in page.inside("li", of=timeline)]


def listed_name(path: str, record: dict[str, Any]) -> str:
    """Return what a list's page calls a record."""
    digits = {f"{CENSUS}estados/": 2, f"{CENSUS}municipios/": 5}.get(path, 9)
    return str(record["release"]) if "release" in record else f"{record['id']:0{digits}d}"


@pytest.mark.parametrize(
    ("asked", "location"),
    [
        ("page_size=1000", "?page_size=100&page=1"),
        ("page=2&page_size=200", "?page=3&page_size=100"),
        ("page=3&page_size=200&format=api&lang=es", "?page=5&page_size=100&format=api&lang=es"),
        ("page_size=101&page=2", "?page_size=100&page=2"),  # record 102 is the second of its page
        ("page=2&page_size=150", "?page=2&page_size=100"),  # and 151 the fifty-first
        ("page=2&page_size=199", "?page=2&page_size=100"),  # and 200 the last
        ("page=03&page_size=0333&search=Pe%C3%B1%C3%B3n+1", "?page=7&page_size=100&search=Pe%C3%B1%C3%B3n+1"),
        (f"release={OLD}&page_size=1000", f"?release={OLD}&page_size=100&page=1"),
        ("page=9007199254740991&page_size=1000", "?page=90071992547409901&page_size=100"),
    ],
)
async def test_page_of_more_records_than_are_shown_leads_to_the_one_that_holds_the_first(
    client: httpx.AsyncClient, asked: str, location: str
) -> None:
    for method in ("GET", "HEAD"):
        answer = await client.request(method, f"{LOCALIDADES}?{asked}", headers={**BROWSER, "If-None-Match": "*"})
        assert (answer.status_code, answer.content) == (307, b"")
        assert sorted(answer.headers["location"].removeprefix("?").split("&")) == sorted(location[1:].split("&"))
        assert (answer.headers["allow"], answer.headers["vary"]) == ("GET", "Accept")
        assert "etag" not in answer.headers


@pytest.mark.parametrize("path", LISTS)
async def test_list_of_any_kind_sends_browsers_on_and_answers_programs(client: httpx.AsyncClient, path: str) -> None:
    query = {**LISTS[path], "page_size": "1000"}
    sent = await client.get(path, params=query, headers=BROWSER)
    assert sent.status_code == 307
    assert parse_qs(urlsplit(sent.headers["location"]).query) == parse_qs(
        str(httpx.QueryParams({**query, "page_size": "100", "page": "1"}))
    )
    data = await client.get(path, params=query)
    assert data.status_code == 200
    assert len(data.json()["results"]) == min(data.json()["quantity"], 1000)
    within = await client.get(path, params={**query, "page_size": "100"}, headers=BROWSER)
    assert within.status_code == 200
    held = {**BROWSER, "If-None-Match": within.headers["etag"]}
    assert (await client.get(path, params={**query, "page_size": "100"}, headers=held)).status_code == 304
    assert (await client.get(path, params=query, headers=held)).status_code == 307


async def test_page_of_a_release_that_is_not_there_is_not_found_before_it_is_too_large(
    client: httpx.AsyncClient,
) -> None:
    for path in (
        f"{LOCALIDADES}?release=none&page_size=1000",
        f"{CENSUS}releases/none/changes/?since=x&page_size=1000",
    ):
        assert (await client.get(path, headers=BROWSER)).status_code == 404


async def test_page_of_so_many_keys_that_links_can_hardly_keep_them_still_leads_on(client: httpx.AsyncClient) -> None:
    query = {"cvegeo": ",".join(KEYS[:500]), "estado_id": "20", "format": "api"}
    address = f"{LOCALIDADES}?{httpx.QueryParams(query)}"
    seen: list[str] = []
    while address:
        page = Page.of(await client.get(address))
        seen += [row[-1] for row in page.rows()]
        assert page.all("form") == []
        [data] = page.inside("a", of=page.of_class("p", "formats"))
        assert (await client.get(urljoin(address, data.attributes["href"]))).json()["quantity"] == 500
        onward = page.all("a", rel="next")
        address = urljoin(address, onward[0].attributes["href"]) if onward else ""
    assert sorted(seen) == KEYS[:500]


async def test_page_shows_as_much_of_the_json_as_it_has_room_for(client: httpx.AsyncClient) -> None:
    answer = await client.get(CHANGES, params={**LISTS[CHANGES], "page_size": "100", "format": "api"})
    shown = Shown.on(Page.of(answer))
    body = to_json((await client.get(shown.target)).json(), indent=2).decode()
    assert shown.body.endswith("\n…")
    assert body.startswith(shown.body.removesuffix("…"))
    assert MAX_HTML_BYTES - 200 < len(answer.content) < MAX_HTML_BYTES


async def test_page_of_a_locality_shows_what_the_newest_hundred_releases_have(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{LOCALIDADES}200010001/?format=api&release={NEW}"))
    assert len(page.rows()) == 100 < RELEASES
    assert [row[0] for row in page.rows()[-2:]] == [OLD, NEW]


@pytest.mark.parametrize(
    "target",
    [
        f"{LOCALIDADES}nearest/?lat=17.0{'0' * 7000}&lon=-96&limit=100&lang=es&release={NEW}",
        f"{LOCALIDADES}suggest/?q=san&limit=20&lang=es&release={NEW}",
        f"{LOCALIDADES}200010001/?lang=es&release={NEW}",
        f"{CENSUS}estados/20/?lang=es&release={NEW}",
        f"{CENSUS}municipios/20001/?lang=es&release={NEW}",
        f"{CENSUS}?lang=es&release={NEW}",
        f"{LOCALIDADES}?page=999&cvegeo={','.join(KEYS[:500])}&release={NEW}",
        f"{LOCALIDADES}?{'&'.join(f'{n:x}' for n in range(2000))}",
        f"{CENSUS}{'x' * 8000}/",
        "/problems?lang=es",
    ],
)
async def test_page_of_any_other_kind_is_below_the_bound(client: httpx.AsyncClient, target: str) -> None:
    answer = await client.get(target, headers=BROWSER, follow_redirects=True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert len(answer.content) < MAX_HTML_BYTES
    Page.of(answer)
