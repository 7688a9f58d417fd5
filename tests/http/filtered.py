"""Localities that vary in all that filters ask for, and filters with their meaning in plain Python."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from localidades_api.catalogue.folding import fold
from tests.support.catalogue import TRAPS, Place

STATES = {"01": "Aguascalientes", "09": "Ciudad de México", "14": "Jalisco", "20": "Oaxaca", "32": "Zacatecas"}
KINDS = ("San José", "Santa María", "El Peñón", "Rancho Nuevo", "Ejido la Concepción", "Colonia N° 5", "La Güera")
BYNAMES = ("", " del Río", " [Rancho]", " (Los Ángeles)", "  de Arriba", " de Abajo")


def varied() -> list[Place]:
    """Return places of five estados and thirty municipios that share claves, names and ambitos."""
    known = {trap.cvegeo for trap in TRAPS}
    ordinary = (
        Place(
            f"{ent}{mun:03d}{loc:04d}",
            KINDS[(loc + mun) % len(KINDS)] + BYNAMES[loc % len(BYNAMES)],
            nom_ent=name,
            nom_abr=next((trap.nom_abr for trap in TRAPS if trap.cvegeo[:2] == ent), "Abr."),
            nom_mun=next((trap.nom_mun for trap in TRAPS if trap.cvegeo[:5] == f"{ent}{mun:03d}"), ""),
            ambito="UR-"[(loc * 7 + mun) % 3],
            latitud=f"{16 + loc % 13 + mun / 100}",
            longitud=f"{-117 + 6 * number + mun / 10 + loc / 1000:.6f}",
            altitud="-" if loc % 9 == 0 else str(loc * 83 - 20),
            poblacion="-" if loc % 7 == 0 else str(loc**3 % 20_000),
        )
        for number, (ent, name) in enumerate(STATES.items())
        for mun in range(1, 4 + 2 * number)
        for loc in range(1, 36 + mun)
    )
    return [*TRAPS, *(place for place in ordinary if place.cvegeo not in known)]


# A value for each filter; add one for each new filter.
EVERY_FILTER = {
    "municipio_id": "1001", "estado_id": "1", "clave": "0011", "ambito": "R", "cvegeo": "010010003,010010011",
    "poblacion_min": "100", "poblacion_max": "9000", "altitud_min": "0", "altitud_max": "2500",
    "bbox": "-118,14,-86,33", "search": "script",
}  # fmt: skip
PLACES = sorted(varied(), key=lambda place: (place.cvegeo[5:], place.cvegeo))
Filters = Mapping[str, str]


def is_chosen(place: Place, filters: Filters) -> bool:
    """Return whether a place matches the filters."""
    meanings: dict[str, Callable[[str], bool]] = {
        "municipio_id": lambda value: int(place.cvegeo[:5]) in map(int, value.split(",")),
        "estado_id": lambda value: int(place.cvegeo[:2]) in map(int, value.split(",")),
        "poblacion_min": lambda value: is_between(place.poblacion, int(value), math.inf),
        "poblacion_max": lambda value: is_between(place.poblacion, -math.inf, int(value)),
        "altitud_min": lambda value: is_between(place.altitud, int(value), math.inf),
        "altitud_max": lambda value: is_between(place.altitud, -math.inf, int(value)),
        "clave": lambda value: place.cvegeo[5:] == value,
        "ambito": lambda value: place.ambito == value,
        "cvegeo": lambda value: int(place.cvegeo) in [int(key) for key in value.split(",")],
        "bbox": lambda value: is_within(place, *map(float, value.split(","))),
        "search": lambda value: all(begins_a_word(one, fold(place.nombre)) for one in fold(value).split()),
    }
    return all(meanings[name](value) for name, value in filters.items())


def is_between(written: str, least: float, most: float) -> bool:
    """Return whether a figure of the file is known, and between two bounds."""
    return written not in {"-", "*"} and least <= int(written) <= most


def is_within(place: Place, west: float, south: float, east: float, north: float) -> bool:
    """Return whether a place is in a box, edges included; one without coordinates never is."""
    is_located = "-" not in {place.longitud, place.latitud}
    return is_located and west <= float(place.longitud) <= east and south <= float(place.latitud) <= north


def begins_a_word(typed: str, name: str) -> bool:
    return f" {typed}" in f" {name}"


def choose(filters: Filters) -> list[dict[str, Any]]:
    """Return the records of the file that match the filters, in the order of the list."""
    names = ("id", "municipio_id", "clave", "nombre")
    chosen = (place for place in PLACES if is_chosen(place, filters))
    return [dict(zip(names, (int(p.cvegeo), int(p.cvegeo[:5]), p.cvegeo[5:], p.nombre), strict=True)) for p in chosen]


KEYS = st.sampled_from([*(place.cvegeo for place in PLACES), "010019999", "999999999"])
# None begins a word of a municipio or an estado, where searches would find it, too: 5 would be that of Municipio 005.
WORDS = st.sampled_from(["JOSÉ", "rio", "peñ", "[rancho]", "guera", "arriba", "zzz"])
SIDES = (st.integers(-118, -102), st.integers(15, 22), st.integers(-102, -86), st.integers(22, 33))
FILTERS: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {},
    optional={
        "municipio_id": st.lists(
            st.sampled_from(sorted({place.cvegeo[:5] for place in PLACES} | {"20999"})), min_size=1, max_size=9
        ).map(",".join),
        "estado_id": st.lists(st.sampled_from([*STATES, "2"]), min_size=1, max_size=3).map(",".join),
        "poblacion_min": st.integers(0, 9000).map(str),
        "poblacion_max": st.integers(9000, 20_000).map(str),
        "altitud_min": st.integers(-20, 1500).map(str),
        "altitud_max": st.integers(1500, 4000).map(str),
        "clave": st.sampled_from(["0001", "0002", "0011", "0036", "0044", "7777"]),
        "ambito": st.sampled_from(["U", "R"]),
        "bbox": st.tuples(*SIDES).map(lambda box: ",".join(map(str, box))),
        "cvegeo": st.lists(KEYS, min_size=1, max_size=500).map(",".join),
        "search": st.lists(WORDS, min_size=1, max_size=3).map(" ".join),
    },
)
