"""Generates the demo catalogue, as large and as irregular as INEGI's, with invented municipios and localities.

It serves to try the service, and for tests and benchmarks without INEGI's file. Only the estados, their abbreviations
and (roughly) their sizes and locations are real.

The lines are the same on every machine and every Python. Their only randomness is ``Random.random()``, whose sequence
Python guarantees for a seed, unlike that of ``choice`` or ``shuffle``; the arithmetic is IEEE's four operations,
without libm.
"""

from collections.abc import Iterator
from functools import cache
from math import isqrt
from random import Random
from typing import NamedTuple

from localidades_api.importer.demo.names import Chance, WordIndex, locality_wheel, municipio_names

# Of all lines joined by CRLF, in UTF-8: the index shows it, and a test compares it with the generator's.
DEMO_SHA256 = "6f715e28404a556b8d6291b29c93f23173e5c1bad7e2b49eb96cd76149eeca52"

COLUMNS = (
    "CVEGEO", "Estatus", "CVE_ENT", "NOM_ENT", "NOM_ABR", "CVE_MUN", "NOM_MUN", "CVE_LOC", "NOM_LOC",
    "AMBITO", "LATITUD", "LONGITUD", "LAT_DECIMAL", "LON_DECIMAL", "ALTITUD", "CVE_CARTA",
    "POB_TOTAL", "POB_MASCULINA", "POB_FEMENINA", "TOTAL DE VIVIENDAS HABITADAS",
)  # fmt: skip

SEED = 20180928
OAXACA = "20"
# Numbers in Oaxaca's list of municipios: the first of a pair takes the name of the second.
OAXACA_TWINS = ((208, 207), (318, 317))
OAXACA_COMMA = 411
COMMA_NAME = "Villa Vieja del Encinar, Puerta de las Lomas"
# The municipios without a locality 0001, whose cabecera has another clave or is elsewhere.
HEADLESS = {("14", "060"): 2, ("30", "101"): 7}
KNOWN_POPULATION = 0.195  # share of the localities, cabeceras apart
UNKNOWN_ALTITUDE = 0.03
SEA = -2  # metres: a random altitude as low as this, or lower, is moved to the shore
URBAN = 2_500  # inhabitants from which INEGI calls a locality urban
UNPOPULATED = '"-","-","-","-"'


class Estado(NamedTuple):
    """An estado: its numbers of municipios and localities, and its location as a rough box."""

    clave: str
    nombre: str
    abreviatura: str
    municipios: int
    localidades: int
    south: float
    north: float
    east: float  # degrees west of Greenwich, as is `west`
    west: float
    lowest: int  # metres
    highest: int


ESTADOS = (
    Estado("01", "Aguascalientes", "Ags.", 11, 2_960, 21.6, 22.4, 101.9, 102.8, 1_600, 2_500),
    Estado("02", "Baja California", "BC", 5, 7_060, 28.2, 32.7, 113.6, 117.1, 0, 1_400),
    Estado("03", "Baja California Sur", "BCS", 5, 4_950, 22.9, 27.9, 109.5, 114.1, 0, 900),
    Estado("04", "Campeche", "Camp.", 11, 5_450, 17.8, 20.5, 89.2, 92.4, 0, 250),
    Estado("05", "Coahuila de Zaragoza", "Coah.", 38, 9_990, 24.8, 29.5, 100.2, 103.7, 230, 2_400),
    Estado("06", "Colima", "Col.", 10, 3_490, 18.7, 19.5, 103.5, 104.6, 0, 1_500),
    Estado("07", "Chiapas", "Chis.", 123, 26_370, 14.7, 17.8, 91.3, 94.0, 0, 2_300),
    Estado("08", "Chihuahua", "Chih.", 67, 22_060, 25.8, 31.6, 104.0, 108.7, 600, 2_600),
    Estado("09", "Ciudad de México", "CDMX", 16, 680, 19.1, 19.5, 98.9, 99.4, 2_230, 3_400),
    Estado("10", "Durango", "Dgo.", 39, 9_940, 22.4, 26.7, 103.2, 107.1, 450, 2_800),
    Estado("11", "Guanajuato", "Gto.", 46, 11_590, 20.0, 21.8, 100.0, 102.0, 1_600, 2_400),
    Estado("12", "Guerrero", "Gro.", 81, 9_840, 16.4, 18.8, 98.1, 102.0, 0, 2_400),
    Estado("13", "Hidalgo", "Hgo.", 84, 5_380, 19.6, 21.3, 98.0, 99.8, 130, 2_800),
    Estado("14", "Jalisco", "Jal.", 125, 19_420, 19.0, 22.5, 101.7, 105.4, 0, 2_300),
    Estado("15", "México", "Mex.", 125, 5_310, 18.5, 20.2, 98.7, 100.5, 600, 3_100),
    Estado("16", "Michoacán de Ocampo", "Mich.", 113, 12_770, 18.0, 20.3, 100.2, 103.6, 0, 2_600),
    Estado("17", "Morelos", "Mor.", 33, 1_930, 18.4, 19.1, 98.7, 99.5, 850, 2_700),
    Estado("18", "Nayarit", "Nay.", 20, 4_740, 20.7, 22.9, 103.8, 105.7, 0, 2_100),
    Estado("19", "Nuevo León", "NL", 51, 10_790, 23.5, 27.6, 98.6, 100.9, 100, 2_200),
    Estado("20", "Oaxaca", "Oax.", 570, 12_990, 15.7, 18.5, 94.1, 98.3, 0, 2_700),
    Estado("21", "Puebla", "Pue.", 217, 8_040, 18.0, 20.8, 96.8, 98.8, 100, 2_900),
    Estado("22", "Querétaro", "Qro.", 18, 3_560, 20.0, 21.5, 99.1, 100.6, 700, 2_700),
    Estado("23", "Quintana Roo", "Q. Roo", 11, 4_360, 18.0, 21.4, 86.8, 89.1, 0, 130),
    Estado("24", "San Luis Potosí", "SLP", 58, 9_310, 21.2, 24.0, 98.4, 102.1, 20, 2_500),
    Estado("25", "Sinaloa", "Sin.", 18, 9_410, 22.6, 26.8, 105.6, 109.3, 0, 1_400),
    Estado("26", "Sonora", "Son.", 72, 17_410, 26.7, 32.4, 108.6, 115.0, 0, 1_700),
    Estado("27", "Tabasco", "Tab.", 17, 2_740, 17.3, 18.6, 91.0, 94.1, 0, 150),
    Estado("28", "Tamaulipas", "Tamps.", 43, 14_430, 22.4, 27.4, 97.3, 99.8, 0, 1_200),
    Estado("29", "Tlaxcala", "Tlax.", 60, 1_970, 19.1, 19.7, 97.7, 98.7, 2_200, 3_000),
    Estado("30", "Veracruz de Ignacio de la Llave", "Ver.", 212, 27_530, 17.3, 22.2, 93.9, 98.5, 0, 2_300),
    Estado("31", "Yucatán", "Yuc.", 106, 10_500, 19.8, 21.6, 87.6, 90.2, 0, 80),
    Estado("32", "Zacatecas", "Zac.", 58, 7_430, 21.1, 24.8, 101.0, 104.2, 1_300, 2_500),
)


class Municipio(NamedTuple):
    """A municipio: its localities lie around a centre, no further than `reach` and `breadth` degrees off."""

    estado: Estado
    clave: str
    nombre: str
    localidades: int
    first: int  # clave of its first locality
    latitude: float
    longitude: float  # degrees west
    reach: float
    breadth: float
    altitude: float
    relief: float  # metres that a locality may lie above or below `altitude`


def generate_demo() -> Iterator[str]:
    """Yield a catalogue's lines in INEGI's layout: the header, then 304,400 localities (6,088 pages of 50).

    Lines carry no line end, come in the order of CVEGEO, and can be encoded in windows-1252 as well as UTF-8.
    """
    rnd = Random(SEED).random  # noqa: S311 (a repeatable catalogue, no secret)
    wheel = locality_wheel(rnd)
    yield ",".join(f'"{column}"' for column in COLUMNS)
    for estado in ESTADOS:
        for municipio in _municipios(rnd, estado):
            yield from _localities(rnd, municipio, wheel)


def _municipios(rnd: Chance, estado: Estado) -> Iterator[Municipio]:
    """Yield an estado's municipios, each in another cell of a grid over the estado's box."""
    columns = isqrt(estado.municipios - 1) + 1
    rows = (estado.municipios + columns - 1) // columns
    height = (estado.north - estado.south) / rows
    width = (estado.west - estado.east) / columns
    sizes = _sizes(rnd, estado.localidades, estado.municipios)
    span = estado.highest - estado.lowest
    for index, (nombre, size) in enumerate(zip(_names(rnd, estado), sizes, strict=True)):
        row, column = divmod(index, columns)
        u = rnd()
        clave = f"{index + 1:03d}"
        yield Municipio(
            estado=estado,
            clave=clave,
            nombre=nombre,
            localidades=size,
            first=HEADLESS.get((estado.clave, clave), 1),
            latitude=estado.south + (row + 0.45 + 0.1 * rnd()) * height,
            longitude=estado.east + (column + 0.45 + 0.1 * rnd()) * width,
            reach=0.44 * height,
            breadth=0.44 * width,
            # Estados with a coast have most of their localities in the plain.
            altitude=estado.lowest + (u * u if estado.lowest == 0 else u) * span,
            relief=0.1 * span,
        )


def _sizes(rnd: Chance, total: int, count: int) -> list[int]:
    """Split an estado's localities over its municipios, unevenly: few have most, and each has one."""
    # Whole weights, since Python 3.12 and later add floats up more exactly than 3.11.
    weights = [int(1_000_000 * (0.015 + u * u)) for u in (rnd() for _ in range(count))]
    whole = sum(weights)
    sizes = [1 + weight * (total - count) // whole for weight in weights]
    for index in range(total - sum(sizes)):
        sizes[index] += 1
    return sizes


def _names(rnd: Chance, estado: Estado) -> list[str]:
    names = municipio_names(rnd, estado.municipios)
    if estado.clave == OAXACA:
        for twin, other in OAXACA_TWINS:
            names[twin] = names[other]
        names[OAXACA_COMMA] = COMMA_NAME
    return names


def _localities(rnd: Chance, municipio: Municipio, wheel: list[WordIndex]) -> Iterator[str]:
    """Yield a municipio's lines; the first is its cabecera, named as it is and larger than most."""
    estado, mun = municipio.estado, municipio.clave
    key = f'"{estado.clave}{mun}'
    middle = f'","","{estado.clave}","{estado.nombre}","{estado.abreviatura}","{mun}","{municipio.nombre}","'
    slots, gaps = len(wheel), 0.5 * rnd()
    clave, nombre = municipio.first, municipio.nombre
    ambito, people = _population(rnd, 1_500)
    for _ in range(municipio.localidades):
        place = _place(rnd, municipio, clave % 4 - 1)
        yield f'{key}{clave:04d}{middle}{clave:04d}","{nombre}","{ambito}",{place},{people}'
        clave += 1 if rnd() >= gaps else 2 + int(rnd() * 4)
        pool = wheel[int(rnd() * slots)]
        nombre = pool[int(rnd() * len(pool))]
        ambito, people = _population(rnd, 80) if rnd() < KNOWN_POPULATION else ("R", UNPOPULATED)


def _population(rnd: Chance, scale: int) -> tuple[str, str]:
    """Return the ambito and the last four columns of a locality of 1 to 1,000 times `scale` people."""
    total = 1 + int(scale / (rnd() + 0.001)) - int(scale / 1.001)
    men = int(total * (0.46 + 0.06 * rnd()))
    homes = 1 + int(total / (3.2 + 1.4 * rnd()))
    return "U" if total >= URBAN else "R", f'"{total}","{men}","{total - men}","{homes}"'


def _place(rnd: Chance, municipio: Municipio, off: int) -> str:
    """Return the columns from LATITUD to CVE_CARTA of some place in a municipio.

    INEGI's seconds are whole ones but for a thousandth or two, which is `off`.
    """
    lat = int(3600 * (municipio.latitude + municipio.reach * (rnd() - rnd()))) * 1000 + off
    lon = int(3600 * (municipio.longitude + municipio.breadth * (rnd() - rnd()))) * 1000 - off
    metres = int(municipio.altitude + municipio.relief * (rnd() - rnd()))
    altitude, sheet = str(metres if metres > SEA else 0), _sheet(lat // 900_000, lon // 1_200_000)
    if rnd() < UNKNOWN_ALTITUDE:
        altitude, sheet = "-", ""
    decimals = f'"{lat / 3_600_000:.6f}","-{lon / 3_600_000:.6f}"'
    return f'"{_dms(lat)}"N","{_dms(lon)}"W",{decimals},"{altitude}","{sheet}"'


def _dms(angle: int) -> str:
    """Write thousandths of a second of arc the way INEGI does, with an acute accent for the minutes."""
    minutes, thousandths = divmod(angle, 60_000)
    return f"{minutes // 60}°{minutes % 60:02d}\u00b4{thousandths // 1000:02d}.{thousandths % 1000:03d}"


@cache
def _sheet(row: int, column: int) -> str:
    """Name the 1:50,000 sheet of a cell of 15' by 20', counted from the equator and west from Greenwich.

    ``F13D19`` is zone F13 of the map of the world (4 by 6 degrees), its south-east quarter, row 1, column 9.
    """
    quarter = "DCBA"[row % 16 // 8 * 2 + column % 18 // 9]
    return f"{'ABCDEFGHI'[row // 16]}{30 - column // 18}{quarter}{8 - row % 8}{9 - column % 9}"
