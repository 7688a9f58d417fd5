"""Texts of the pages: each has its Spanish, and a browser gets the language that it prefers."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, get_args

import httpx
import pytest
from babel.messages.extract import extract
from babel.messages.pofile import read_po
from pydantic import TypeAdapter, ValidationError

import localidades_api
from localidades_api import errors
from localidades_api.catalogue.attribution import REARRANGED, credit
from localidades_api.catalogue.messages import SENTENCES, refuse_parameter, refuse_value, several_of
from localidades_api.files.kinds import KINDS
from localidades_api.languages.match_words import FAULTS, OUTCOMES
from localidades_api.languages.translators import (
    choose_language,
)
from localidades_api.names.rows import FaultCode, Outcome
from tests.support.pages import ERRORS, PAGES, Page

PACKAGE = Path(localidades_api.__file__).parent
HTML = PACKAGE / "html"
OPTIONS = {"trim_blocks": "true", "lstrip_blocks": "true", "silent": "false"}  # as the environment has them


def texts_of(template: Path) -> Iterator[str]:
    with template.open("rb") as file:
        for _, message, _, _ in extract("jinja2", file, keywords={"_": None}, options=OPTIONS):
            assert isinstance(message, str)
            yield message


def in_templates() -> set[str]:
    """Return every text that a template says."""
    return {text for template in (HTML / "templates").iterdir() for text in texts_of(template)}


def in_catalogue() -> dict[str, str]:
    with (files("localidades_api.languages") / "es.po").open("rb") as file:
        return {str(message.id): str(message.string) for message in read_po(file, abort_invalid=True) if message.id}


def test_every_text_of_a_template_is_in_spanish() -> None:
    assert len(in_templates()) > 80
    spanish = in_catalogue()
    assert {text for text in in_templates() if not spanish.get(text)} == set()


def test_text_stands_once_in_the_catalogue() -> None:
    lines = (PACKAGE / "languages" / "es.po").read_text(encoding="utf-8").splitlines()
    entries = Counter(line for line in lines if line.startswith("msgid"))
    assert [line for line, count in entries.items() if count > 1] == []


_REFUSALS = {
    "plain_decimal",
    "whole_number",
    "matching",
    "PydanticCustomError",
    "InvalidParametersError",
    "NotFoundError",
    "RequestError",
}


def of_errors() -> set[str]:
    """Return the titles and the sentences of every error that a page may show, as the source has them."""
    of_module = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in of_module if issubclass(kind, errors.LocalidadesError)]
    found = {text for kind in kinds for text in (kind.title, kind.meaning, kind.remedy)}
    commands = {kind.__name__ for kind in kinds if issubclass(kind, errors.CommandError)}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        tree.body = [one for one in tree.body if getattr(one, "name", None) not in commands]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                if called in _REFUSALS or (path.name == "errors.py" and called == "__init__"):
                    found |= {
                        str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant) and is_text(one)
                    }
    found |= {errors.GoneError("2012-06", successor).detail for successor in (None, 10010001)}
    found |= {"The database does not answer.", "This resource has no such parameter.", "Give this parameter only once."}
    found |= {"Something went wrong; the service has logged the error."}
    found |= {"The service has run out of file descriptors and can't reach the database."}
    return found


def of_values() -> set[str]:
    """Return the sentences about a value that a query can meet."""
    kinds = ("missing", "greater_than_equal", "less_than_equal", "string_too_short", "string_too_long")
    return {SENTENCES[kind] for kind in kinds}


def of_choices() -> set[str]:
    """Return what is said of a name or a value that is not among those to choose from, as the catalogue spells it."""
    names, found = ("wanted", "others"), {"Use at most {count} keys."}
    for given in ("wanted", "x"):
        with pytest.raises(ValidationError) as caught:
            TypeAdapter(Annotated[str, several_of(names)]).validate_python(given.upper())
        several = caught.value.errors()[0]["msg"]
        found |= {refuse_parameter(given, names), refuse_value(given, names), several}
    return {text.replace("wanted, others", "{names}").replace("wanted", "{name}") for text in found}


# What is said of a body of JSON, and of workbooks as answers to text: no page shows it.
_OF_BODIES = re.compile(r"The JSON|.*: ask for CSV\.|Only a workbook")
# What is said of a row of JSON and of a point, which only tables of the API have.
_OF_TABLES = re.compile(r"It is not JSON|It has no \{\}|It has `\{\}` twice|It is no object|Give both")


def of_rows() -> set[str]:
    """Return what the service says of a file or a row in it, as the source has it: `{}` for what differs."""
    found = {f"The file is {what}." for _, what in KINDS}
    for path in (*(PACKAGE / "bulk").glob("*.py"), PACKAGE / "files" / "workbook.py"):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) not in docstrings | parts:
                text = text_of(node)
                if re.fullmatch(r"[A-Z`].* .*\.", text) and text != "The file is {}." and not _OF_BODIES.match(text):
                    found.add(text)
    return found


def text_of(node: ast.AST) -> str:
    """Return a text of the source, `{}` for what is put into it; none for what is no text."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def without_names(message: str) -> str:
    return re.sub(r"\{\w+\}", "{}", message)


async def test_match_page_has_every_sentence_about_a_row_in_spanish(client: httpx.AsyncClient) -> None:
    page = Page.of(await client.get("/match?format=api&lang=es"))
    held = {without_names(code.text) for code in page.all("code") if "template" in code.path}
    assert len(of_rows()) > 15
    assert {text for text in of_rows() if not _OF_TABLES.match(text)} - held == set()
    assert held - of_rows() <= of_errors()


async def test_links_of_a_page_keep_to_the_language_that_was_asked_for(client: httpx.AsyncClient) -> None:
    for target in ("localidades/", "municipios/", "localidades/?ambito=U"):
        address = f"/api/census/{target}"
        asked = await client.get(
            address, params={"format": "api", "lang": "es", "page_size": "1", **parameters(target)}
        )
        assert all(link.endswith("lang=es") for link in re.findall("<([^>]+)>", asked.headers["link"]))
        left = await client.get(address, params={"format": "api", **parameters(target)})
        data = await client.get(address, params={"format": "json", "lang": "es", **parameters(target)})
        assert "lang" not in left.headers["link"] + data.headers["link"]


def parameters(target: str) -> dict[str, str]:
    return dict(part.split("=") for part in target.partition("?")[2].split("&") if part)


@pytest.mark.parametrize(
    "target",
    [
        f"localidades/?page=0&page_size=5000&ambito=Z&clave=1&search={'a' * 101}&release=-&lang=fr&x=1",
        "localidades/suggest/",
        "localidades/nearest/?lat=91&lon=nan",
    ],
)
async def test_fault_is_told_in_spanish_whoever_found_it(client: httpx.AsyncClient, target: str) -> None:
    """tests/http/test_messages.py has those of every parameter."""
    answer = await client.get(f"/api/census/{target}", headers={"accept": "text/html", "accept-language": "es"})
    assert answer.status_code == 422
    assert not re.search("should|required| or ", " ".join(said_on(Page.of(answer))))


def is_text(constant: ast.Constant) -> bool:
    return isinstance(constant.value, str) and bool(re.fullmatch(r"[A-Z][^{}]*\.", constant.value))


def test_catalogue_of_messages_holds_every_sentence_of_an_error_and_nothing_that_is_not_said() -> None:
    attribution = {credit("demo", "en", is_demo=True), REARRANGED}
    assert len(of_errors()) > 30
    about_rows = of_rows()
    said = {text for text in in_catalogue() if without_names(text) in about_rows}
    said |= of_errors() | of_values() | of_choices() | attribution | {*OUTCOMES.values(), *FAULTS.values()}
    assert set(in_catalogue()) - in_templates() == said - in_templates()


def test_every_code_of_a_match_has_a_name() -> None:
    assert set(FAULTS) == set(get_args(FaultCode))
    assert set(OUTCOMES) == {*get_args(Outcome), "problem", "chosen"}


def test_message_keeps_the_names_that_a_program_needs() -> None:
    for english, spanish in in_catalogue().items():
        assert re.findall("`[^`]+`", english) == re.findall("`[^`]+`", spanish)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        (None, "en"),
        ("", "en"),
        ("es", "es"),
        ("ES", "es"),
        ("es-MX", "es"),
        ("es-419", "es"),
        ("es-Latn-MX", "es"),
        ("es-MX,es;q=0.9,en-US;q=0.8,en;q=0.7", "es"),
        ("en-US,en;q=0.9,es;q=0.8", "en"),
        ("en;q=0.1, es;q=0.2", "es"),
        ("en;q=0.2, es;q=0.1", "en"),
        ("es;q=0.5, en;q=0.5", "es"),  # among equals the first that is named
        ("es;q=0, en;q=0.1", "en"),
        ("es;q=0", "en"),
        ("fr, de;q=0.9, es;q=0.1", "es"),
        ("fr, de;q=0.9", "en"),
        ("*", "en"),
        ("fr, *;q=0.5", "en"),
        ("*, es;q=0.5", "es"),
        ("es ; q=1.000", "es"),
        ("es;q=1.0000", "en"),
        ("es;q=2", "en"),
        ("es;q=1.9, en", "en"),
        ("es;Q=0.2, en;q=0.1", "es"),
        ("es;q=nan", "en"),
        ("es;q=-1", "en"),
        ("esperanto, spanish", "en"),
        (",,;;q=,es", "es"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}s, <script>", "en"),
        ("es" * 100_000, "en"),
        ("x, " * 100_000 + "es", "en"),
        ("es, " + "x, " * 100_000, "es"),
        ("a-" * 100_000, "en"),
    ],
)
def test_language_is_the_one_that_the_browser_prefers(header: str | None, language: str) -> None:
    assert choose_language(header) == language


async def test_language_is_read_off_several_lines_of_the_header(client: httpx.AsyncClient) -> None:
    headers = [("accept", "text/html"), ("accept-language", "fr"), ("accept-language", "es;q=0.5")]
    answer = await client.get("/api/census/", headers=headers)
    assert Page.of(answer).one("html").attributes["lang"] == "es"


def said_on(page: Page) -> Iterator[str]:
    """Give what a page says: its texts, and those of its attributes."""
    for element in page.elements:
        if not {"pre", "code"} & {element.tag, *element.path}:
            yield from (text.strip(" \n·:←→") for text in element.own)
        for name, value in element.attributes.items():
            if name in {"aria-label", "placeholder", "title"} or name.startswith("data-"):
                yield value


@pytest.mark.parametrize(
    "target", [*PAGES, "/match?format=api", "/map?format=api&municipio_id=1001", *(target for target, _ in ERRORS)]
)
async def test_page_in_spanish_has_no_text_of_ours_in_english(client: httpx.AsyncClient, target: str) -> None:
    """Neither where a text stands alone nor, of those with more than one word, within another."""
    catalogue = in_catalogue()
    english = set(catalogue) - set(catalogue.values())
    phrases = re.compile("|".join(re.escape(text) for text in english if " " in text))
    page = Page.of(await client.get(re.sub("&lang=[a-z]+", "", target) + "&lang=es"))
    assert page.one("html").attributes["lang"] == "es"
    assert {text for text in said_on(page) if text in english or phrases.search(text)} == set()
    same_in_english = Page.of(await client.get(re.sub("&lang=[a-z]+", "", target) + "&lang=en"))
    assert english & set(said_on(same_in_english))  # where there is such a text, it is found
