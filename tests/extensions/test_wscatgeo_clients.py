"""Twelve public programs written for INEGI's wscatgeo read this service; the letters are the guide's.

Each is reduced to its requests and the members that it reads, in its own language if that is installed. Of the others,
tables have the members that they declare, which must exist with their types.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from tests.support.machine import needed
from tests.support.waiting import PATIENCE

SCRIPTS = Path(__file__).parents[1] / "clients" / "wscatgeo"
COUNTS = "pob_total pob_femenina pob_masculina total_viviendas_habitadas"
OLD_COUNTS = "pob pob_fem pob_mas viv"

# The texts of the first record that they read, and the values with which they begin, by address and program.
TEXTS = [
    ("v2/mgee/01/", "a, Rust; f, Dart; i, PHP", f"nomgeo nom_abrev cvegeo cve_ent {COUNTS}",
     ["Aguascalientes", "Ags.", "01", "01"]),
    ("mgee/", "b, Python; c, C#", f"cvegeo cve_agee nom_agee nom_abrev {OLD_COUNTS}", ["01", "01", "Aguascalientes"]),
    ("mgee/buscar/Aguas", "b, Python; d, Java; j, Flask", f"cve_agee cvegeo nom_agee nom_abrev {OLD_COUNTS}", ["01"]),
    ("mgem/01/001/", "b, Python; c, C#", f"cvegeo cve_agee cve_agem nom_agem cve_cab {OLD_COUNTS}",
     ["01001", "01", "001", "Municipio 001"]),
    ("mgem/01", "d, Java", f"cve_cab cve_agee cve_agem nom_agem {OLD_COUNTS}", ["0001"]),
    ("mgem/buscar/Municipio 001", "b, Python", f"cvegeo nom_agem cve_cab {OLD_COUNTS}", ["01001"]),
    ("localidades/01/001", "c, C#; d, Java",
     "pob viv cve_carta cve_loc nom_loc cve_agee cve_agem ambito latitud longitud altitud",
     ["863893", "-", "F13D19", "0001", "Aguascalientes"]),
    ("localidades/buscar/ardillas", "e, Go", "nom_loc cve_agee cve_agem", ["Ardillas de Abajo (Las Ardillas)", "01"]),
    ("v2/mgem/01", "f, Dart; i, PHP", "cve_cab pob_total cvegeo cve_ent cve_mun nomgeo", ["0001", "863893", "01001"]),
    ("v2/localidades/01001", "k, Python",
     "cve_loc ambito latitud altitud pob_total cvegeo cve_ent cve_mun nomgeo longitud total_viviendas_habitadas",
     ["0001", "URBANO", "21.8808330", "1885", "863893"]),
]  # fmt: skip


def get(base: str, target: str) -> dict[str, Any]:
    document: dict[str, Any] = httpx.get(f"{base}/wscatgeo/{target}", timeout=PATIENCE).raise_for_status().json()
    return document


@pytest.mark.parametrize(("target", "names", "values"), [(target, names, values) for target, _, names, values in TEXTS])
def test_members_of_a_record_are_texts(live_server: str, target: str, names: str, values: Sequence[str]) -> None:
    records = get(live_server, target)["datos"]
    record = records if isinstance(records, dict) else records[0]
    found = [record[name] for name in names.split()]
    assert {type(value) for value in found} == {str}
    assert found[: len(values)] == values


def program(command: Sequence[str | Path]) -> str:
    """Run a program and return its output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


# -- JavaScript and R


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
