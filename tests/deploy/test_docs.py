"""The guides work step by step, the reference lists exactly what exists, and the Spanish pages say it too."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from localidades_api.api.site import answerable
from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.settings import PREFIX, Settings, default_data_dir
from tests.deploy.guides import DOCS, SERVICE, blocks_of, follow
from tests.support.wire import ROOT

DATABASE = "postgresql://localidades:localidades@127.0.0.1:5432/localidades"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
ENGLISH = [page for page in PAGES if not page.startswith("es/")]


# test_production runs the blocks of its guide; those of the Spanish pages are the same.
@pytest.mark.tail
@pytest.mark.parametrize("page", [one for one in ENGLISH if one != "guides/production.md" and blocks_of(one)])
def test_guide_steps_print_what_they_show(page: str, demo_service: str, empty_database: str, clone: Path) -> None:
    for block in blocks_of(page):
        text = block.text.replace(SERVICE, demo_service.removeprefix("http://"))
        if block.needs_database:
            assert f"'{DATABASE}'" in text
            text = text.replace(DATABASE, empty_database)
        assert block.is_tried
        follow(block.language, text, clone)


# -- The reference


def reference(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """Return the cells of the table rows that begin with code, such as `| `x` | … |`."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[re.sub("^`([^`]*)`$", r"\1", cell.strip()) for cell in line.strip("|").split("|")] for line in lines]


def sections(name: str) -> dict[str, str]:
    """Return the text below each heading that is code, such as ## `x`."""
    parts = re.split(r"^## (.*)$", reference(name), flags=re.MULTILINE)
    return {head.strip("`"): body for head, body in zip(parts[1::2], parts[2::2], strict=True) if head.startswith("`")}


def test_reference_has_every_setting_and_its_default() -> None:
    documented = {name: default for name, default, _ in rows(reference("settings"))}
    expected = {
        "DATABASE_URL" if name == "database_url" else PREFIX + name.upper(): str(field.default)
        for name, field in Settings.model_fields.items()
        if field.default_factory is not default_data_dir
    }
    assert "/var/lib/localidades-api" in documented.pop(f"{PREFIX}DATA_DIR")
    assert {name: "None" if default == "unset" else default for name, default in documented.items()} == expected


def _commands(group: Any, above: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # a command or a group
    for name, command in group.commands.items():
        yield above + name, command
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, f"{above}{name} ")


def test_reference_has_every_command_and_option() -> None:
    expected = {
        name: {word for one in command.params for word in (*one.opts, *one.secondary_opts)} - {"--help"}
        for name, command in _commands(typer.main.get_command(command_line))
    }
    assert {name: {cells[0] for cells in rows(text)} for name, text in sections("commands").items()} == expected


def test_reference_has_every_address_and_parameter() -> None:
    expected = {
        f"{method.upper()} {path}".removeprefix("GET "): {one["name"] for one in operation.get("parameters", ())}
        for path, methods in create_app(Settings()).openapi()["paths"].items()
        for method, operation in methods.items()
    }
    documented = {}
    for path, text in sections("parameters").items():
        prose = re.sub(r"^\|.*", "", text, flags=re.MULTILINE)
        documented[path] = {cells[0] for cells in rows(text)} | set(re.findall(r"`([a-z_]+)`", prose))
    assert documented == expected


def test_reference_has_every_problem_type() -> None:
    documented = {cells[0]: cells[1] for cells in rows(reference("errors"))}
    assert documented == {error.slug: str(int(error.status)) for error in answerable()}


def test_every_page_is_in_the_navigation() -> None:
    assert sorted(re.findall(r'"([^"]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))) == PAGES


# -- The translation

_BLOCK = re.compile(r"(?:^ *<!-- tried[^\n]*-->\n)?^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)


def outline(page: Path) -> tuple[list[str], list[str]]:
    """Return the levels of a page's headings, and its code blocks with their marks."""
    text = page.read_text(encoding="utf-8")
    levels = re.findall(r"^(#+) ", _BLOCK.sub("", text), re.MULTILINE)
    return levels, [found[0] for found in _BLOCK.finditer(text)]


def test_translations_have_the_same_pages_headings_and_code() -> None:
    translated = [page for page in ENGLISH if not page.startswith("decisions/")]
    assert [page for page in PAGES if page.startswith("es/")] == [f"es/{page}" for page in translated]
    pairs = {DOCS / "es" / page: DOCS / page for page in translated} | {ROOT / "README.es.md": ROOT / "README.md"}
    assert [str(spanish) for spanish, english in pairs.items() if outline(spanish) != outline(english)] == []
