"""Pages of problems: the fate of withdrawn places."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from urllib.parse import urljoin

import httpx
import pytest
from fastapi import FastAPI

from tests.support.application import Below, below_a_prefix, client_of, database_with, running_app
from tests.support.catalogue import Place
from tests.support.pages import BROWSER, INDEX, Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

JALISCO = {"nom_ent": "Jalisco", "nom_abr": "Jal.", "nom_mun": "Acatic"}
KEPT = [
    Place("140010001", "Acatic", poblacion="13033", **JALISCO),
    Place("140010010", "El Refugio", poblacion="50", latitud="20.10", longitud="-102.90", **JALISCO),
    Place("140010011", "El Tule", latitud="21.00", longitud="-103.00", **JALISCO),  # it has no predecessor
]
GONE = [
    Place("140010005", "Ojo Zarco", latitud="20.11", longitud="-102.90", poblacion="7", **JALISCO),
    Place("140010006", "La Mesa", latitud="20.50", longitud="-102.50", **JALISCO),
    Place("140010007", "Sin Punto", latitud="-", longitud="-", **JALISCO),
]
MOVED = Place("140020001", "La Mesa", "Jalisco", "Jal.", "Nuevo", latitud="20.50", longitud="-102.50")
TULE = Place("140030002", "El Tule", "Jalisco", "Jal.", "Retirado", latitud="21.00", longitud="-103.00")
LATER = Place("140020002", "Recién Nacida", "Jalisco", "Jal.", "Nuevo", latitud="25", longitud="-110")


@pytest.fixture(scope="module")
async def moved(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that accepts HTML, on three releases; the second lacks a municipio and three places of another.

    One of the missing places has a new key.
    """
    now = [*KEPT, MOVED]
    releases = {"2019-01": [*KEPT, *GONE, TULE], "2020-01": now, "2021-01": [*now, LATER]}
    in_order = {name: sorted(places, key=lambda place: place.cvegeo) for name, places in releases.items()}
    with database_with(server, migrated, in_order, allow_shrink=True) as url:
        async with running_app(url) as app, client_of(app) as client:
            client.headers.update(BROWSER)
            yield client


async def get(client: httpx.AsyncClient, target: str, status: int) -> Page:
    """Return a page, all of whose links work."""
    answer = await client.get(target)
    assert answer.status_code == status
    page = Page.of(answer)
    for link in page.inside("a", of=page.one("main")):
        assert (await client.get(urljoin(str(answer.url), link.attributes["href"]))).status_code == 200
    return page


def texts(page: Page, tag: str, name: str) -> list[str]:
    """Return the texts of the items of a list of this class."""
    return [item.inner_text for item in page.inside("li", of=page.of_class(tag, name))]


async def test_withdrawn_place_shows_its_last_state_and_release(moved: httpx.AsyncClient) -> None:
    page = await get(moved, f"{LOCALIDADES}140010005/", 410)
    assert (page.one("h1").text, page.of_class("p", "lead").inner_text) == ("Ojo Zarco", "Acatic, Jalisco")
    told = "The last release that has it: 2019-01. The first without it: 2020-01."
    assert page.one("p", role="alert").inner_text.endswith(told)
    assert page.rows() == [["2019-01", "Ojo Zarco", "7"]]
    assert texts(page, "ol", "nearby")[0] == "El Refugio, Acatic, Jalisco 1.1 km"
    unlocated = await get(moved, f"{LOCALIDADES}140010007/", 410)
    assert unlocated.one("h1").text == "Sin Punto"
    assert unlocated.all("ol") == unlocated.all("svg") == []


async def test_withdrawn_place_links_to_its_successor_in_its_language(moved: httpx.AsyncClient) -> None:
    page = await get(moved, f"{LOCALIDADES}140010006/?lang=es", 410)
    links = [one.attributes["href"] for one in page.all("a") if one.attributes["href"] != "#main"]
    assert [href for href in links if "lang=" not in href] == []
    link, *_ = [one for one in page.all("a") if one.text == "La Mesa, Nuevo, Jalisco"]
    assert "140020001" in link.attributes["href"]
    assert "y una clave nueva" in page.one("main").text


async def test_withdrawn_municipio_leads_to_its_last_release(moved: httpx.AsyncClient) -> None:
    page = await get(moved, f"{INDEX}municipios/14003/", 410)
    [link] = [one for one in page.all("a") if one.text == "See the record in release 2019-01"]
    assert link.attributes["href"] == "?release=2019-01"


@pytest.mark.parametrize(
    ("query", "status", "heading"),
    [
        ("id=140010006", 410, "Gone"),
        ("id=14003", 410, "Gone"),
        ("id=07", 404, "No place has this key"),
        ("id=x", 422, "This address has a mistake"),
        ("", 422, "This address has a mistake"),
    ],
)
async def test_problem_of_a_preview_is_small_and_may_be_framed(
    moved: httpx.AsyncClient, query: str, status: int, heading: str
) -> None:
    answer = await moved.get(f"{INDEX}reconcile/preview/?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    sound = await moved.get(f"{INDEX}reconcile/preview/?id=140010001")
    policy = sound.headers["content-security-policy"]
    assert "frame-ancestors *" in policy
    assert answer.headers["content-security-policy"] == policy
    assert len(answer.content) < 2 * len(sound.content)
    assert Page.of(answer).one("h1").text == heading
    spanish = Page.of(await moved.get(f"{INDEX}reconcile/preview/?{query}&lang=es"))
    assert spanish.one("html").attributes["lang"] == "es"
    program = await moved.get(f"{INDEX}reconcile/preview/?{query}", headers={"Accept": "application/json"})
    assert (program.status_code, program.headers["content-type"]) == (status, "application/problem+json")


@below_a_prefix
async def test_problem_of_a_preview_may_be_framed_below_a_prefix(app: FastAPI, below: Below) -> None:
    async with below(app, "/claves") as client:
        answer = await client.get(f"/claves{INDEX}reconcile/preview/?id=01999", headers=BROWSER)
    assert answer.status_code == 404
    assert "frame-ancestors *" in answer.headers["content-security-policy"]


async def test_problem_page_needs_no_database(server: str, seeded: str) -> None:
    with ExitStack() as databases:
        url = databases.enter_context(new_database(server, seeded))
        async with running_app(url, wants_names=False) as app, client_of(app) as client:
            databases.close()
            for path, status in (("localidades/14010001/", 503), ("nothing/", 404)):
                answer = await client.get(f"{INDEX}{path}", headers=BROWSER)
                assert answer.status_code == status
                assert Page.of(answer).one("h1").text
