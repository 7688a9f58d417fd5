"""The guides work step by step, and the reference lists exactly what exists."""

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
from tests.deploy.guides import DOCS, SERVICE, blocks_of, follow
from tests.support.wire import ROOT

DATABASE = "postgresql://localidades:localidades@127.0.0.1:5432/localidades"


def pages() -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


# Spanish pages have the same blocks (test_translation); test_production runs those of one guide.
ELSEWHERE = "guides/production.md"
TRIED = [page for page in pages() if not page.startswith("es/") and page != ELSEWHERE and blocks_of(page)]


# -- The guides


@pytest.mark.tail
@pytest.mark.parametrize("page", TRIED)
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


def sections(text: str) -> dict[str, str]:
    """Return the text below each heading that is code, such as ## `x`."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return {head.strip("`"): body for head, body in zip(parts[1::2], parts[2::2], strict=True) if head.startswith("`")}


def test_reference_has_every_setting_and_its_default() -> None:
    documented = {name: default for name, default, _ in rows(reference("settings"))}
    expected = {}
    for name, field in Settings.model_fields.items():
        variable = "DATABASE_URL" if name == "database_url" else PREFIX + name.upper()
        expected[variable] = "unset" if field.default is None else str(field.default)
        if field.default_factory is default_data_dir:
            expected[variable] = documented[variable]
            assert "/var/lib/localidades-api" in documented[variable]
    assert documented == expected


def _commands(group: typer.core.TyperGroup) -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name."""
    for name, command in group.commands.items():
        yield name, command
        if isinstance(command, typer.core.TyperGroup):
            yield from ((f"{name} {below}", one) for below, one in _commands(command))


def test_reference_has_every_command_and_option() -> None:
    group = typer.main.get_command(command_line)
    assert isinstance(group, typer.core.TyperGroup)
    documented = sections(reference("commands"))
    commands = dict(_commands(group))
    assert set(documented) == set(commands)
    for name, command in commands.items():
        words = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
        assert {cells[0] for cells in rows(documented[name])} == words - {"--help"}, name


def test_reference_has_every_address_and_parameter() -> None:
    operations = {
        path if method == "get" else f"{method.upper()} {path}": operation
        for path, methods in create_app(Settings()).openapi()["paths"].items()
        for method, operation in methods.items()
    }
    documented = sections(reference("parameters"))
    assert set(documented) == set(operations)
    for path, operation in operations.items():
        prose = "\n".join(line for line in documented[path].splitlines() if not line.startswith("|"))
        named = {cells[0] for cells in rows(documented[path])} | set(re.findall(r"`([a-z_]+)`", prose))
        assert named == {one["name"] for one in operation.get("parameters", ())}, path


def test_reference_has_every_problem_type() -> None:
    documented = {cells[0]: cells[1] for cells in rows(reference("errors"))}
    assert documented == {error.slug: str(int(error.status)) for error in answerable()}


# -- The site


def test_every_page_is_in_the_navigation() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]

    def listed(entries: list[Any]) -> Iterator[str]:
        for entry in entries:
            if isinstance(entry, str):
                yield entry
            else:
                for value in entry.values():
                    yield from listed(value if isinstance(value, list) else [value])

    assert sorted(listed(config["nav"])) == pages()


def test_site_loads_no_fonts_from_elsewhere() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert config["theme"]["font"] is False
