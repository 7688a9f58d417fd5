"""The representations of a resource: JSON and the browsable HTML page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic_core import to_json
from starlette.datastructures import Headers

from localidades_api import __version__
from localidades_api.catalogue.attribution import REARRANGED, cite
from localidades_api.catalogue.mercator import MEXICO
from localidades_api.catalogue.schemas import Release
from localidades_api.html.content_security_policy import CONTENT_SECURITY_POLICY
from localidades_api.html.languages.translators import Language, lenient_translator, translator
from localidades_api.http.negotiation import accept_header, choose_media_type

Format = Literal["json", "api"]

MAX_HTML_BYTES = 100_000  # an HTML page stays below this (docs/decisions/site.md)
_BODY = "\0"  # placeholder for the JSON; no content can contain a NUL
_CUT = "\n…".encode()

_HERE = Path(__file__).parent

_templates = Environment(
    loader=FileSystemLoader([_HERE / "templates", _HERE.parent / "extensions"]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
_templates.globals |= {"version": __version__, "cite": cite, "rearranged": REARRANGED, "mexico": MEXICO}


@dataclass(frozen=True, slots=True)
class View:
    """A response's content, and the context of its HTML page.

    `target`, `allow` and `headers` are the request target, the methods and the response headers of the same content as
    JSON. `root` is the path prefix of the service, `public_url` the address that the operator has set, `query` the
    request's parameters except `format`, `pinned` the release that the request names, `current` the current release if
    that is another one, `borders` the edition of the borders if there are any, and `context` what else the template
    needs.
    """

    template: str
    title: str
    content: Mapping[str, Any]
    status: int = HTTPStatus.OK
    root: str = ""
    public_url: str | None = None
    target: str = ""
    allow: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    release: Release | None = None
    pinned: str | None = None
    current: str | None = None
    language: Language = "en"
    query: Mapping[str, str] = field(default_factory=dict)
    borders: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def canonical(self) -> str | None:
        """The canonical address of this page; None for a problem, or if the operator has set no public address.

        It has `format=api` where JSON has the same address: telephones share it, and crawlers accept anything.
        """
        if self.public_url is None:
            return None
        path, _, api_query = self.target.partition("?")
        query = {**self.query, **({"format": "api"} if api_query else {})}
        return f"{self.public_url}{path.removeprefix(self.root)}" + (f"?{urlencode(query)}" if query else "")


def render_text(template: str, language: Language, **context: object) -> str:
    """Return a page, or a document that is escaped as XML; its template has the translations and `context`."""
    translations = {"_": translator(language), "said": lenient_translator(language)}
    return _templates.get_template(template).render(language=language, **translations, **context)


def _render_page(view: View) -> bytes:
    """Return the page, with as many lines of the JSON as there is room for."""
    page = render_text(view.template, view.language, view=view, body=_BODY, **view.context).encode()
    before, mark, after = page.partition(_BODY.encode())
    if not mark:
        return page
    json = escape(to_json(view.content, indent=2).decode(), quote=False).encode()
    room = MAX_HTML_BYTES - len(page)
    if len(json) > room:
        json = json[: max(room - len(_CUT), 0)].rpartition(b"\n")[0] + _CUT
    return before + json + after


class Renderer(NamedTuple):
    """A representation, and how a view is rendered as it."""

    format: Format
    media_type: str
    problem_type: str
    headers: Mapping[str, str]
    render: Callable[[View], bytes]


JSON = Renderer(
    "json",
    "application/json",
    "application/problem+json",
    # JSON is UTF-8 and has no charset parameter (RFC 8259 §11).
    {"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"},
    lambda view: to_json(view.content),
)
HTML = Renderer(
    "api",
    "text/html",
    "text/html; charset=utf-8",
    {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    },
    _render_page,
)
_RENDERERS: Mapping[str, Renderer] = {renderer.format: renderer for renderer in (JSON, HTML)}
FORMATS: Mapping[str, Format] = {renderer.media_type: renderer.format for renderer in _RENDERERS.values()}


def select_renderer(format_: Format | None, headers: Headers) -> Renderer:
    """Choose by `format`, else by the Accept header; raise NotAcceptableError if that allows neither."""
    return _RENDERERS[format_ or FORMATS[choose_media_type(accept_header(headers), list(FORMATS))]]
