"""The pages and the built documentation are valid HTML, by the Nu HTML Checker of the W3C."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.pages.country import KINDS
from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

pytestmark = [pytest.mark.tail, pytest.mark.timeout(300)]

OTHERS = ("/map?format=api", "/docs", "/redoc")  # which test_browser doesn't open
# The checker finds these roles redundant. Tables that are cards on a telephone would not be tables to Safari without.
ROLES = r"The “role” attribute must not be used on a “(tr|th|td)” element which has a “table” ancestor"
# Of zensical's own templates.
THEME = (
    r"Attribute “autocomplete” is only allowed when the input type is",
    r"Bad value “” for attribute “tabindex” on element “label”",
    r"The “aria-hidden” attribute must not be used on any “label” element",
)


def errors_in(folder: Path, *accepted: str) -> list[str]:
    """Return the errors of the HTML files below a folder, except those that match a pattern."""
    java = needed(shutil.which("java"), "the Nu HTML Checker needs Java")
    jar = ROOT / "tests" / "validator" / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    program = [java, "-jar", needed(jar, "vnu-jar is not installed: `make tail` does it, with npm")]
    options = ["--stdout", "--exit-zero-always", "--format", "json", "--skip-non-html"]
    checked = subprocess.run([*program, *options, str(folder)], capture_output=True, timeout=PATIENCE, check=True)
    messages: list[dict[str, Any]] = json.loads(checked.stdout)["messages"]
    return [
        f"{message['url'].partition(f'{folder}/')[2]}: {message['message']} {message.get('extract', '')}"
        for message in messages
        if message["type"] != "info" and not any(re.match(pattern, message["message"]) for pattern in accepted)
    ]


def test_checker_finds_errors(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<!doctype html><html lang="es"><title>x</title><body dir="direction">')
    (error,) = errors_in(tmp_path)
    assert error.startswith("page.html: Bad value “direction” for attribute “dir” on element “body”")


@pytest.mark.parametrize("language", ["en", "es"])
def test_pages_are_valid(two_releases: str, tmp_path: Path, language: str) -> None:
    targets = KINDS | {target.strip("/").partition("?")[0]: target for target in OTHERS}
    with httpx.Client(base_url=two_releases, headers={"Accept": "text/html"}, follow_redirects=True) as client:
        for kind, target in targets.items():
            page = client.get(target, params=httpx.QueryParams(httpx.URL(target).query).set("lang", language))
            (tmp_path / f"{kind}.html").write_bytes(page.content)
    assert errors_in(tmp_path, ROLES) == []


def test_documentation_is_valid() -> None:
    make = ["make", "docs", f"VENV={ROOT / '.venv'}"]
    subprocess.run(make, cwd=ROOT, env=os.environ, capture_output=True, timeout=PATIENCE, check=True)
    site = ROOT / "build" / "site"
    assert len(list(site.rglob("*.html"))) > 80
    assert errors_in(site, *THEME) == []
