"""Browsable pages show the same as programs get."""

import re
import shlex
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urljoin, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from pydantic_core import to_json

from localidades_api.html.languages.translators import lenient_translator
from tests.pages.conftest import Reader
from tests.support.application import (
    Below,
    await_release,
    below_a_prefix,
    client_of,
    import_into,
    publish_again,
    running_app,
)
from tests.support.catalogue import many, write_catalogue
from tests.support.pages import BROWSER, ERRORS, INDEX, PAGES, Page, Shown
from tests.support.postgres import execute
from tests.support.wire import LOCALIDADES

_ADDRESSES = {"href", "src", "action", "data", "poster", "formaction", "srcset"}


@pytest.mark.parametrize("target", PAGES)
async def test_page_shows_the_response_to_its_request_line(
    client: httpx.AsyncClient, read: Reader, target: str
) -> None:
    first, page = await read(target)
    shown = Shown.on(page)
    answer = await client.get(shown.target)
    assert shown.body == to_json(answer.json(), indent=2).decode()
    assert shown.status == f"HTTP {answer.status_code} {answer.reason_phrase}"
    assert {"Allow", "Content-Type", "Vary", "ETag", "Catalogue-Release"} <= set(shown.headers)
    for name, value in shown.headers.items():
        assert answer.headers[name] == value
    curl, address = shlex.split(page.one("code", id="curl").text)
    assert curl == "curl"
    assert address.removeprefix("http://127.0.0.1:8000") == shown.target
    plain = re.sub(r"format=api&?", "", target).rstrip("?&")
    assert (await read(plain)).answer.text == first.text
    held = {"If-None-Match": first.headers["etag"]}
    again = await client.get(f"{target}&lang=en", headers={"Accept-Language": "es", **held})
    assert (again.status_code, again.content) == (304, b"")


async def test_page_is_cached_per_language(client: httpx.AsyncClient) -> None:
    target = f"{LOCALIDADES}?format=api"
    first = await client.get(target)
    assert re.split(r",\s*", first.headers["vary"]) == ["Accept", "Accept-Language"]
    spanish = {"Accept-Language": "es-MX,es;q=0.9,en;q=0.8"}
    other = await client.get(target, headers={**spanish, "If-None-Match": first.headers["etag"]})
    assert other.status_code == 200
    assert Page.of(other).one("html").attributes["lang"] == "es"
    assert (await client.get(target, headers={**spanish, "If-None-Match": other.headers["etag"]})).status_code == 304


@pytest.mark.parametrize(
    ("path", "named", "digits"),
    [
        ("localidades/?page=3", "nombre", {9}),
        ("municipios/?", "nombre", {5}),
        ("estados/?", "nombre", {2}),
        ("localidades/suggest/?q=aguascalientes&kind=localidad,municipio,estado", "label", {2, 9}),
        ("localidades/nearest/?lat=21.88&lon=-102.3", "label", {9}),
    ],
)
async def test_list_rows_begin_with_the_linked_name_and_end_with_the_key(
    client: httpx.AsyncClient, path: str, named: str, digits: set[int]
) -> None:
    target = f"{INDEX}{path}&format=api"
    page = Page.of(await client.get(target))
    headers = [element.text for element in page.all("th")]
    assert (headers[0], headers[-1]) == ("Name", "Key")
    records = (await client.get(f"{INDEX}{path}&format=json")).json()["results"]
    keys = [record.get("cvegeo", f"{record['id']:0{max(digits)}d}") for record in records]
    assert [(row[0], row[-1]) for row in page.rows()] == [
        (record[named], key) for record, key in zip(records, keys, strict=True)
    ]
    assert [cell.text for cell in page.all("td") if "data-copy" in cell.attributes] == keys
    assert {len(key) for key in keys} == digits
    if path.startswith("localidades/?"):
        links = [urljoin(target, link.attributes["href"]) for link in page.inside("a", of=page.one("tbody"))]
        assert links == [f"{LOCALIDADES}{record['id']}/" for record in records]
        assert page.rows()[0][1] == "Municipio 009, Estado 03"


def page_of(href: str) -> str:
    return parse_qs(urlsplit(href).query)["page"][0]


@pytest.mark.parametrize(
    ("number", "previous", "following", "kept"),
    [
        (1, [], ["2"] * 2, ""),
        (2, ["1"] * 2, ["3"] * 2, "&release=2020-01&lang=es&page_size=50&ambito=R"),
        (3, ["2"] * 2, [], ""),
    ],
)
async def test_pager_links_to_the_other_pages(
    client: httpx.AsyncClient, number: int, previous: list[str], following: list[str], kept: str
) -> None:
    target = f"{LOCALIDADES}?format=api&page={number}{kept}"
    page = Page.of(await client.get(target))
    assert [page_of(link.attributes["href"]) for link in page.all("a", rel="prev")] == previous
    assert [page_of(link.attributes["href"]) for link in page.all("a", rel="next")] == following
    pagers = [nav for nav in page.all("nav") if nav.attributes.get("class") == "pager"]
    assert len({nav.attributes["aria-label"] for nav in pagers}) == len(pagers) == 2
    links = {link.text: link.attributes["href"] for nav in pagers for link in page.inside("a", of=nav)}
    assert {text for text in links if text.isdecimal()} == {"1", "2", "3"} - {str(number)}
    assert {current.text for current in page.all("span", **{"aria-current": "page"})} == {str(number)}
    for href in links.values():
        assert parse_qs(urlsplit(href).query) == {**parse_qs(kept), "page": [page_of(href)]}
        followed = Page.of(await client.get(urljoin(target, href), headers=BROWSER))
        assert followed.of_class("p", "amount").text.endswith((f"{page_of(href)} of 3", f"{page_of(href)} de 3"))


@pytest.mark.parametrize(
    ("asked", "location"),
    [
        ("page_size=1000", "?page_size=100&page=1"),
        ("page=2&page_size=200", "?page=3&page_size=100"),
        ("page=03&page_size=0333&search=Pe%C3%B1%C3%B3n+1", "?page=7&page_size=100&search=Pe%C3%B1%C3%B3n+1"),
        ("page=9007199254740991&page_size=1000", "?page=90071992547409901&page_size=100"),
    ],
)
async def test_page_with_too_many_records_redirects_to_the_page_of_the_first(
    client: httpx.AsyncClient, asked: str, location: str
) -> None:
    answer = await client.get(f"{LOCALIDADES}?{asked}", headers={**BROWSER, "If-None-Match": "*"})
    assert (answer.status_code, answer.content) == (307, b"")
    assert sorted(answer.headers["location"].removeprefix("?").split("&")) == sorted(location[1:].split("&"))
    assert (answer.headers["allow"], answer.headers["vary"]) == ("GET", "Accept")
    assert "etag" not in answer.headers


async def test_form_goes_to_a_page(client: httpx.AsyncClient) -> None:
    target = f"{LOCALIDADES}?format=api&page=2&release=2020-01"
    page = Page.of(await client.get(target))
    form = page.of_class("form", "goto")
    assert form.attributes["method"] == "get"
    (number,) = [field for field in page.inside("input", of=form) if field.attributes["name"] == "page"]
    assert (number.attributes["min"], number.attributes["max"], number.attributes["value"]) == ("1", "3", "2")
    sent = page.fields(form) | {"page": "3"}
    assert sent == {"release": "2020-01", "page": "3"}
    followed = await client.get(urljoin(target, form.attributes.get("action", "?")), params=sent, headers=BROWSER)
    assert len(Page.of(followed).rows()) == 32


@pytest.mark.parametrize(
    ("target", "typed", "arrival"),
    [
        (f"{LOCALIDADES}?format=api&page=3", {}, ""),
        (f"{LOCALIDADES}?format=api&sort=nombre", {"search": "peñón"}, "search=pe%C3%B1%C3%B3n&sort=nombre"),
        (f"{LOCALIDADES}?format=api&lang=es&release=2020-01&page=2", {"ambito": "U"},
         "lang=es&release=2020-01&ambito=U"),
        (f"{LOCALIDADES}?format=api&municipio_id=1001", {"clave": "0002"},
         "estado_id=1&municipio_id=1001&clave=0002"),
        (f"{LOCALIDADES}?format=api&cvegeo=010010001,010010002", {}, "cvegeo=010010001%2C010010002"),
        (f"{INDEX}municipios/?format=api&page=2&page_size=5", {"estado_id": "1"}, "page_size=5&estado_id=1"),
        (f"{INDEX}releases/2020-01/changes/?format=api&since=2020-01&lang=es", {"change": "renamed"},
         "lang=es&since=2020-01&change=renamed"),
    ],
)  # fmt: skip
async def test_filter_form_leads_to_a_url_without_empty_parameters(
    client: httpx.AsyncClient, target: str, typed: dict[str, str], arrival: str
) -> None:
    page = Page.of(await client.get(target))
    form = page.of_class("form", "filters")
    sent = page.fields(form) | typed
    action = urljoin(target.partition("?")[0], form.attributes["action"])
    moved = await client.get(action, params=sent, headers=BROWSER)
    assert moved.status_code == 303
    assert moved.headers["location"].startswith("../?" if arrival else "../")
    assert not moved.headers["location"].endswith("?")
    followed = await client.get(urljoin(action, moved.headers["location"]), headers=BROWSER)
    assert followed.status_code == 200
    assert sorted(parse_qsl(followed.url.query.decode(), keep_blank_values=True)) == sorted(parse_qsl(arrival))
    filled = Page.of(followed)
    kept = filled.fields(filled.of_class("form", "filters"))
    assert kept | {"sort": ""} == sent | {"sort": ""}


async def test_dates_say_their_zone(client: httpx.AsyncClient) -> None:
    index, releases = [
        Page.of(await client.get(f"{INDEX}{path}?lang=es", headers=BROWSER)) for path in ("", "releases/")
    ]
    date = r"\d+ de [a-z]+ de \d{4}"
    (moment,) = [element.text for element in index.all("time")]
    assert re.fullmatch(rf"{date}, \d\d:\d\d UTC", moment)
    (loaded,) = [element.text for element in releases.all("time")]
    assert re.fullmatch(rf"{date} \(UTC\)", loaded)


async def test_homonyms_of_a_place_are_named_with_their_claves(client: httpx.AsyncClient) -> None:
    other = Page.of(await client.get(f"{LOCALIDADES}10010002/?lang=es", headers=BROWSER))
    (link,) = [anchor for anchor in other.all("a") if anchor.text == "Ninguno (0003)"]
    assert link.attributes["href"] == "../10010003/?lang=es"
    only = Page.of(await client.get(f"{LOCALIDADES}10010001/?lang=es", headers=BROWSER))
    assert "otras localidades con este nombre" in other.one("main").text
    assert "otras localidades con este nombre" not in only.one("main").text


async def test_search_without_results_suggests_places_of_the_whole_country(client: httpx.AsyncClient) -> None:
    target = f"{LOCALIDADES}?search=Lugar&estado_id=1&lang=en"
    page = Page.of(await client.get(target, headers=BROWSER))
    assert "No results for “Lugar”." in page.one("main").text
    assert [heading.text for heading in page.all("h2")][:1] == ["Did you mean…?"]
    likely = (await client.get(f"{LOCALIDADES}suggest/?q=Lugar")).json()["results"]
    shown = [link for link in page.all("a") if link.text in {place["label"] for place in likely}]
    assert [urljoin(target, link.attributes["href"]) for link in shown] == [
        f"{LOCALIDADES}{place['id']}/?lang=en" for place in likely[:3]
    ]
    for query in ("search=zzzzzz", "clave=9999", "search=Lugar+20"):
        page = Page.of(await client.get(f"{LOCALIDADES}?{query}&lang=en", headers=BROWSER))
        assert "Did you mean" not in page.one("main").text


FOLLOWED: dict[str, int] = {}  # the statuses of the addresses visited so far, because most pages have the same links


@pytest.mark.parametrize("target", [*PAGES, *(target for target, _ in ERRORS)])
async def test_page_is_accessible_and_its_links_work(client: httpx.AsyncClient, read: Reader, target: str) -> None:
    answer, page = await read(target)
    assert answer.headers["allow"] == ("GET, POST, OPTIONS" if "/nearest/" in target else "GET")
    assert all(header.attributes.get("scope") for header in page.all("th"))
    assert all(page.inside("caption", of=table) for table in page.all("table"))
    assert all(region.attributes.get("aria-label") for region in page.all("div", role="region"))
    assert page.all("a")[0].attributes == {"class": "skip", "href": "#main"}
    for drawing in page.all("svg"):
        hidden = drawing.attributes.get("aria-hidden") == "true"  # its links are in the page, too
        assert hidden or drawing.attributes["aria-label"]
        assert not hidden or {anchor.attributes["tabindex"] for anchor in page.inside("a", of=drawing)} == {"-1"}
    seen = set()
    for element in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in element.attributes)
        if element.attributes.get("href") == "#main":
            continue
        for name in _ADDRESSES & element.attributes.keys():
            assert "format=api" not in element.attributes[name]
            assert not element.attributes[name].partition("#")[0].endswith(("?", "&"))
            address = urljoin(f"http://test{target}", element.attributes[name])
            assert address.startswith("http://test/"), element
            if "hreflang" in element.attributes and answer.status_code != 200:
                assert (await client.get(address, headers=BROWSER)).status_code in {200, answer.status_code}
            elif element.tag != "form":
                seen.add(address)
    scripts = [script for script in page.all("script") if "ld+json" not in script.attributes.get("type", "")]  # data
    assert all(script.attributes["src"].startswith("/static/") and not script.text for script in scripts)
    assert not page.all("style")
    assert not page.all("input", name="format")
    kinds = {*{re.sub(r"\d+", "#", address): address for address in sorted(seen)}.values()}  # not every place of a list
    for address in kinds - FOLLOWED.keys():
        FOLLOWED[address] = (await client.get(address, headers=BROWSER)).status_code
    assert {address: FOLLOWED[address] for address in kinds if FOLLOWED[address] != 200} == {}


# The first page of each path, a list with filters, the documentation, and guides with links and pictures.
FIRST = {target.partition("?")[0]: target for target in reversed(PAGES)}
TEMPLATES = [*FIRST.values(), PAGES[5], "/docs", "/help/add-keys", "/help/openrefine"]


@pytest.mark.parametrize("target", TEMPLATES)
@below_a_prefix
async def test_links_include_the_forwarded_prefix(app: FastAPI, target: str, below: Below) -> None:
    async with below(app, "/claves") as client:
        for element in Page.of(await client.get(f"/claves{target}", headers=BROWSER)).elements:
            for name in (_ADDRESSES | {"data-document"}) & element.attributes.keys():
                address = urlsplit(urljoin(f"http://test/claves{target}", element.attributes[name]))
                assert address.path.startswith("/claves/") or address.netloc != "test", element
                assert not address.path.startswith("/claves/claves/"), element


@pytest.mark.parametrize(("target", "status"), ERRORS)
async def test_error_page_shows_the_problem_without_the_input(
    client: httpx.AsyncClient, target: str, status: int
) -> None:
    answer = await client.get(target)
    assert answer.status_code == status
    page = Page.of(answer)
    problem = (await client.get(target.replace("format=api", "format=json"))).json()
    said = lenient_translator("es" if "lang=es" in target else "en")
    assert page.of_class("p", "status").text == f"{status} {said(problem['title'])}"
    assert page.one("h1").text not in {"", said(problem["title"])}
    assert page.one("p", role="alert").text == said(problem["detail"]).replace("`", "")
    head, _, body = page.one("pre").text.partition("\n\n")
    assert head == f"HTTP {status} {problem['title']}"
    assert body == to_json(problem, indent=2).decode()
    assert "&#34;" not in answer.text.partition("<pre")[2]
    for trace in ("<script>", "&lt;script", "%3cscript", "alert"):
        assert trace not in answer.text.lower().replace('role="alert"', "")
    for fault in problem.get("errors", []):
        assert f"{fault['parameter']}: {said(fault['message'])}".replace("`", "") in [
            item.text for item in page.all("li")
        ]


@pytest.mark.parametrize("kept", ["", "&release=2020-01&ambito=R&page_size=50&lang=es"])
async def test_error_page_past_the_end_links_to_the_last_page(client: httpx.AsyncClient, kept: str) -> None:
    target = f"{LOCALIDADES}?format=api&page=9{kept}"
    page = Page.of(await client.get(target))
    links = [link.attributes["href"] for link in page.inside("a", of=page.one("main"))]
    (href,) = [link for link in links if "page=" in link]
    last = Page.of(await client.get(urljoin(target, href), headers=BROWSER))
    assert page_of(href) == "3"
    assert len(last.rows()) in {31, 32}
    assert parse_qs(urlsplit(href).query) == {**parse_qs(kept), "page": ["3"]}


async def test_index_page_shows_release_totals_and_attribution(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{INDEX}?format=api"))
    index = (await client.get(INDEX)).json()
    for shown in (index["release"], index["source"], index["sha256"], index["attribution"]):
        assert shown in page.one("dl").text
    items = [item.text.split() for item in page.inside("li", of=page.of_class("ul", "totals"))]
    assert (
        dict(zip(("estados", "municipios", "localidades"), (int(count) for count, _ in items), strict=True))
        == (index["totals"])
    )
    assert "INEGI" in page.one("footer").text
    assert not page.all("p", role="note")  # that it is invented
    assert "Release 2020-01 (current)" in {" ".join(link.text.split()) for link in page.all("a")}


@pytest.mark.parametrize(("key", "is_among_its_own"), [(10010003, True), (20010001, False)])
async def test_locality_page_lists_its_eight_nearest(
    client: httpx.AsyncClient,
    key: int,
    is_among_its_own: bool,  # noqa: FBT001  # a parameter
) -> None:
    """Those of its municipio without the areas, which the page names above."""
    here = (await client.get(f"{LOCALIDADES}{key}/")).json()
    query = f"lat={here['latitud']}&lon={here['longitud']}&limit=9"
    nearest = (await client.get(f"{LOCALIDADES}nearest/?{query}")).json()["results"]
    others = [place for place in nearest if place["id"] != here["id"]][:8]
    is_near = [place["municipio_id"] == here["municipio_id"] for place in others]
    assert all(is_near) is is_among_its_own
    labels = [place["nombre" if near else "label"] for place, near in zip(others, is_near, strict=True)]
    page = Page.of(await client.get(f"{LOCALIDADES}{key}/?format=api"))
    shown = [link.text for link in page.inside("a", of=page.of_class("ol", "nearby"))]
    assert (shown, len(shown)) == (labels, 8)
    copied = [element.text for element in page.elements if "data-copy" in element.attributes]
    assert copied[:2] == [here["cvegeo"], f"{here['latitud']}, {here['longitud']}"]


async def test_demo_is_marked_as_invented(seeded_database: str) -> None:
    execute(seeded_database, "UPDATE releases SET name = 'demo'")  # the real one takes seconds to generate
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        for path in (LOCALIDADES, INDEX):
            page = Page.of(await client.get(f"{path}?format=api"))
            assert "invented" in page.one("p", role="note").text
            assert "INEGI" not in page.one("footer").text
        index = (await client.get(INDEX)).json()
        assert index["demo"] is True
        assert "invented" in index["attribution"]


async def test_page_of_another_release_leads_to_the_current_one(seeded_database: str, tmp_path: Path) -> None:
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    async with running_app(seeded_database, wants_names=False) as app, client_of(app) as client:
        client.headers.update(BROWSER)
        target = f"{LOCALIDADES}?lang=es&page=2"
        older = await client.get(f"{target}&release=2020-01")
        page = Page.of(older)
        band = page.of_class("p", "not-current")
        assert band.inner_text == "Está viendo la versión 2020-01. Ir a la vigente (2021-01)"
        assert page.inside("a", of=band)[0].attributes["href"] == "?lang=es&page=2"
        plain = Page.of(await client.get(f"{LOCALIDADES}?release=2020-01"))
        (current,) = plain.inside("a", of=plain.of_class("p", "not-current"))
        assert current.attributes["href"] == LOCALIDADES
        for same in (f"{target}&release=2021-01", target):
            assert "not-current" not in (await client.get(same)).text
        await publish_again(seeded_database, "2020-01")
        await await_release(client, "2020-01")
        held = {"If-None-Match": older.headers["etag"]}
        back = await client.get(f"{target}&release=2020-01", headers=held)
        assert back.status_code == 200
        assert 'class="not-current"' not in back.text
