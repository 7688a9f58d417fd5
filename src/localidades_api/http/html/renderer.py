"""The representations of a resource: JSON, and the browsable HTML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import escape
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.types import Scope

from localidades_api.domain.schemas import Release
from localidades_api.http.html.i18n import Language, lenient_translator, translator
from localidades_api.http.negotiation import accept_header, choose_media_type

Format = Literal["json", "api"]

MAX_HTML_BYTES = 100_000  # bytes: an HTML page stays below
_MIN_JSON_BYTES = 2_000  # bytes that the exchange has at least, where it is shown
_BODY = "\0"  # stands where the JSON goes; nothing that is shown can hold it
_CUT = "\n…".encode()

_templates = Environment(
    loader=PackageLoader("localidades_api.http.html"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def root_of(scope: Scope) -> str:
    """Return the path below which the service stands; within a mount, `root_path` has the mount's as well."""
    root: str = scope.get("app_root_path", scope.get("root_path", ""))
    return root


@dataclass(frozen=True, slots=True)
class View:
    """A response's content, and what its HTML page shows around it.

    `target` and `headers` are those of the exchange that gives the content as JSON; `root` is the path below which the
    service stands; `query` what was asked besides the format; `pinned` the release that was asked for by name;
    `context` what the template needs besides.
    """

    template: str
    title: str
    content: Mapping[str, Any]
    status: int = HTTPStatus.OK
    root: str = ""
    target: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    release: Release | None = None
    pinned: str | None = None
    language: Language = "en"
    query: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


class Renderer(Protocol):
    """Turns a view into bytes of one media type."""

    format: Format
    media_type: str
    problem_type: str
    headers: Mapping[str, str]

    def render(self, view: View) -> bytes:
        """Return the body of the answer."""


class JsonRenderer:
    """The content alone, as compact UTF-8."""

    format: Format = "json"
    media_type = "application/json"
    problem_type = "application/problem+json"
    # JSON is UTF-8 and has no charset parameter (RFC 8259 §11).
    headers: Mapping[str, str] = {"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"}

    def render(self, view: View) -> bytes:
        """Return the content."""
        return to_json(view.content)


class BrowsableRenderer:
    """The HTML page: the content as a table, and the exchange as a program sees it."""

    format: Format = "api"
    media_type = "text/html"
    problem_type = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {
        "Content-Type": problem_type,
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }

    def render(self, view: View) -> bytes:
        """Return the page, with as much of the JSON as it has room for.

        One that leaves hardly any, as that of 500 keys, which every link has to keep, is drawn again as a lean one:
        the records, and few links.
        """
        page = self._draw(view, lean=False)
        if len(page) > MAX_HTML_BYTES - _MIN_JSON_BYTES:
            page = self._draw(view, lean=True)
        before, mark, after = page.partition(_BODY.encode())
        if not mark:
            return page
        return before + _beginning(view.content, MAX_HTML_BYTES - len(page)) + after

    def _draw(self, view: View, *, lean: bool) -> bytes:
        template = _templates.get_template(view.template)
        return template.render(
            view=view,
            query=view.query,
            body=_BODY,
            lean=lean,
            _=translator(view.language),
            said=lenient_translator(view.language),
            **view.context,
        ).encode()


def _beginning(content: Mapping[str, Any], room: int) -> bytes:
    """Return the JSON of a content as it stands in HTML, or as many lines of it as there is room for."""
    text = escape(to_json(content, indent=2).decode()).encode()
    return text if len(text) <= room else text[: room - len(_CUT)].rpartition(b"\n")[0] + _CUT


JSON = JsonRenderer()
_RENDERERS: Mapping[str, Renderer] = {renderer.format: renderer for renderer in (JSON, BrowsableRenderer())}
FORMATS: Mapping[str, Format] = {renderer.media_type: renderer.format for renderer in _RENDERERS.values()}


def select_renderer(format_: Format | None, headers: Headers) -> Renderer:
    """Choose by `format`, else by the Accept header; raise NotAcceptableError where neither leaves one."""
    return _RENDERERS[format_ or FORMATS[choose_media_type(accept_header(headers), list(FORMATS))]]
