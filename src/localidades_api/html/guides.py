"""The guides for people who don't program: pages of the documentation that the site shows below `/help`."""

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urldefrag

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from localidades_api.html.languages.translators import LANGUAGES, Language
from localidades_api.http.paths import HELP, PICTURES
from localidades_api.settings import find_clone

GUIDES = ("add-keys", "data", "openrefine")  # in the order of the page /help
SERVICE = "http://127.0.0.1:8000"  # in the documentation: the service of whoever reads it
_DOCS = (find_clone() or Path(__file__).parents[1]) / "docs"
PICTURE_FOLDER = _DOCS / "guides" / "pictures"

_MARKDOWN = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
_SIZE = struct.Struct("<26x2H")  # width and height of a lossy WebP (RFC 6386 §9.1)


class Site(NamedTuple):
    """The service that shows a guide: its path prefix, the query that links keep, and its address."""

    root: str
    query: str
    address: str


class Guide(NamedTuple):
    """A guide: its title and first paragraph as text, then that paragraph and the rest as HTML."""

    name: str
    title: str
    summary: str
    lead: Markup
    body: Markup


@lru_cache(maxsize=64)
def read_guide(name: str, language: Language, site: Site) -> Guide:
    """Render a guide from its Markdown file."""
    folder = _DOCS if language == LANGUAGES[0] else _DOCS / language
    tokens = _MARKDOWN.parse((folder / "guides" / f"{name}.md").read_text(encoding="utf-8"))
    for block, inside in pairwise(tokens):
        if block.type == "heading_open":
            block.attrSet("id", _anchor(inside.content))
    for block in tokens:
        for token in block.children or ():
            _adapt(token, site)
    # A heading and a paragraph are three tokens each: opening, text, closing.
    title, lead, body = tokens[1:2], tokens[4:5], tokens[6:]
    return Guide(name, _text(title[0]), _text(lead[0]), _render(lead), _render(body))


def _text(block: Token) -> str:
    return "".join(" " if token.type == "softbreak" else token.content for token in block.children or ())


def _render(tokens: Sequence[Token]) -> Markup:
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))  # noqa: S704  # HTML in a file is escaped


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as the documentation's site and GitHub make it."""
    return re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-")


def _adapt(token: Token, site: Site) -> None:
    """Make a link, a picture or an address in a text that of the service."""
    match token.type:
        case "link_open":
            token.attrSet("href", _link(str(token.attrGet("href")), site))
        case "image":
            name = PurePosixPath(str(token.attrGet("src"))).name
            width, height = _SIZE.unpack_from((PICTURE_FOLDER / name).read_bytes())
            size = {"width": width, "height": height}
            token.attrs |= {"src": f"{site.root}{PICTURES}/{name}", **size, "loading": "lazy"}
        case "code_inline" if token.content.startswith(SERVICE):
            token.content = site.address + token.content.removeprefix(SERVICE)
            token.attrSet("data-copy", "")


def _link(target: str, site: Site) -> str:
    """Return where a link leads: to a page of the service, to another guide, or elsewhere."""
    if target.startswith(SERVICE):
        return f"{site.root}{target.removeprefix(SERVICE)}{site.query}"
    file, anchor = urldefrag(target)
    if not file.endswith(".md"):
        return target
    return f"{site.root}{HELP}/{file.removesuffix('.md')}{site.query}" + (f"#{anchor}" if anchor else "")
