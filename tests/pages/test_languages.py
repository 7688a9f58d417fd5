"""Translations are complete, and a browser gets the language that it prefers."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import get_args

import httpx
import pytest
from babel.messages.extract import extract
from babel.messages.pofile import read_po

import localidades_api
from localidades_api.api.site import answerable
from localidades_api.app import EXTENSIONS
from localidades_api.html.languages.accept_language import choose_language
from localidades_api.html.languages.match_words import FAULTS, OUTCOMES
from localidades_api.html.languages.translators import lenient_translator
from localidades_api.names.reasons import Reason
from localidades_api.names.rows import Outcome
from tests.pages.conftest import Reader
from tests.support.pages import ERRORS, PAGES, Page

PACKAGE = Path(localidades_api.__file__).parent
TEMPLATES = [*(PACKAGE / "html" / "templates").iterdir(), *PACKAGE.glob("extensions/*/*.html")]
# Jinja's options, as the environment of the pages has them.
OPTIONS = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}
# Which argument of these is a sentence that a page may show.
SENTENCES = {"NotFoundError": 0, "RequestError": 0, "whole_number": 0, "plain_decimal": 0, "matching": 1}


@cache
def translations() -> dict[str, str]:
    with (files("localidades_api.html.languages") / "es.po").open("rb") as file:
        return {str(message.id): str(message.string) for message in read_po(file, abort_invalid=True) if message.id}


def test_every_text_of_a_template_is_translated() -> None:
    texts: set[str] = set()
    for path in TEMPLATES:
        with path.open("rb") as file:  # as `pybabel extract`
            texts |= {str(text) for _, text, _, _ in extract("jinja2", file, keywords={"_": None}, options=OPTIONS)}
    assert len(texts) > 80
    known = translations()
    assert {text for text in texts if not known.get(text)} == set()


def test_every_sentence_of_an_error_is_translated() -> None:
    texts = {text for error in answerable() for text in (error.title, error.meaning, error.remedy)}
    texts |= {extension.link for extension in EXTENSIONS if extension.link}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SENTENCES:
                sentences = node.args[SENTENCES[node.func.id] :][:1]
                texts |= {str(sentence.value) for sentence in sentences if isinstance(sentence, ast.Constant)}
    assert len(texts) > 40
    say = lenient_translator("es")
    assert {text for text in texts if say(text) == text} == set()


def test_every_code_of_a_match_has_a_name() -> None:
    assert set(FAULTS) == {reason.code for reason in Reason}
    assert set(OUTCOMES) == {*get_args(Outcome), "problem", "chosen", "accepted", "rejected"}
    assert {*FAULTS.values(), *OUTCOMES.values()} <= translations().keys()


def test_translations_keep_names_in_backticks() -> None:
    for english, spanish in translations().items():
        assert re.findall("`[^`]+`", english) == re.findall("`[^`]+`", spanish)


@pytest.mark.parametrize("target", ["localidades/?page_size=1", "municipios/?page_size=1"])
async def test_links_keep_the_requested_language(client: httpx.AsyncClient, target: str) -> None:
    address = f"/api/census/{target}"
    links = (await client.get(f"{address}&format=api&lang=es")).headers["link"]
    assert all(link.endswith("lang=es") for link in re.findall("<([^>]+)>", links))
    for query in ("format=api", "format=json&lang=es"):
        assert "lang" not in (await client.get(f"{address}&{query}")).headers["link"]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"), ("", "en"), ("ES", "es"), ("es-Latn-MX", "es"), ("esperanto, spanish", "en"),
        ("en-US,en;q=0.9,es;q=0.8", "en"), ("en;q=0.1, es;q=0.2", "es"),
        ("es;q=0.5, en;q=0.5", "es"),  # the first of equals
        ("es;q=0", "en"), ("*, es;q=0.5", "es"), ("es ; Q=1.000", "es"), ("es;q=nan", "en"), (",,;;q=,es", "es"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}s, <script>", "en"),
        ("x, " * 100_000 + "es", "en"), ("es, " + "x, " * 100_000, "es"), ("a-" * 100_000, "en"),
    ],
)  # fmt: skip
def test_preferred_language_is_chosen(header: str | None, language: str) -> None:
    assert choose_language(header) == language


async def test_accept_language_may_span_several_lines(client: httpx.AsyncClient) -> None:
    headers = [("accept", "text/html"), ("accept-language", "fr"), ("accept-language", "es;q=0.5")]
    answer = await client.get("/api/census/", headers=headers)
    assert Page.of(answer).one("html").attributes["lang"] == "es"


def said_on(page: Page) -> Iterator[str]:
    """Yield the texts of a page and of its attributes."""
    for element in page.elements:
        if not {"pre", "code"} & {element.tag, *element.path}:
            yield from (text.strip(" \n·:←→") for text in element.own)
        for name, value in element.attributes.items():
            if name in {"aria-label", "placeholder", "title"} or name.startswith("data-"):
                yield value


@cache
def in_english() -> tuple[set[str], re.Pattern[str]]:
    """Return the English texts; those of several words are also searched within others."""
    catalogue = translations()
    english = set(catalogue) - set(catalogue.values())
    return english, re.compile("|".join(re.escape(text) for text in english if " " in text))


@pytest.mark.parametrize(
    "target", [*PAGES, "/match?format=api", "/map?format=api&municipio_id=1001", *(target for target, _ in ERRORS)]
)
async def test_spanish_page_has_no_english_text(read: Reader, target: str) -> None:
    english, phrases = in_english()
    page, same_in_english = [
        (await read(re.sub("&lang=[a-z]+", "", target) + f"&lang={language}")).page for language in ("es", "en")
    ]
    assert page.one("html").attributes["lang"] == "es"
    assert {text for text in said_on(page) if text in english or phrases.search(text)} == set()
    assert english & set(said_on(same_in_english))  # such texts are found if they exist
