"""The guides are tried step by step, and the reference names what there is, all of it and nothing else."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from localidades_api.api.site import answerable
from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.settings import PREFIX, Settings, default_data_dir
from tests.support.guides import DOCS, SERVICE, blocks_of, follow
from tests.support.machine import needed
from tests.support.wire import ROOT

DATABASE = "postgresql://localidades:localidades@127.0.0.1:5432/localidades"


def pages() -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


# The blocks of the pages in Spanish are the same (test_translation); those of one guide are tried in test_production.
ELSEWHERE = "guides/production.md"
TRIED = [page for page in pages() if not page.startswith("es/") and page != ELSEWHERE and blocks_of(page)]


# -- The guides


@pytest.mark.tail
@pytest.mark.parametrize("page", TRIED)
def test_steps_of_a_guide_do_what_it_shows(page: str, demo_service: str, empty_database: str, clone: Path) -> None:
    for block in blocks_of(page):
        text = block.text.replace(SERVICE, demo_service.removeprefix("http://"))
        if block.needs_database:
            assert f"'{DATABASE}'" in text
            text = text.replace(DATABASE, empty_database)
        assert block.is_tried
        follow(block.language, text, clone)


def test_guides_are_tried() -> None:
    guides = {"first-request", "keeping-a-copy", "ci", "spreadsheet-to-keys"}
    assert {f"guides/{name}.md" for name in guides} <= set(TRIED)
    assert sum(len(blocks_of(page)) for page in TRIED) >= 12


# -- The reference


def reference(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of tables whose first is code, as `| `x` | … |`."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[re.sub("^`([^`]*)`$", r"\1", cell.strip()) for cell in line.strip("|").split("|")] for line in lines]


def sections(text: str) -> dict[str, str]:
    """Return what stands below each heading that is code, as ## `x`."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {head.strip("`"): body for head, body in zip(parts[1::2], parts[2::2], strict=True) if head.startswith("`")}


def test_reference_has_every_setting_with_its_default_and_no_other() -> None:
    documented = {name: default for name, default, _ in rows(reference("settings"))}
    expected = {}
    for name, field in Settings.model_fields.items():
        variable = "DATABASE_URL" if name == "database_url" else PREFIX + name.upper()
        expected[variable] = "unset" if field.default is None else str(field.default)
        if field.default_factory is default_data_dir:
            expected[variable] = documented[variable]
            assert "/var/lib/localidades-api" in documented[variable]
    assert documented == expected


def _words(command: Any) -> dict[str, str]:  # noqa: ANN401  # of Typer's own copy of click
    """Return the options and arguments of a command with their defaults."""
    found = {}
    for parameter in command.params:
        given = parameter.default is not None and parameter.default is not False
        for word in [*parameter.opts, *parameter.secondary_opts]:
            found[word] = str(parameter.default) if given else ""
    return found


def _commands(group: typer.core.TyperGroup) -> Iterator[tuple[str, Any]]:
    """Return every command with the words that call it."""
    for name, command in group.commands.items():
        yield name, command
        if isinstance(command, typer.core.TyperGroup):
            yield from ((f"{name} {below}", one) for below, one in _commands(command))


def test_reference_has_every_command_and_option_and_no_other() -> None:
    group = typer.main.get_command(command_line)  # get_group knows nothing of completion
    assert isinstance(group, typer.core.TyperGroup)
    text = reference("commands")
    general = {cells[0] for cells in rows(text.partition("\n## ")[0])}
    assert general == {"--help", *_words(group)}
    documented = sections(text)
    commands = dict(_commands(group))
    assert set(documented) == set(commands)
    for name, command in commands.items():
        cells = {cells[0]: cells[1] for cells in rows(documented[name])}
        words = {word: default for word, default in _words(command).items() if word != "--help"}
        assert set(cells) == set(words), name
        assert {word: cells[word] for word, default in words.items() if default} == {
            word: default for word, default in words.items() if default
        }, name


def test_reference_has_every_parameter_of_every_address_and_no_other() -> None:
    document = create_app(Settings()).openapi()
    text = reference("parameters")
    documented = sections(text)
    operations = {
        path if method == "get" else f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert set(documented) == set(operations)
    common = {cells[0] for cells in rows(text.partition("\n## `")[0])}
    for path, operation in operations.items():
        parameters = {one["name"]: one for one in operation.get("parameters", ())}
        body = documented[path]
        own = {cells[0]: cells[1] for cells in rows(body)}
        prose = "\n".join(line for line in body.splitlines() if not line.startswith("|"))
        named = own.keys() | (set(re.findall(r"`([a-z_]+)`", prose)))
        assert named == set(parameters), path
        for name, parameter in parameters.items():
            if name in own:
                assert ("Required." in own[name]) == (parameter["required"] and parameter["in"] == "query"), (
                    path,
                    name,
                )
                if (default := parameter["schema"].get("default")) is not None:
                    assert f"default {default}" in own[name], (path, name)
                for choice in parameter["schema"].get("enum", ()):
                    assert f"`{choice}`" in own[name], (path, name)
            else:
                assert name in common or name == "id", (path, name)


def test_reference_has_every_type_of_problem_and_no_other() -> None:
    documented = {cells[0]: cells[1] for cells in rows(reference("errors"))}
    assert documented == {error.slug: str(int(error.status)) for error in answerable()}


# -- The site


def test_site_leaves_no_page_out() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

    def listed(entries: list[Any]) -> Iterator[str]:
        for entry in entries:
            if isinstance(entry, str):
                yield entry
            else:
                for value in entry.values():
                    yield from listed(value if isinstance(value, list) else [value])

    found = list(listed(config["nav"]))
    assert sorted(found) == pages()
    spanish = [page.removeprefix("es/") for page in found if page.startswith("es/")]
    assert spanish == [page for page in found if not page.startswith(("es/", "decisions/"))]
    assert config["theme"]["font"] is False


def test_site_loads_nothing_from_elsewhere() -> None:
    site = ROOT / "build" / "site"
    needed(site / "index.html", "`make docs` builds the site")
    built_pages = list(site.rglob("*.html"))
    assert len(built_pages) >= len(pages()), "`make docs` has not been run since"
    for page in built_pages:
        text = page.read_text(encoding="utf-8")
        language = "es" if page.relative_to(site).parts[0] in {"es", "examples"} else "en"
        assert f'<html lang="{language}"' in text, page
        assert not re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"?(?:https?:)?//", text), page
        assert not re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect|preload)[^>]*href=\"?(?:https?:)?//", text), (
            page
        )
    shown = (site / "guides" / "keeping-a-copy.html").read_text(encoding="utf-8")
    assert "INSERT OR REPLACE" in re.sub(r"<[^>]*>", "", shown), "the example is not shown"
