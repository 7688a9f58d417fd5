"""Public programs written for INEGI's wscatgeo read this service; the letters are the guide's.

Each is reduced to its requests and the members that it reads, in its own language. What programs in other languages
declare is in tests/golden/contract/wscatgeo.txt: texts, under INEGI's names.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.support.machine import needed
from tests.support.waiting import PATIENCE

SCRIPTS = Path(__file__).parents[1] / "clients" / "wscatgeo"


def program(command: Sequence[str | Path]) -> str:
    """Run a program and return its output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


@pytest.mark.tail
async def test_g_angular_copies_three_levels_across_origins(live_server: str, browser: Browser, tmp_path: Path) -> None:
    blank = tmp_path / "page.html"
    blank.write_text("<!doctype html>")
    page = await browser.new_page()
    await page.goto(blank.as_uri())
    rows = await page.evaluate((SCRIPTS / "angular.js").read_text(encoding="utf-8"), live_server)
    await page.close()
    assert [row["cvegeo"] for row in rows] == ["01", "01001", "010010001"]
    assert {type(value) for row in rows for value in row.values()} == {str}


@pytest.mark.tail
def test_l_next_fills_a_select_and_names_a_place(live_server: str) -> None:
    node = needed(shutil.which("node"), "This test needs Node.js 20.")
    printed = json.loads(program([node, SCRIPTS / "next.mjs", live_server]))
    assert printed["listed"][0] == {"cve_loc": "0001", "nomgeo": "Aguascalientes"}
    assert printed["chosen"] == {"cve_loc": "0004", "nomgeo": "Ardillas de Abajo (Las Ardillas)"}
    assert printed["unknown"] == []


@pytest.mark.tail
def test_h_r_keeps_seven_columns_or_prints_the_sentence(live_server: str) -> None:
    rscript = needed(shutil.which("Rscript"), "This test needs R (Debian's r-base-core).")
    assert program([rscript, SCRIPTS / "find.R", live_server]).splitlines() == [
        "010010004|01|001|0004|Ardillas de Abajo (Las Ardillas)|21.8808330|-102.2961110",
        "El texto no existe en los nombres de las localidades. ",
    ]
