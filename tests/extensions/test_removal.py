"""Extensions can be taken out with their folders and their lines: the rest imports nothing of them, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import localidades_api
from localidades_api.app import EXTENSIONS
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
    "/openapi.json", "/problems", "/robots.txt", "/llms.txt", "/.well-known/api-catalog", "/help",
)  # fmt: skip


@pytest.mark.tail  # the linter of layers shows each time that nothing imports them
def test_service_works_without_extensions(seeded: str, tmp_path: Path) -> None:
    copy = tmp_path / "src" / PACKAGE.name
    (tmp_path / "docs").symlink_to(ROOT / "docs")  # the guides that the site shows
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "extensions"))
    for command in ("outlines", "mcp"):
        (copy / "cli" / f"{command}.py").unlink()
    lines = r".*localidades_api\.extensions.*\n|.*\(mcp\)\n|.*cli\.(outlines|mcp) .*\n|.*\(outlines, .*\n"
    for file in (copy / "app.py", copy / "cli" / "commands.py"):
        text = re.sub(lines, "", file.read_text("utf-8"))
        file.write_text(re.sub(r"EXTENSIONS = \(.*\)", "EXTENSIONS = ()", text), "utf-8")
    paths = [*(one.path for one in EXTENSIONS if one.path), AT]
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
    assert [name for name in (*paths, "Model Context Protocol") if name in documents] == []
