"""Extensions can be taken out with their folders and their lines: the rest works, and has no word of them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

import localidades_api
from localidades_api import extensions
from localidades_api.extensions.outlines.router import AT
from tests.support.service_address import service_address
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

PACKAGE = Path(localidades_api.__file__).parent
# Imports every module, sends requests, and prints their statuses and the answers.
PROGRAM = """
import importlib, pkgutil, sys
from fastapi.testclient import TestClient
import localidades_api

for module in pkgutil.walk_packages(localidades_api.__path__, "localidades_api."):
    if not module.name.endswith(("__main__", "asgi")):
        importlib.import_module(module.name)
from localidades_api.app import create_app
from localidades_api.settings import read_settings

with TestClient(create_app(read_settings(), in_background=False)) as client:
    for path in sys.argv[1:]:
        answer = client.get(path, headers={"Accept": "text/html, */*"})
        print(f"{answer.status_code} {path}")
        if answer.is_success:
            print(answer.text)
"""
REQUESTS = (
    "/api/census/", "/api/census/localidades/?format=json", "/api/census/localidades/10010001/", "/docs", "/redoc",
    "/openapi.json", "/problems", "/robots.txt", "/help",
)  # fmt: skip


# What only a module that knows an extension says: its addresses, its tables, its subject.
WORDS = {
    "outlines": r"outline_\w+|municipios/at|/outline/",
    "ogc": r"ogc",
    "reconcile": r"[Rr]econcil",
    "wscatgeo": r"[Ww]scatgeo",
    "mcp": r"\bmcp\b|Model Context Protocol",
}
COMMANDS = {"outlines", "mcp"}


def without(copy: Path, names: Collection[str]) -> None:
    """Copy the package without these extensions and their lines."""
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    application, commands = ((copy / path).read_text("utf-8") for path in ("app.py", "cli/commands.py"))
    for name in names:
        shutil.rmtree(copy / "extensions" / name)
        application = re.sub(rf"(?<=[ (]){name}(\.EXTENSION)?(, |(?=[)\n]))", "", application).replace(", \n", "\n")
        if name in COMMANDS:
            (copy / "cli" / f"{name}.py").unlink()
            commands = re.sub(rf".*cli\.{name} .*\n|.*\({name}, .*\n|.*\({name}\)\n", "", commands)
    application = application.replace("from localidades_api.extensions import \n", "")
    (copy / "app.py").write_text(application, "utf-8")
    (copy / "cli" / "commands.py").write_text(commands, "utf-8")


@pytest.mark.parametrize("name", WORDS)
def test_core_has_no_word_of_an_extension(tmp_path: Path, name: str) -> None:
    """Translations are of the whole service, and commands may name another extension."""
    without(copy := tmp_path / "copy", {name})
    core = [file for file in copy.rglob("*.*") if file.suffix in {".py", ".html", ".js", ".json"}]
    of_extensions = {*(copy / "extensions").rglob("*"), *(copy / "cli" / f"{command}.py" for command in COMMANDS)}
    texts = {file.relative_to(copy): file.read_text("utf-8") for file in core if file not in of_extensions}
    words = rf"{WORDS[name]}|extensions\.{name}"
    said = {str(path): found for path, text in texts.items() if (found := re.findall(words, text))}
    assert said == {}
    own = "".join(file.read_text("utf-8") for file in (PACKAGE / "extensions" / name).glob("*.py"))
    assert re.search(WORDS[name], own), "the words are the extension's"


@pytest.mark.tail
@pytest.mark.parametrize("names", [[name] for name in WORDS] + [[*WORDS]], ids=" ".join)
def test_service_works_without_extensions(seeded: str, tmp_path: Path, names: list[str]) -> None:
    copy = tmp_path / "src" / PACKAGE.name
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # the guides that the site shows
    without(copy, names)
    removed = [getattr(extensions, name).EXTENSION for name in names if name != "mcp"]  # which has only a command
    paths = [*(one.path for one in removed if one.path), *([AT] if "outlines" in names else [])]
    answers = subprocess.run(
        [sys.executable, "-c", PROGRAM, *REQUESTS, *paths],
        env={**os.environ, "PYTHONPATH": str(copy.parent), "DATABASE_URL": service_address(seeded)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert answers.returncode == 0, answers.stderr[-2000:]
    statuses = re.findall(r"^\d{3} /.*$", answers.stdout, re.MULTILINE)
    assert statuses == [*(f"200 {path}" for path in REQUESTS), *(f"404 {path}" for path in paths)]
    documents = re.sub(r"^404 .*$", "", answers.stdout, flags=re.MULTILINE)
    assert [path for path in paths if path in documents] == []
