"""The demo catalogue: the same file everywhere, with the shape of INEGI's."""

import hashlib
import re
from collections import Counter
from itertools import islice, pairwise

import pytest

from localidades_api.importer.demo.generate import DEMO_LOCALITIES, DEMO_SHA256, ESTADOS, generate_demo

REAL_ESTADOS = """
01 Aguascalientes/Ags.; 02 Baja California/BC; 03 Baja California Sur/BCS; 04 Campeche/Camp.;
05 Coahuila de Zaragoza/Coah.; 06 Colima/Col.; 07 Chiapas/Chis.; 08 Chihuahua/Chih.;
09 Ciudad de México/CDMX; 10 Durango/Dgo.; 11 Guanajuato/Gto.; 12 Guerrero/Gro.; 13 Hidalgo/Hgo.;
14 Jalisco/Jal.; 15 México/Mex.; 16 Michoacán de Ocampo/Mich.; 17 Morelos/Mor.; 18 Nayarit/Nay.;
19 Nuevo León/NL; 20 Oaxaca/Oax.; 21 Puebla/Pue.; 22 Querétaro/Qro.; 23 Quintana Roo/Q. Roo;
24 San Luis Potosí/SLP; 25 Sinaloa/Sin.; 26 Sonora/Son.; 27 Tabasco/Tab.; 28 Tamaulipas/Tamps.;
29 Tlaxcala/Tlax.; 30 Veracruz de Ignacio de la Llave/Ver.; 31 Yucatán/Yuc.; 32 Zacatecas/Zac."""

DEGREES = re.compile(r'([0-9]{2,3})°([0-5][0-9])\u00b4([0-5][0-9]\.[0-9]{3})"([NW])')


def fields(line: str) -> list[str]:
    return line[1:-1].split('","')


@pytest.fixture(scope="module")
def catalogue() -> list[str]:
    return list(generate_demo())


@pytest.fixture(scope="module")
def lines(catalogue: list[str]) -> list[str]:
    return catalogue[1:]


def decimal(written: str) -> float:
    match = DEGREES.fullmatch(written)
    assert match, written
    degrees, minutes, seconds, side = match.groups()
    value = int(degrees) + int(minutes) / 60 + float(seconds) / 3600
    return value if side == "N" else -value


def test_demo_is_the_same_bytes_everywhere(catalogue: list[str]) -> None:
    assert hashlib.sha256("\r\n".join(catalogue).encode()).hexdigest() == DEMO_SHA256
    assert list(islice(generate_demo(), 500)) == catalogue[:500]


def test_demo_is_as_large_as_the_real_catalogue(lines: list[str]) -> None:
    assert len(lines) == DEMO_LOCALITIES == 304_400


def test_keys_are_unique_and_in_order(lines: list[str]) -> None:
    keys = [line[1:10] for line in lines]
    assert all(earlier < later for earlier, later in pairwise(keys))
    assert all(len(key) == 9 and key.isascii() and key.isdigit() for key in keys)


def test_estados_are_the_real_ones_with_their_number_of_municipios(lines: list[str]) -> None:
    municipios = {line[1:6]: fields(line) for line in lines}
    estados = dict.fromkeys(
        f"{clave} {name}/{abbreviation}" for _, _, clave, name, abbreviation, *_ in municipios.values()
    )
    assert list(estados) == [estado.strip() for estado in REAL_ESTADOS.split(";")]
    counts = Counter(municipio[:2] for municipio in municipios)
    assert counts == {estado.clave: estado.municipios for estado in ESTADOS}
    assert (counts["20"], counts["21"], counts["30"], counts["02"]) == (570, 217, 212, 5)


def test_many_localities_share_a_name(lines: list[str]) -> None:
    names = Counter((line[1:6], fields(line)[8]) for line in lines)
    assert 0.08 <= sum(count - 1 for count in names.values()) / len(lines) <= 0.12


def test_positions_in_degrees_and_decimals_agree(lines: list[str]) -> None:
    boxes = {estado.clave: estado for estado in ESTADOS}
    for row in map(fields, lines[::37]):
        latitude, longitude = map(float, row[12:14])
        # Six decimals of a degree are a third of a thousandth of a second.
        assert (decimal(row[10]), decimal(row[11])) == pytest.approx((latitude, longitude), abs=6e-7)
        box = boxes[row[2]]
        assert box.south < latitude < box.north
        assert -box.west < longitude < -box.east


def test_populations_add_up_and_decide_the_ambito(lines: list[str]) -> None:
    for row in map(fields, lines[::11]):
        ambito, population = row[9], row[16:]
        if "-" in population:
            assert (ambito, population) == ("R", ["-"] * 4)
            continue
        total, men, women, homes = map(int, population)
        assert total == men + women
        assert 1 <= homes <= total
        assert ambito == ("U" if total >= 2_500 else "R")
