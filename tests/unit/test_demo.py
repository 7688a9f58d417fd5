import hashlib
import re
from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise

import pytest

from localidades_api.importer.demo.generate import (
    COLUMNS,
    DEMO_LOCALITIES,
    DEMO_SHA256,
    ESTADOS,
    generate_demo,
)

REAL_ESTADOS = """
01 Aguascalientes/Ags.; 02 Baja California/BC; 03 Baja California Sur/BCS; 04 Campeche/Camp.;
05 Coahuila de Zaragoza/Coah.; 06 Colima/Col.; 07 Chiapas/Chis.; 08 Chihuahua/Chih.;
09 Ciudad de México/CDMX; 10 Durango/Dgo.; 11 Guanajuato/Gto.; 12 Guerrero/Gro.; 13 Hidalgo/Hgo.;
14 Jalisco/Jal.; 15 México/Mex.; 16 Michoacán de Ocampo/Mich.; 17 Morelos/Mor.; 18 Nayarit/Nay.;
19 Nuevo León/NL; 20 Oaxaca/Oax.; 21 Puebla/Pue.; 22 Querétaro/Qro.; 23 Quintana Roo/Q. Roo;
24 San Luis Potosí/SLP; 25 Sinaloa/Sin.; 26 Sonora/Son.; 27 Tabasco/Tab.; 28 Tamaulipas/Tamps.;
29 Tlaxcala/Tlax.; 30 Veracruz de Ignacio de la Llave/Ver.; 31 Yucatán/Yuc.; 32 Zacatecas/Zac."""

DEGREES = re.compile(r'([0-9]{2,3})°([0-5][0-9])\u00b4([0-5][0-9]\.[0-9]{3})"([NW])')
# Fields by their place in a line.
ESTADO, NOM_ENT, NOM_ABR, NOM_MUN, CVE_LOC, NOM_LOC, AMBITO = 2, 3, 4, 6, 7, 8, 9
LATITUD, LONGITUD, LAT_DECIMAL, LON_DECIMAL, ALTITUD, CVE_CARTA, POBLACION = 10, 11, 12, 13, 14, 15, 16

Row = list[str]


def fields(line: str) -> Row:
    return line[1:-1].split('","')


@pytest.fixture(scope="module")
def catalogue() -> list[str]:
    return list(generate_demo())


@pytest.fixture(scope="module")
def lines(catalogue: list[str]) -> list[str]:
    return catalogue[1:]


@pytest.fixture(scope="module")
def places(lines: list[str]) -> list[tuple[str, str]]:
    """Return the municipio and the name of every locality."""
    return [(line[1:6], fields(line)[NOM_LOC]) for line in lines]


@pytest.fixture(scope="module")
def sample(lines: list[str]) -> list[Row]:
    return [fields(line) for line in lines[::37]]


@pytest.fixture(scope="module")
def municipios(lines: list[str]) -> dict[str, Row]:
    """Return the first locality of every municipio."""
    firsts: dict[str, Row] = {}
    for line in lines:
        if line[1:6] not in firsts:
            firsts[line[1:6]] = fields(line)
    return firsts


def decimal(written: str) -> float:
    match = DEGREES.fullmatch(written)
    assert match, written
    degrees, minutes, seconds, side = match.groups()
    value = int(degrees) + int(minutes) / 60 + float(seconds) / 3600
    return value if side == "N" else -value


def test_catalogue_generated_anywhere_is_the_same_to_the_byte(catalogue: list[str]) -> None:
    assert hashlib.sha256("\r\n".join(catalogue).encode()).hexdigest() == DEMO_SHA256


def test_catalogue_generated_again_starts_again(catalogue: list[str]) -> None:
    assert list(islice(generate_demo(), 500)) == catalogue[:500]


def test_catalogue_has_the_pages_of_the_real_one(lines: list[str]) -> None:
    assert len(lines) == DEMO_LOCALITIES == 304_400
    assert len(lines) / 50 == 6_088


def test_catalogue_can_be_written_in_both_of_the_encodings(catalogue: list[str]) -> None:
    text = "\r\n".join(catalogue)
    assert text.encode("windows-1252").decode("windows-1252") == text
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", text)


def test_header_is_that_of_the_layout(catalogue: list[str]) -> None:
    assert fields(catalogue[0]) == list(COLUMNS)
    assert catalogue[0].startswith('"CVEGEO","Estatus","CVE_ENT","NOM_ENT","NOM_ABR","CVE_MUN","NOM_MUN",')
    assert catalogue[0].endswith('"POB_FEMENINA","TOTAL DE VIVIENDAS HABITADAS"')


def test_every_line_holds_twenty_quoted_values(lines: list[str]) -> None:
    # A quote opens and closes each value, and one more is in each of LATITUD and LONGITUD, unescaped.
    assert {(line[0], line[-1], line.count('","'), line.count('"')) for line in lines} == {('"', '"', 19, 42)}


def test_claves_are_unique_and_in_order(lines: list[str]) -> None:
    claves = [line[1:10] for line in lines]
    assert all(earlier < later for earlier, later in pairwise(claves))
    assert all(len(clave) == 9 and clave.isascii() and clave.isdigit() for clave in claves)


def test_clave_is_made_of_those_of_estado_municipio_and_localidad(sample: list[Row]) -> None:
    assert all(row[0] == row[2] + row[5] + row[7] for row in sample)


def test_estados_are_the_real_ones(municipios: dict[str, Row]) -> None:
    found = {f"{row[ESTADO]} {row[NOM_ENT]}/{row[NOM_ABR]}": None for row in municipios.values()}
    assert list(found) == [estado.strip() for estado in REAL_ESTADOS.split(";")]


def test_municipios_are_as_many_as_the_estado_really_has(municipios: dict[str, Row]) -> None:
    counts = Counter(row[ESTADO] for row in municipios.values())
    assert counts == {estado.clave: estado.municipios for estado in ESTADOS}
    assert (counts["20"], counts["21"], counts["30"], counts["02"]) == (570, 217, 212, 5)


def test_municipios_are_uneven_in_size(lines: list[str]) -> None:
    sizes = sorted(Counter(line[1:6] for line in lines).values())
    assert sizes[0] < 5
    assert 35 <= sizes[len(sizes) // 2] <= 75
    assert 10 <= sum(size > 1_000 for size in sizes) <= 40


def test_claves_start_at_one_but_in_two_municipios(municipios: dict[str, Row]) -> None:
    assert [clave for clave, row in municipios.items() if row[CVE_LOC] != "0001"] == ["14060", "30101"]


def test_claves_have_gaps(lines: list[str]) -> None:
    highest: dict[str, int] = {}
    for line in lines:
        highest[line[1:6]] = int(line[6:10])
    assert 1.3 <= sum(highest.values()) / len(lines) <= 2


def test_cabecera_is_named_after_its_municipio(municipios: dict[str, Row]) -> None:
    assert all(row[NOM_LOC] == row[NOM_MUN] for row in municipios.values())


def test_municipios_share_a_name_twice_in_oaxaca_only(municipios: dict[str, Row]) -> None:
    shared = Counter((row[ESTADO], row[NOM_MUN]) for row in municipios.values())
    assert [(estado, count) for (estado, _), count in shared.items() if count > 1] == [("20", 2), ("20", 2)]


def test_one_municipio_has_a_comma_in_its_name(municipios: dict[str, Row]) -> None:
    assert [row[ESTADO] for row in municipios.values() if "," in row[NOM_MUN]] == ["20"]


def test_homonyms_are_as_many_as_in_the_real_catalogue(places: list[tuple[str, str]]) -> None:
    surplus = sum(count - 1 for count in Counter(places).values())
    assert 0.08 <= surplus / len(places) <= 0.12
    (name, count), (_, second) = Counter(name for _, name in places).most_common(2)
    assert (name, 4_000 < count < 8_000, second < 2_000) == ("Ninguno", True, True)


@pytest.mark.parametrize(
    ("least", "most", "has"),
    [
        pytest.param(0.08, 0.12, lambda name: "(" in name, id="parentheses"),
        pytest.param(0.02, 0.04, lambda name: "[" in name, id="square brackets"),
        pytest.param(0.22, 0.28, lambda name: not name.isascii(), id="letters outside ASCII"),
    ],
)
def test_names_have_the_real_share_of(
    places: list[tuple[str, str]], least: float, most: float, has: Callable[[str], bool]
) -> None:
    assert least <= sum(has(name) for _, name in places) / len(places) <= most


@pytest.mark.parametrize("mark", ["'", "\u00a0", "  ", "½", "`", " N° ", " nº ", ", ", "#"])
def test_a_few_names_have_the_odd(places: list[tuple[str, str]], mark: str) -> None:
    assert 20 <= sum(mark in name for _, name in places) <= 400


def test_names_are_as_long_as_the_real_ones(places: list[tuple[str, str]]) -> None:
    lengths = sorted(len(name) for _, name in places)
    assert lengths[0] >= 4
    assert 10 <= lengths[len(lengths) // 2] <= 18
    assert 80 <= lengths[-1] <= 86


def test_degrees_agree_with_the_decimals(sample: list[Row]) -> None:
    # Six decimals of a degree are a third of a thousandth of a second.
    for row in sample:
        assert decimal(row[LATITUD]) == pytest.approx(float(row[LAT_DECIMAL]), abs=6e-7)
        assert decimal(row[LONGITUD]) == pytest.approx(float(row[LON_DECIMAL]), abs=6e-7)
        assert re.fullmatch(r"-?[0-9]{2,3}\.[0-9]{6}", row[LON_DECIMAL])


def test_localities_lie_in_the_box_of_their_estado(sample: list[Row]) -> None:
    boxes = {estado.clave: estado for estado in ESTADOS}
    for row in sample:
        box = boxes[row[ESTADO]]
        assert box.south < float(row[LAT_DECIMAL]) < box.north
        assert -box.west < float(row[LON_DECIMAL]) < -box.east


def test_sheet_of_a_place_whose_sheet_is_known_is_right(sample: list[Row]) -> None:
    # Sheet F13D19 is that of the city of Aguascalientes: 21°45' to 22° N, 102° to 102°20' W.
    there = {row[CVE_CARTA] for row in sample if inside(row, 21.75, 22.0, 102.0, 102.333)}
    assert there - {""} == {"F13D19"}
    assert all(re.fullmatch(r"[D-I]1[1-6][A-D][1-8][1-9]|", row[CVE_CARTA]) for row in sample)


def inside(row: Row, south: float, north: float, east: float, west: float) -> bool:
    return south < float(row[LAT_DECIMAL]) < north and east < -float(row[LON_DECIMAL]) < west


def test_altitudes_are_metres_or_unknown(sample: list[Row]) -> None:
    known = [int(row[ALTITUD]) for row in sample if row[ALTITUD] != "-"]
    assert 0.95 <= len(known) / len(sample) <= 0.99
    assert -1 <= min(known) < max(known) <= 4_000


def test_populations_are_known_for_a_fifth(sample: list[Row]) -> None:
    known = [row for row in sample if row[POBLACION] != "-"]
    assert 0.17 <= len(known) / len(sample) <= 0.23
    assert all(row[POBLACION:] == ["-"] * 4 for row in sample if row[POBLACION] == "-")


def test_populations_add_up_and_tell_urban_from_rural(lines: list[str]) -> None:
    urban = 0
    for row in map(fields, lines[::11]):
        if row[POBLACION] == "-":
            assert row[AMBITO] == "R"
            continue
        total, men, women, homes = map(int, row[POBLACION:])
        assert total == men + women > 0
        assert 1 <= homes <= total
        assert row[AMBITO] == ("U" if total >= 2_500 else "R")
        urban += total >= 2_500
    assert urban > 100
