"""The guides work step by step, and name only what exists; `make docs` writes the tables of the reference."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import typer

from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.settings import PREFIX, Settings
from tests.deploy.guides import DOCS, MARKED, SERVICE, blocks_of, follow
from tests.support.wire import ROOT

DATABASE = "postgresql://localidades:localidades@127.0.0.1:5432/localidades"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
ENGLISH = [page for page in PAGES if not page.startswith("es/")]


# Other tests run the blocks of these guides; those of the Spanish pages are the same.
ELSEWHERE = {"guides/production.md", "guides/outlines.md"}


@pytest.mark.tail
@pytest.mark.parametrize("page", [one for one in ENGLISH if one not in ELSEWHERE and blocks_of(one)])
def test_guide_steps_print_what_they_show(page: str, demo_service: str, empty_database: str, clone: Path) -> None:
    for block in blocks_of(page):
        text = block.text.replace(SERVICE, demo_service.removeprefix("http://"))
        if block.needs_database:
            assert f"'{DATABASE}'" in text
            text = text.replace(DATABASE, empty_database)
        assert block.is_tried
        follow(block.language, text, clone)


# -- What the pages name


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page, and of README."""
    for path in (*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "README.es.md"):
        yield path.name, path.read_text(encoding="utf-8")


def test_pages_name_only_existing_settings_and_their_defaults() -> None:
    defaults = {PREFIX + name.upper(): field.default for name, field in Settings.model_fields.items()}
    for page, text in pages():
        assert set(re.findall(rf"`({PREFIX}[A-Z_]*[A-Z])\b", text)) <= defaults.keys(), page
        for name, shown in re.findall(rf"`({PREFIX}\w+)`\s\(([\d.,]+)", text):
            assert float(shown.replace(",", "")) == defaults[name], (page, name)


def _commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # a command or a group
    for name, command in group.commands.items():
        yield above + name, command
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, f"{above}{name} ")


def test_pages_name_only_existing_commands_and_options() -> None:
    known = {
        name: {word for one in command.params for word in (*one.opts, *one.secondary_opts)} | {"--help"}
        for name, command in _commands(typer.main.get_command(command_line))
    }
    for page, text in pages():
        code = "\n".join(re.findall(r"^```.*?^```$|`[^`\n]+`", text, re.MULTILINE | re.DOTALL))
        for line in re.findall(r"(?<!=)\blocalidades-api ([a-z][^`|&#\n]*)", code):
            name = max((one for one in known if f"{line} ".startswith(f"{one} ")), key=len, default="")
            assert name, (page, line)
            assert set(re.findall(r" (--[a-z-]+)", line)) <= known[name], (page, line)


def test_pages_name_only_existing_parameters() -> None:
    known = {
        re.sub(r"\{\w+\}", "[^/]+", path).removeprefix("/api/census"): {
            one["name"] for operation in methods.values() for one in operation.get("parameters", ())
        }
        for path, methods in create_app(Settings()).openapi()["paths"].items()
    }
    for page, text in pages():
        untried = MARKED.sub("", text)  # the others are sent to a service
        for path, query in re.findall(r"(?:/api/census|…)(/[^\s`'\")|>\]?]*)\?([^\s`'\")|>\]]+)", untried):
            described = re.sub(r"/download/localidades\.\w+$", "/download/", path)  # the document lacks names of files
            names = known.get(described) or set().union(*(known[one] for one in known if re.fullmatch(one, described)))
            assert parse_qs(query).keys() <= names, (page, path, query)


def test_every_page_is_in_the_navigation() -> None:
    assert sorted(re.findall(r'"([^"]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))) == PAGES


def test_spanish_pages_have_the_tried_blocks_of_the_english_ones() -> None:
    pairs = {page: page.removeprefix("es/") for page in PAGES if page.startswith("es/")}
    for spanish, english in (pairs | {"../README.es.md": "../README.md"}).items():
        assert blocks_of(spanish) == blocks_of(english), spanish
