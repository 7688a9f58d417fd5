"""Complete drawings: what is where, and which names are left out."""

import re

from localidades_api.catalogue.mercator import Frame
from localidades_api.database.queries.releases import ChangeCounts
from localidades_api.html import svg

HERE = {"nombre": "Peñón Blanco de los Reyes Magos", "latitud": 25.0, "longitud": -100.0}
NEARBY = (
    ("Ciudad", 50_000, 25.1, -100.05),
    ("Rancho Uno", 40, 24.99, -100.0),
    ("Rancho Dos", None, 24.985, -99.98),
    ("Otro", 3, 24.90, -99.8),
    ("Escala", 7, 24.865, -100.17),
    ("Orilla", 5, 24.92, -100.19),
)


def lines(drawn: svg.Map | svg.Country) -> list[str]:
    """Return the dots, each with its name."""
    dots = [drawn.here, *drawn.dots] if isinstance(drawn, svg.Map) else drawn.dots
    return [
        f"{dot.x} {dot.y} {dot.radius:g}"
        + (f" {dot.label.text} {dot.label.x} {dot.label.y} {dot.label.anchor}" if dot.label else "")
        for dot in dots
    ]


def test_map_of_neighbours_is_drawn() -> None:
    places = [dict(zip(("nombre", "poblacion", "latitud", "longitud"), place, strict=True)) for place in NEARBY]
    drawn = svg.draw_map(HERE, places)
    assert (drawn.width, drawn.height, drawn.scale_width, drawn.scale_label) == (480, 360, 88, "10 km")
    assert lines(drawn) == [
        "240 180 8 Peñón Blanco de los R… 252 185 start",
        "196 82 7.2 Ciudad 207 87 start",
        "240 190 4.1 Rancho Uno 232 195 end",
        "89 312 3.4",
        "72 258 3.3 Orilla 80 263 start",
        "417 278 3.1 Otro 424 283 start",
        "258 195 2.5",
    ]


def test_map_without_neighbours_is_drawn() -> None:
    drawn = svg.draw_map(HERE, [])
    assert (drawn.scale_width, drawn.scale_label, drawn.dots) == (86, "200 m", [])


def test_country_is_drawn() -> None:
    places = [
        (-99.1, 19.4, "Ciudad de México"), (-99.0, 19.5, "Ecatepec"), (-103.3, 20.7, "Guadalajara"),
        (-86.8, 21.2, "Cancún"), (-99.12, 19.42, "Iztacalco"), (-99.1, 19.3, "Tlalpan"), (0, 0, "Nada"),
    ]  # fmt: skip
    drawn = svg.draw_country(places)
    assert (drawn.width, drawn.height) == (400, 257)
    assert lines(drawn) == [
        "242 189 2 Ciudad de México 238 191 end",
        "244 187 2 Ecatepec 248 189 start",
        "191 172 2 Guadalajara 195 174 start",
        "394 165 2 Cancún 390 167 end",
        "242 188 2",
        "242 190 2",
    ]


def test_backdrop_and_inset_are_drawn() -> None:
    drawn = svg.draw_backdrop([0, 1, 2, 11, 12, 25], Frame(0, 0, 10, 4, 1)).decode()
    path = "m0 0h3m-2 1h2m2 1h1"
    assert re.findall(' d="(.*?)"', drawn) == [path]
    inset = svg.draw_inset([(None, 1), (-99.1, 19.4), (-99.1, 19.4), (0, 0), (-86.8, 21.2)])
    assert inset == svg.Inset(400, 257, "M242.5 188.7h0M393.8 165.1h0")
    assert svg.draw_inset([(0, 0)]) is None


def test_changes_are_drawn_as_parts_of_the_longest_bar() -> None:
    kinds = ("added", "removed", "renamed", "relocated", "updated")
    counts = {name: ChangeCounts("", dict(zip(kinds, numbers, strict=True))) for name, numbers in
              {"b": (1, 0, 2, 0, 5), "a": (0, 3, 0, 0, 0), "0": (0, 0, 0, 0, 0)}.items()}  # fmt: skip
    assert svg.draw_changes({**counts, "first": None}) == {
        "b": [("added", 0, 12.5), ("renamed", 12.5, 25), ("updated", 37.5, 62.5)],
        "a": [("removed", 0, 37.5)],
        "0": [],
    }
