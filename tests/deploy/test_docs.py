"""The guides are tried step by step, and the reference names what there is, all of it and nothing else."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.router.problem_types import answerable
from localidades_api.settings import PREFIX, Settings, default_data_dir
from tests.support.application import import_file
from tests.support.browser import chromium
from tests.support.catalogue import Place, many, write_catalogue
from tests.support.machine import READERS, needed
from tests.support.wire import COMMAND, ROOT, environment, serving

DOCS = ROOT / "docs"
SERVICE = "127.0.0.1:8000"  # as the guides write it
DATABASE = "postgresql://localidades:localidades@127.0.0.1:5432/localidades"
ANALYSTS_GUIDE = "guides/spreadsheet-to-keys.md"
SITE_BUILDER = ROOT / "build" / "docs" / ".venv" / "bin" / "zensical"
_TRIED = re.compile(r"^<!-- tried(: empty database)? -->\n```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


@dataclass(frozen=True)
class Block:
    """A block of a guide that is marked as tried."""

    language: str
    text: str
    needs_database: bool


def blocks_of(page: str) -> list[Block]:
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [Block(language, block, bool(mark)) for mark, language, block in _TRIED.findall(text)]
    assert len(found) == len(re.findall(r"^<!-- tried", text, re.MULTILINE)), (
        "a mark is not followed by a console or sh block"
    )
    return found


# The blocks of the pages in Spanish are the same (test_translation).
TRIED = [page for page in pages() if not page.startswith("es/") and blocks_of(page)]


# -- The guides


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Lend what a reader has: a clone with its virtual environment, and INEGI's files of two months."""
    for name in ("docs", "alembic.ini", "migrations"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    commands = {
        "python": f'exec "{sys.executable}" "$@"',
        "alembic": f'exec "{sys.executable}" -m alembic "$@"',
        "localidades-api": f'exec "{COMMAND[0]}" {COMMAND[1]} "{COMMAND[2]}" "$@"',
    }
    for name, script in commands.items():
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    for month, count in enumerate((132, 135), start=11):
        table = write_catalogue(tmp_path / "AGEEML_utf.csv", many(count))
        with zipfile.ZipFile(tmp_path / f"catun_localidad_2026-{month}.zip", "w") as archive:
            archive.write(table, table.name)
    return tmp_path


def shell(script: str, folder: Path) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607  # whichever the reader has
        cwd=folder,
        env=environment(COLUMNS="120", NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout.replace("\r\n", "\n").strip()


@pytest.mark.tail
@pytest.mark.parametrize("page", TRIED)
def test_steps_of_a_guide_do_what_it_shows(page: str, demo_service: str, empty_database: str, clone: Path) -> None:
    for block in blocks_of(page):
        text = block.text.replace(SERVICE, demo_service.removeprefix("http://"))
        if block.needs_database:
            assert f"'{DATABASE}'" in text
            text = text.replace(DATABASE, empty_database)
        if block.language == "sh":
            shell(text, clone)
            continue
        for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            pattern = ".*".join(re.escape(part) for part in shown.strip().split("…"))
            printed = shell(command, clone)
            assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {command}\n{printed}\n\nis not\n\n{shown}"


def test_guides_are_tried() -> None:
    guides = {"first-request", "keeping-a-copy", "ci", "production", "spreadsheet-to-keys"}
    assert {f"guides/{name}.md" for name in guides} <= set(TRIED)
    assert sum(len(blocks_of(page)) for page in TRIED) >= 12


# -- The examples


def copied(path: Path) -> dict[int, dict[str, Any]]:
    with closing(sqlite3.connect(path)) as copy:
        copy.row_factory = sqlite3.Row
        return {row["id"]: dict(row) for row in copy.execute("SELECT * FROM localidades")}


def downloaded(base: str, columns: set[str]) -> dict[int, dict[str, Any]]:
    lines = httpx.get(f"{base}/api/census/localidades/download/?format=ndjson", timeout=60).content.splitlines()
    records = [json.loads(line) for line in lines]
    return {record["id"]: {name: record[name] for name in columns} for record in records}


def test_copy_that_follows_is_the_release_that_is_served(seeded_database: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"

    def follow(base: str) -> str:
        command = [sys.executable, str(DOCS / "examples" / "follow.py"), base, str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    places = many(140)
    later = [
        *places[3:100],  # three are removed
        Place(places[100].cvegeo, "Otro nombre", nom_ent=places[100].nom_ent),
        *places[101:],
        Place("320580099", "Línea\N{LINE SEPARATOR}partida\N{NEXT LINE}", nom_ent="Zacatecas", nom_abr="Zac."),
    ]
    with serving(seeded_database) as live:
        assert follow(live.base).endswith("went from nothing to 2020-01")
        first = copied(path)
        assert len(first) == 132
        columns = set(next(iter(first.values())))
        assert first == downloaded(live.base, columns)
        file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", sorted(later, key=lambda one: one.cvegeo))
        import_file(seeded_database, file)
        with httpx.Client(base_url=live.base) as client:
            while client.get("/api/census/").json()["release"] != "2021-01":
                pass
        assert follow(live.base).endswith("went from 2020-01 to 2021-01")
        second = copied(path)
        assert len(second) == len(later)
        assert second == downloaded(live.base, columns)
        assert second != first
        assert follow(live.base).endswith("holds 2021-01 already")


def test_copy_of_a_release_that_is_gone_is_loaded_anew(live_server: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    command = [sys.executable, str(DOCS / "examples" / "follow.py"), live_server, str(path)]
    with closing(sqlite3.connect(path)) as copy, copy:
        copy.execute("CREATE TABLE held (release TEXT)")
        copy.execute("INSERT INTO held VALUES ('1999-01')")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip().endswith("went from 1999-01 to 2020-01")
    assert len(copied(path)) == 132


_SQL = "import duckdb; print(duckdb.sql(open('docs/examples/match.sql').read()))"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        pytest.param(READERS, f'"{READERS}" docs/examples/match_pandas.py SERVICE', id="pandas"),
        pytest.param(shutil.which("Rscript"), "Rscript docs/examples/match.R SERVICE", id="R"),
        pytest.param(READERS, f'"{READERS}" -c "{_SQL}"', id="DuckDB"),
    ],
)
def test_rows_that_are_certain_are_joined(
    program: str | Path | None, command: str, demo_service: str, clone: Path
) -> None:
    needed(program, "This test needs R (Debian's r-base-core), and what `make test` installs.")
    fetching = [re.sub(r"^\$ ", "", block.text).splitlines()[0] for block in blocks_of(ANALYSTS_GUIDE)]
    for fetch in fetching:
        if " -o " in fetch:
            shell(fetch.replace(SERVICE, demo_service.removeprefix("http://")), clone)
    printed = shell(command.replace("SERVICE", demo_service), clone)
    assert re.findall(r"(00\d)\W+(14\d{7})\W+(\w+ \w+)", printed) == [
        ("001", "140010022", "El Zapote"),
        ("002", "140020021", "Huerta San"),
        ("003", "140010011", "Charco Verde"),
    ]


_A_PERSON = """
<script type="module">
const find = (id) => document.getElementById(id);
const filled = async (id) => { while (find(id).disabled || find(id).length < 2) await new Promise((go) => setTimeout(go, 20)); };
const choose = (id, value) => { find(id).value = value; find(id).dispatchEvent(new Event("change")); };
await filled("estado");
choose("estado", "3");
await filled("municipio");
choose("municipio", "3004");
choose("municipio", "3001");
await filled("localidad");
const shown = ["estado", "municipio", "localidad"].map((id) => [find(id).length, find(id).selectedOptions[0].text]);
document.body.innerHTML = `<pre>${JSON.stringify({ shown, fault: find("fault")?.textContent ?? "" })}</pre>`;
</script>
"""  # noqa: E501  # a script of the test's own


def test_cascading_select_fills_in_a_browser(demo_service: str, tmp_path: Path) -> None:
    page = tmp_path / "cascade.html"
    page.write_text((DOCS / "examples" / "cascade.html").read_text(encoding="utf-8") + _A_PERSON, encoding="utf-8")
    ended = subprocess.run(
        [
            chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=30000", "--dump-dom", f"{page.as_uri()}?service={demo_service}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r"<pre>(.*?)</pre>", ended.stdout, re.DOTALL)
    assert found, ended.stdout[-2000:]
    seen = json.loads(found[1])
    # The municipio has 1,894 localities, two pages of them; the first choice was taken back.
    assert [count for count, _ in seen["shown"]] == [33, 6, 1895]
    assert seen["shown"][0][1] == "Baja California Sur (03)"
    assert seen["fault"] == ""


def test_cascading_select_is_fifty_lines_without_anything_from_elsewhere() -> None:
    text = (DOCS / "examples" / "cascade.html").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 50
    assert set(re.findall(r"https?://[^\"'\s]*", text)) == {f"http://{SERVICE}"}
    assert not re.findall(r"\b(?:src|import)\b", text)


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
                assert ("Needed." in own[name]) == (parameter["required"] and parameter["in"] == "query"), (path, name)
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


def test_site_builds_strictly_and_loads_nothing_from_elsewhere() -> None:
    if not SITE_BUILDER.exists():
        assert "CI" not in os.environ, "CI runs `make docs` before the tests"
        pytest.skip("`make docs` makes what builds the site")
    built = subprocess.run(
        [str(SITE_BUILDER), "build", "--strict", "--clean"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = ROOT / "build" / "site"
    built_pages = list(site.rglob("*.html"))
    assert len(built_pages) >= len(pages())
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
