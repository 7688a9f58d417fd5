"""Twelve public programs written for INEGI's wscatgeo read this service; the letters are the guide's.

Each is reduced to its requests and the members that it reads, in its own language if that is installed. The others
are Python that reads the members that they declare, and fails where their types would.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser

from tests.support.machine import needed
from tests.support.waiting import PATIENCE

SCRIPTS = Path(__file__).parents[1] / "clients" / "wscatgeo"
Get = Callable[[str], dict[str, Any]]
V1, V2 = "wscatgeo/", "wscatgeo/v2/"
COUNTS = "pob_total pob_femenina pob_masculina total_viviendas_habitadas"
COLUMNS = {
    "mgee": "cvegeo cve_agee nom_agee nom_abrev pob pob_fem pob_mas viv",
    "mgem": "cvegeo cve_agee cve_agem nom_agem cve_cab pob pob_fem pob_mas viv",
}
PLACE = "cvegeo cve_ent cve_mun cve_loc nomgeo ambito latitud longitud altitud pob_total total_viviendas_habitadas"


@pytest.fixture
def get(live_server: str) -> Get:
    """Return a function that reads the document at a URL."""

    def read(target: str) -> dict[str, Any]:
        document: dict[str, Any] = httpx.get(f"{live_server}/{target}", timeout=PATIENCE).raise_for_status().json()
        return document

    return read


def declared(record: dict[str, Any], names: str, type_: type = str) -> list[Any]:
    """Return the members that a client declares; each must exist with its type."""
    found = [record[name] for name in names.split()]
    assert {type(value) for value in found} == {type_}
    return found


def program(command: Sequence[str | Path]) -> str:
    """Run a program and return its output."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


# -- Programs in languages that may not be installed


def test_a_rust_reads_an_estado_or_an_error(get: Get) -> None:
    answer = get(f"{V2}mgee/01/")
    assert declared(answer["datos"], f"cvegeo cve_ent nomgeo nom_abrev {COUNTS}")[:4] == [
        "01",
        "01",
        "Aguascalientes",
        "Ags.",
    ]
    assert declared(answer["metadatos"], "Fuente_informacion_estadistica")
    assert declared(answer, "numReg", int) == [1]
    assert declared(get(f"{V2}mgee/99/"), "result mensaje")[0] == "404"


def test_c_csharp_fills_three_selects(get: Get) -> None:
    assert declared(get(f"{V1}mgee/01")["datos"], "cve_agee nom_agee") == ["01", "Aguascalientes"]
    municipios = [declared(row, "cve_agem nom_agem") for row in get(f"{V1}mgem/01")["datos"]]
    assert municipios == [["001", "Municipio 001"], ["002", "Municipio 002"]]
    places = [declared(row, "cve_loc nom_loc") for row in get(f"{V1}localidades/01/001")["datos"]]
    assert places[0] == ["0001", "Aguascalientes"]


def test_d_java_copies_three_levels(get: Get) -> None:
    counts = "pob pob_fem pob_mas viv"
    [state] = [declared(row, f"cve_agee nom_agee nom_abrev {counts}") for row in get(f"{V1}mgee/buscar/aguas")["datos"]]
    municipios = get(f"{V1}mgem/{state[0]}")["datos"]
    assert [declared(row, f"cve_agee cve_agem nom_agem cve_cab {counts}")[3] for row in municipios] == ["0001"] * 2
    [place, *_] = get(f"{V1}localidades/{state[0]}/001")["datos"]
    members = "cve_agee cve_agem cve_loc nom_loc ambito latitud longitud altitud pob viv cve_carta"
    assert declared(place, members)[-3:] == ["863893", "-", "F13D19"]
    assert declared(place, "estatus", int) == [1]
    assert {"nom_cab", "periodo"}.isdisjoint({*municipios[0], *place})  # its beans allow null there


def test_e_go_lists_places_of_an_estado(get: Get) -> None:
    def found(text: str) -> list[str]:
        rows = [
            declared(row, "cve_agee cve_agem nom_loc") for row in get(f"{V1}localidades/buscar/{text}").get("datos", [])
        ]
        return [f"{municipio} {name}" for state, municipio, name in rows if state == "01"]

    assert found("ardillas") == ["001 Ardillas de Abajo (Las Ardillas)"]
    assert found("Nadie") == []


def test_f_dart_fills_two_selects_and_finds_no_mloc(get: Get) -> None:
    assert declared(get(f"{V2}mgee")["datos"][0], "cve_ent nomgeo") == ["01", "Aguascalientes"]
    assert declared(get(f"{V2}mgem/01/")["datos"][0], "cve_mun nomgeo") == ["001", "Municipio 001"]
    assert get(f"{V2}mloc/01/001/").get("datos") is None


def test_i_php_makes_objects_of_estados_and_municipios(get: Get) -> None:
    for row in get(f"{V2}mgee/")["datos"]:
        assert declared(row, "cvegeo cve_ent nomgeo nom_abrev")
    [first, _] = get(f"{V2}mgem/01")["datos"]
    assert declared(first, "cvegeo cve_ent cve_mun nomgeo cve_cab")[-1] == "0001"
    assert first.get("nom_cab") is None
    assert int(first["pob_total"]) == 863893


# -- Python


def test_b_python_makes_tables_of_three_levels(get: Get) -> None:
    for path in ("mgee/", "mgee/buscar/Aguas", "mgem/", "mgem/01/", "mgem/01/001/", "mgem/buscar/Municipio 001"):
        table = get(V1 + path)["datos"]
        level, _, _ = path.partition("/")
        assert {name for row in table for name in row} == set(COLUMNS[level].split())
        assert declared(table[0], COLUMNS[level])[0].startswith("01")
    assert "features" not in get(f"{V1}geo/localidades/pol/01001")  # it reports that nothing was found


def test_j_flask_reads_the_key_of_an_estado(get: Get) -> None:
    assert get(f"{V1}mgee/buscar/Aguascalientes")["datos"][0]["cve_agee"] == "01"
    assert "datos" not in get(f"{V1}mgee/buscar/Nadie")


def test_k_python_writes_localities_and_no_settlements(get: Get) -> None:
    def rows(target: str) -> list[dict[str, Any]]:
        document = get(V2 + target)
        if "datos" not in document:
            assert document["result"] == "404"
        return list(document.get("datos", []))

    def integer(text: str) -> int | None:
        return int(float(text)) if text.lstrip("-").isdigit() else None

    written = {row["cve_loc"]: declared(row, PLACE) for row in rows("localidades/01001") if "altitud" in row}
    assert written["0001"][5:7] == ["URBANO", "21.8808330"]
    assert [integer(text) for text in written["0001"][-3:]] == [1885, 863893, None]
    assert integer(written["0004"][-3]) == -12
    assert rows("asentamientos/01/001") == []


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
