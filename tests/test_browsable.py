"""The browsable page: what a person sees is what a program gets."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import asyncpg
import httpx
import pytest

from tests.catalogue import many, write_catalogue
from tests.conftest import LOCALIDADES, client_of, import_into, running_app
from tests.wire import ask

INDEX = "/api/census/"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_VOID = {"meta", "link", "input", "br", "hr", "img"}
_ADDRESSES = {"href", "src", "action", "data", "poster", "formaction", "srcset"}


@dataclass
class Element:
    """An element, and the text within it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    path: tuple[str, ...] = ()


@dataclass
class Page(HTMLParser):
    """A page taken apart; it fails on markup that does not nest."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, answer: httpx.Response) -> "Page":
        """Read an answer."""
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = cls()
        page.feed(answer.text)
        page.close()
        assert not page._open
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        element = Element(tag, {name: value or "" for name, value in attrs}, path=tuple(up.tag for up in self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Close one."""
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        """Add text to every element it is in."""
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a name with these attributes."""
        return [
            element
            for element in self.elements
            if element.tag == tag and attributes.items() <= element.attributes.items()
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        """Return the only such element."""
        (element,) = self.all(tag, **attributes)
        return element

    def rows(self) -> list[list[str]]:
        """Return the cells of the table's body."""
        rows: list[list[str]] = []
        for element in self.elements:
            if element.tag == "tr" and "tbody" in element.path:
                rows.append([])
            elif element.tag == "td":
                rows[-1].append(element.text)
        return rows


@dataclass(frozen=True)
class Shown:
    """The exchange that a page shows."""

    target: str
    status: str
    headers: dict[str, str]
    body: str

    @classmethod
    def on(cls, page: Page) -> "Shown":
        """Read the exchange off a page."""
        request, _, rest = page.one("pre").text.partition("\n\n")
        head, _, body = rest.partition("\n\n")
        status, *headers = head.strip().split("\n")
        method, target = request.split(" ", 1)
        assert method == "GET"
        return cls(target, status, dict(line.split(": ", 1) for line in headers), body)


PAGES = [
    f"{LOCALIDADES}?format=api",
    f"{LOCALIDADES}?page=2&format=api",
    f"{LOCALIDADES}?format=api&page=3",
    f"{LOCALIDADES}?format=api&page=03&release=2020-01",
    f"{LOCALIDADES}?format=api&release=2020-01",
    f"{INDEX}?format=api",
    f"{INDEX}?release=2020-01&format=api",
]
ERRORS = [
    (f"{LOCALIDADES}?page=4&format=api", 404),
    (f"{LOCALIDADES}?page=4&format=api&release=2020-01", 404),
    (f"{LOCALIDADES}?page=%3Cscript%3E&format=api", 422),
    (f"{LOCALIDADES}?%3Cscript%3E=1&format=api", 422),
    (f"{LOCALIDADES}?release=none&format=api", 404),
    (f"{INDEX}%3Cscript%3E/?format=api", 404),
]


@pytest.mark.parametrize("target", PAGES)
async def test_page_shows_the_exchange_that_its_request_line_gives(client: httpx.AsyncClient, target: str) -> None:
    shown = Shown.on(Page.of(await client.get(target)))
    answer = await client.get(shown.target)
    assert shown.body == answer.text
    assert shown.status == f"HTTP {answer.status_code} {answer.reason_phrase}"
    assert {"Allow", "Content-Type", "Vary", "ETag", "Catalogue-Release"} <= set(shown.headers)
    for name, value in shown.headers.items():
        assert answer.headers[name] == value


@pytest.mark.parametrize("target", PAGES)
async def test_page_asked_by_accept_is_that_of_format(client: httpx.AsyncClient, target: str) -> None:
    plain = re.sub(r"format=api&?", "", target).rstrip("?&")
    assert (await client.get(plain, headers=BROWSER)).text == (await client.get(target)).text


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_page_table_is_the_records(client: httpx.AsyncClient, number: int) -> None:
    page = Page.of(await client.get(f"{LOCALIDADES}?format=api&page={number}"))
    records = (await client.get(f"{LOCALIDADES}?page={number}")).json()["results"]
    columns = [element.text for element in page.all("th")]
    assert sorted(columns) == ["clave", "id", "municipio_id", "nombre"]
    assert [dict(zip(columns, row, strict=True)) for row in page.rows()] == [
        {name: str(value) for name, value in record.items()} for record in records
    ]


async def test_page_shows_hostile_names_as_text(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{LOCALIDADES}?format=api")
    page = Page.of(answer)
    names = {cell for row in page.rows() for cell in row}
    assert "<script>alert(1)</script>" in names
    assert "D'Artagnan N° 5, El" in names
    assert "\N{RIGHT DOUBLE QUOTATION MARK}onmouseover=" in names
    assert "San José\N{NO-BREAK SPACE}del Río" in names
    assert not page.all("script")
    assert "<script" not in answer.text


def page_of(href: str) -> str:
    return parse_qs(urlsplit(href).query)["page"][0]


@pytest.mark.parametrize("pinned", ["", "&release=2020-01"])
@pytest.mark.parametrize(
    ("number", "previous", "following"), [(1, [], ["2"] * 2), (2, ["1"] * 2, ["3"] * 2), (3, ["2"] * 2, [])]
)
async def test_page_pager_leads_to_the_other_pages(
    client: httpx.AsyncClient, pinned: str, number: int, previous: list[str], following: list[str]
) -> None:
    target = f"{LOCALIDADES}?format=api&page={number}{pinned}"
    page = Page.of(await client.get(target))
    assert [page_of(link.attributes["href"]) for link in page.all("a", rel="prev")] == previous
    assert [page_of(link.attributes["href"]) for link in page.all("a", rel="next")] == following
    links = {link.text: link.attributes["href"] for link in page.all("a") if "page=" in link.attributes["href"]}
    assert {text for text in links if text.isdecimal()} == {"1", "2", "3"} - {str(number)}
    assert {current.text for current in page.all("span", **{"aria-current": "page"})} == {str(number)}
    for href in links.values():
        followed = await client.get(urljoin(target, href))
        assert followed.status_code == 200
        assert f"{page_of(href)} of 3" in Page.of(followed).one("main").text
        assert (pinned in str(followed.url)) if pinned else ("release" not in str(followed.url))


async def test_page_form_goes_to_a_page(client: httpx.AsyncClient) -> None:
    target = f"{LOCALIDADES}?format=api&page=2&release=2020-01"
    page = Page.of(await client.get(target))
    form = page.one("form")
    assert form.attributes["method"] == "get"
    fields = {field.attributes["name"]: field.attributes for field in page.all("input")}
    assert (fields["page"]["min"], fields["page"]["max"], fields["page"]["value"]) == ("1", "3", "2")
    sent = {name: attributes["value"] for name, attributes in fields.items()} | {"page": "3"}
    followed = await client.get(urljoin(target, form.attributes.get("action", "?")), params=sent)
    assert len(Page.of(followed).rows()) == 32


@pytest.mark.parametrize("target", [*PAGES, *(target for target, _ in ERRORS)])
async def test_page_refers_to_nothing_outside_and_every_link_leads_somewhere(
    client: httpx.AsyncClient, target: str
) -> None:
    page = Page.of(await client.get(target))
    seen = set()
    for element in page.elements:
        for name in _ADDRESSES & element.attributes.keys():
            address = urljoin(f"http://test{target}", element.attributes[name])
            assert address.startswith(("http://test/", "data:,")), element
            seen.add(address)
        assert not any(name.startswith("on") or name == "style" for name in element.attributes)
    assert not page.all("script")
    assert not page.all("style")
    for address in seen - {"data:,"}:
        assert (await client.get(address)).status_code == 200, address


@pytest.mark.parametrize("target", [*PAGES, *(target for target, _ in ERRORS)])
async def test_page_forbids_what_it_does_not_use(client: httpx.AsyncClient, target: str) -> None:
    headers = (await client.get(target)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert re.split(r",\s*", headers["vary"])[0] == "Accept"
    assert headers["allow"] == "GET"


@pytest.mark.parametrize("target", [*PAGES, *(target for target, _ in ERRORS)])
async def test_page_has_what_a_screen_reader_needs(client: httpx.AsyncClient, target: str) -> None:
    page = Page.of(await client.get(target))
    assert page.one("html").attributes["lang"]
    assert page.one("title").text
    assert page.one("h1").text
    assert page.one("main").text
    assert all(header.attributes.get("scope") for header in page.all("th"))
    assert all("label" in element.path for element in page.all("input") if element.attributes.get("type") != "hidden")


@pytest.mark.parametrize(("target", "status"), ERRORS)
async def test_error_page_shows_the_problem_and_nothing_of_the_input(
    client: httpx.AsyncClient, target: str, status: int
) -> None:
    answer = await client.get(target)
    assert answer.status_code == status
    page = Page.of(answer)
    problem = (await client.get(target.replace("format=api", "format=json"))).json()
    assert page.one("h1").text == problem["title"]
    assert page.one("p", role="alert").text == problem["detail"]
    head, _, body = page.one("pre").text.partition("\n\n")
    assert head == f"HTTP {status} {problem['title']}"
    assert body.startswith('{"type":"about:blank"')
    assert "script" not in answer.text
    for fault in problem.get("errors", []):
        assert f"{fault['parameter']}: {fault['message']}" in [item.text for item in page.all("li")]


@pytest.mark.parametrize("pinned", ["", "&release=2020-01"])
async def test_error_page_of_a_page_past_the_last_leads_to_the_last(client: httpx.AsyncClient, pinned: str) -> None:
    target = f"{LOCALIDADES}?format=api&page=9{pinned}"
    page = Page.of(await client.get(target))
    (href,) = [link.attributes["href"] for link in page.all("a") if "page=" in link.attributes["href"]]
    last = await client.get(urljoin(target, href))
    assert len(Page.of(last).rows()) == 32
    assert parse_qs(urlsplit(href).query).get("release") == (["2020-01"] if pinned else None)


def test_error_page_of_a_raw_path_shows_nothing_of_it(live_server: str) -> None:
    answer = ask(live_server, "/api/census/<script>c4n4ry/?format=api")
    assert answer.status in {400, 404}
    assert "c4n4ry" not in answer.text


async def test_index_page_names_release_totals_and_credit(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{INDEX}?format=api"))
    index = (await client.get(INDEX)).json()
    text = page.one("dl").text
    for shown in (index["release"], index["source"], index["sha256"], index["attribution"]):
        assert shown in text
    assert str(index["totals"]["localidades"]) in text
    assert "INEGI" in page.one("footer").text
    assert "demo" not in page.one("main").text.lower().replace('"demo":false', "")


async def test_page_of_another_release_than_the_demo_is_not_marked(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get(f"{LOCALIDADES}?format=api"))
    assert not page.all("p", role="note")
    assert page.one("p", **{"class": "release"}).text == "Release 2020-01"


@pytest.mark.parametrize("path", [LOCALIDADES, INDEX])
async def test_page_of_the_demo_is_marked_as_invented(database: str, tmp_path: Path, path: str) -> None:
    await import_into(database, write_catalogue(tmp_path / "catun_localidad_2020-01.csv", many(20)))
    await rename_release(database)
    async with running_app(database) as app, client_of(app) as client:
        page = Page.of(await client.get(f"{path}?format=api"))
        assert "invented" in page.one("p", role="note").text
        assert "INEGI" not in page.one("footer").text
        index = (await client.get(INDEX)).json()
        assert index["demo"] is True
        assert "invented" in index["attribution"]


async def rename_release(url: str) -> None:
    """Make a small release pass for the bundled one, which takes seconds to generate."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("UPDATE releases SET name = 'demo'")
    finally:
        await connection.close()
