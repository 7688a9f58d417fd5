"""Parses HTML pages, and lists the pages and error pages to test."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

import httpx

from localidades_api.app import create_app
from localidades_api.settings import Settings
from tests.support.wire import LOCALIDADES

INDEX = "/api/census/"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
_VOID = {"meta", "wbr", "link", "input", "br", "hr", "img"}


@dataclass
class Element:
    """An element, and the text within it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    own: list[str] = field(default_factory=list)
    within: tuple["Element", ...] = ()

    @property
    def inner_text(self) -> str:
        """The text as a browser shows it, with single spaces."""
        return " ".join(self.text.split())

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(element.tag for element in self.within)


@dataclass
class Page(HTMLParser):
    """A parsed page; parsing fails on markup that doesn't nest."""

    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    @classmethod
    def of(cls, answer: httpx.Response) -> "Page":
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = cls()
        page.feed(answer.text)
        page.close()
        assert not page._open
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {attrs}"
        element = Element(tag, {name: value or "" for name, value in attrs}, within=tuple(self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data
        if self._open:
            self._open[-1].own.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        return [
            element
            for element in self.elements
            if element.tag == tag and attributes.items() <= element.attributes.items()
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        (element,) = self.all(tag, **attributes)
        return element

    def of_class(self, tag: str, name: str) -> Element:
        (element,) = (element for element in self.all(tag) if name in element.attributes.get("class", "").split())
        return element

    def inside(self, tag: str, *, of: Element) -> list[Element]:
        return [element for element in self.all(tag) if any(up is of for up in element.within)]

    def fields(self, form: Element) -> dict[str, str]:
        """Return the fields that a browser sends for an unchanged form."""
        sent = {field.attributes["name"]: field.attributes.get("value", "") for field in self.inside("input", of=form)}
        for select in self.inside("select", of=form):
            options = self.inside("option", of=select)
            chosen = [option for option in options if "selected" in option.attributes] or options[:1]
            (sent[select.attributes["name"]],) = (option.attributes["value"] for option in chosen)
        return sent

    def rows(self) -> list[list[str]]:
        """Return the cells of the first table's body, without headings of groups."""
        rows: list[list[str]] = []
        tables = [at for at, element in enumerate(self.elements) if element.tag == "table"]
        for element in self.elements[: tables[1] if len(tables) > 1 else None]:
            if element.tag == "tr" and "tbody" in element.path:
                rows.append([])
            elif element.tag == "td":
                rows[-1].append(element.text)
        return [row for row in rows if row]


@dataclass(frozen=True)
class Shown:
    """The request and response that a page shows."""

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


LISTS = [
    f"{LOCALIDADES}?format=api",
    f"{LOCALIDADES}?page=2&format=api",
    f"{LOCALIDADES}?format=api&page=3",
    f"{LOCALIDADES}?format=api&page=03&release=2020-01",
    f"{LOCALIDADES}?format=api&release=2020-01",
    f"{LOCALIDADES}?format=api&page_size=7&page=2&ambito=R&estado_id=1",
    f"{LOCALIDADES}?format=api&municipio_id=1001",
    f"{LOCALIDADES}?format=api&sort=-poblacion&estado_id=1",
    f"{LOCALIDADES}?format=api&sort=nombre&page=2",
    f"{LOCALIDADES}?format=api&search=%3Cscript%3E%22onmouseover%3D%27",
    f"{INDEX}municipios/?format=api&page_size=5&page=2",
    f"{INDEX}municipios/?format=api&estado_id=1",
    f"{INDEX}municipios/?format=api&search=municipio&sort=-localidades&page_size=7&page=2",
    f"{INDEX}municipios/?format=api&search=%3Cscript%3E%22onmouseover%3D%27",
    f"{INDEX}estados/?format=api",
    f"{INDEX}estados/?format=api&search=agu&sort=relevance",
    f"{INDEX}releases/?format=api",
    f"{INDEX}releases/2020-01/changes/?format=api&since=2020-01",
]
PAGES = [
    *LISTS,
    f"{INDEX}?format=api",
    f"{INDEX}?release=2020-01&format=api",
    f"{LOCALIDADES}10010001/?format=api",
    f"{LOCALIDADES}10010011/?format=api&release=2020-01",
    f"{LOCALIDADES}10020001/?format=api",
    f"{LOCALIDADES}suggest/?format=api&q=lugar",
    f"{LOCALIDADES}suggest/?format=api&q=zzzz",
    f"{LOCALIDADES}nearest/?format=api&lat=21.88&lon=-102.3",
    f"{INDEX}municipios/1001/?format=api",
    f"{INDEX}estados/1/?format=api",
]


def target_of(path: str, parameters: Mapping[str, object]) -> str:
    """Return the target of a request with the parameters of the path of an operation and of its query."""
    query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in path}
    return path.format(**parameters) + (f"?{urlencode(query)}" if query else "")


def list_other_pages(known: Iterable[str]) -> dict[str, str]:
    """Return an address by operation id for each operation whose page is at none of the known addresses."""
    addresses = {}
    for path, item in create_app(Settings()).openapi()["paths"].items():
        parameters = {parameter["name"]: parameter for parameter in item.get("get", {}).get("parameters", ())}
        has_page = "api" in str(parameters.get("format"))
        pattern = re.sub(r"\{\w+\}", "[^/]+", path)
        if has_page and not any(re.fullmatch(pattern, urlsplit(address).path) for address in known):
            required = {name: parameter["example"] for name, parameter in parameters.items() if parameter["required"]}
            addresses[item["get"]["operationId"]] = target_of(path, {**required, "format": "api"})
    return addresses


# A point has a page where there are outlines, in tests/extensions/test_outlines.py.
PAGES += list_other_pages([*PAGES, f"{INDEX}municipios/at/"]).values()
ERRORS = [
    (f"{LOCALIDADES}?page=4&format=api", 404),
    (f"{LOCALIDADES}?page=4&format=api&release=2020-01", 404),
    (f"{LOCALIDADES}?page=9&format=api&ambito=R&estado_id=1&page_size=7", 404),
    (f"{LOCALIDADES}?page=%3Cscript%3E&format=api", 422),
    (f"{LOCALIDADES}?%3Cscript%3E=1&format=api", 422),
    (f"{LOCALIDADES}?release=none&format=api", 404),
    (f"{LOCALIDADES}?release=%3Cscript%3E&format=api&lang=es", 422),
    (f"{INDEX}%3Cscript%3E/?format=api", 404),
    (f"{LOCALIDADES}999999999/?format=api", 404),
]
