"""No HTML page is heavy, whatever the request: rows, links, JSON and problems are limited."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import asyncpg
import httpx
import pytest
from pydantic_core import to_json

from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.pages import BROWSER, Page, Shown
from tests.support.postgres import new_database

pytestmark = pytest.mark.tail

MAX_HTML_BYTES = 100_000
CENSUS = "/api/census/"
LOCALIDADES = f"{CENSUS}localidades/"
OLD, NEW = "2019-01", "2020-01"
CHANGES = f"{CENSUS}releases/{NEW}/changes/"
MUNICIPIOS, RELEASES = 570, 130
BOLD = "\N{MATHEMATICAL BOLD SMALL S}\N{MATHEMATICAL BOLD SMALL A}\N{MATHEMATICAL BOLD SMALL N} "  # 12 bytes a letter


def heavy(word: str) -> Iterator[Place]:
    """Yield 1,140 places of Oaxaca's 570 municipios, with names as long as INEGI's longest in letters of two bytes."""
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
    """Yield a client of a service on two releases with different names everywhere, and many empty ones."""
    folder: Path = tmp_path_factory.mktemp("heavy")
    with new_database(server, migrated) as url:
        connection = await asyncpg.connect(url)
        await connection.executemany(
            "INSERT INTO releases (name, source, sha256, states, municipalities, localities, published_at)"
            " VALUES ($1, $2, $3, 32, 570, 1140, '2018-01-01')",
            [(f"xx{n:04d}", "s" * 251 + ".zip", "0" * 64) for n in range(RELEASES)],
        )
        await connection.close()
        for name, word in ((OLD, "viejo"), (NEW, "nuevo")):
            places = [ESTADO, *(replace(place, nombre=place.nombre.replace("nuevo", word)) for place in PLACES)]
            await import_into(url, write_catalogue(folder / f"{name[0]}.csv", places), release=name)
        connection = await asyncpg.connect(url)
        await connection.execute(HISTORY)
        await connection.close()
        async with running_app(url) as app, client_of(app) as client:
            yield client


WORST = f"lang=es&release={NEW}&page_size=100"


@pytest.mark.parametrize(
    "target",
    [
        f"{LOCALIDADES}?{WORST}&estado_id=20&page=5",
        f"{LOCALIDADES}?{WORST}&cvegeo={','.join(KEYS[:100])}",
        f"{LOCALIDADES}?page=999&cvegeo={','.join(KEYS[:500])}&release={NEW}",
        f"{LOCALIDADES}nearest/?lat=17.0{'0' * 7000}&lon=-96&limit=100&lang=es&release={NEW}",
        f"{LOCALIDADES}suggest/?q=san&limit=20&lang=es&release={NEW}",
        f"{LOCALIDADES}200010001/?lang=es&release={NEW}",
        f"{LOCALIDADES}?{'&'.join(f'{n:x}' for n in range(2000))}",
        f"{CENSUS}municipios/?{WORST}&estado_id=20",
        f"{CENSUS}municipios/20001/?lang=es&release={NEW}",
        f"{CENSUS}estados/?{WORST}",
        f"{CENSUS}estados/20/?lang=es&release={NEW}",
        f"{CENSUS}releases/?lang=es&page_size=100",
        f"{CENSUS}releases/?lang=es&page_size=100&page=2",
        f"{CHANGES}?since={OLD}&lang=es&page_size=100",
        f"{CENSUS}?lang=es&release={NEW}",
        f"{CENSUS}{'x' * 8000}/",
        "/problems?lang=es",
    ],
    ids=lambda target: target[:60],
)
async def test_no_page_is_larger_than_the_limit(client: httpx.AsyncClient, target: str) -> None:
    answer = await client.get(target, headers=BROWSER, follow_redirects=True)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 1000 < len(answer.content) < MAX_HTML_BYTES
    assert len(Page.of(answer).rows()) <= 100


async def test_page_whose_links_repeat_hundreds_of_keys_is_bounded_by_its_address(client: httpx.AsyncClient) -> None:
    target = f"{LOCALIDADES}?{WORST}&search={(BOLD * 25)[:100]}&cvegeo={','.join(KEYS[:500])}"
    answer = await client.get(target, headers=BROWSER)
    assert MAX_HTML_BYTES < len(answer.content) < 3 * MAX_HTML_BYTES


async def test_links_of_a_page_keep_hundreds_of_keys(client: httpx.AsyncClient) -> None:
    address: str | None = f"{LOCALIDADES}?{httpx.QueryParams(cvegeo=','.join(KEYS[:500]), estado_id='20')}"
    seen: list[str] = []
    while address:
        page = Page.of(await client.get(address, headers=BROWSER))
        seen += [row[-1] for row in page.rows()]
        address = next((urljoin(address, one.attributes["href"]) for one in page.all("a", rel="next")), None)
    assert sorted(seen) == KEYS[:500]


async def test_json_on_a_page_is_cut_at_the_limit(client: httpx.AsyncClient) -> None:
    answer = await client.get(CHANGES, params={"since": OLD, "page_size": "100", "format": "api"})
    shown = Shown.on(Page.of(answer))
    body = to_json((await client.get(shown.target)).json(), indent=2).decode()
    assert shown.body.endswith("\n…")
    assert body.startswith(shown.body.removesuffix("…"))
    assert MAX_HTML_BYTES - 200 < len(answer.content) < MAX_HTML_BYTES


async def test_page_of_a_locality_shows_its_newest_hundred_releases(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{LOCALIDADES}200010001/?format=api&release={NEW}"))
    assert len(page.rows()) == 100 < RELEASES
    assert [row[0] for row in page.rows()[-2:]] == [OLD, NEW]
