"""Complete drawings: what is where, and which names are left out."""

import json
import re

from localidades_api.catalogue.mercator import Frame
from localidades_api.database.queries.tiles import StateCell
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


def written(dot: svg.Dot, label: svg.Label | None) -> str:
    """Return a dot and its name as a line."""
    return f"{dot.x} {dot.y} {dot.radius:g}" + (
        f" {label.text} {label.x:g} {label.y:g} {label.anchor}" if label else ""
    )


def test_map_of_neighbours_is_drawn() -> None:
    places = [dict(zip(("nombre", "poblacion", "latitud", "longitud"), place, strict=True)) for place in NEARBY]
    drawn = svg.draw_map(HERE, places)
    assert (drawn.width, drawn.height, drawn.scale_width, drawn.scale_label) == (480, 360, 88, "10 km")
    assert drawn.here
    assert [written(dot, dot.label) for dot in (drawn.here, *drawn.dots)] == [
        "240 180 8 Peñón Blanco de los R… 227.75 180 end",
        "196 82 7.2 Ciudad 207.45 82 start",
        "240 190 4.1 Rancho Uno 248.35 181.5 start",
        "89 312 3.4 Escala 96.65 303.5 start",
        "72 258 3.3 Orilla 79.55 258 start",
        "417 278 3.1 Otro 409.65 278 end",
        "258 195 2.5 Rancho Dos 258 206 middle",
    ]
    alone = svg.draw_map(HERE, [])
    assert (alone.scale_width, alone.scale_label, alone.dots) == (86, "200 m", [])


def outline(*rings: list[tuple[float, float]]) -> bytes:
    return json.dumps({"type": "MultiPolygon", "coordinates": [rings]}).encode()


def rectangle(west: float, south: float, east: float, north: float) -> list[tuple[float, float]]:
    return [(west, south), (east, south), (east, north), (west, north), (west, south)]


def test_border_is_cut_near_the_edges_of_a_map() -> None:
    places = [dict(zip(("nombre", "poblacion", "latitud", "longitud"), place, strict=True)) for place in NEARBY]
    around = svg.draw_map(HERE, places, outline(rectangle(-110, 20, -90, 30))).border
    assert around == "M-12 -12L-12 372L492 372L492 -12z"
    west = svg.draw_map(HERE, places, outline(rectangle(-110, 20, -100, 30))).border
    assert west == "M-12 -12L-12 372L240 372L240 -12z"
    assert svg.draw_map(HERE, places, outline(rectangle(-110, 20, -109, 30))).border == ""


def test_municipio_fills_its_map_with_the_places_in_it() -> None:
    places = [
        {"nombre": name, "poblacion": 9, "latitud": north, "longitud": east}
        for name, north, east in (("Dentro", 20.5, -99.5), ("Lejos", 25, -99.5), ("Sin punto", None, None))
    ]
    hole = rectangle(-99.2, 20.2, -99.1, 20.3)[::-1]
    drawn = svg.draw_municipio(outline(rectangle(-100, 20, -99, 21), hole), places)
    assert [written(dot, dot.label) for dot in drawn.dots] == ["240 180 3.5 Dentro 247.75 180 start"]
    assert (drawn.here, drawn.scale_label, drawn.scale_width) == (None, "20 km", 60)
    assert svg.draw_municipio(outline([(-99, 20)] * 4), []).border == ""
    assert drawn.border == "M82.6 348L397.4 348L397.4 12L82.6 12zM334.4 280.8L334.4 247.2L365.9 247.2L365.9 280.8z"


def test_capital_is_named_beside_its_dot_if_its_place_is_covered() -> None:
    cities = [
        svg.City(-101.0, 22.15, "San Luis Potosí", 800_000, "a/", is_capital=True),
        svg.City(-99.3, 22.45, "Valles", 100_000, "b/"),
        svg.City(-99.6, 22.45, "Fraccionamiento Valles", 90_000, "c/"),
    ]
    for number, label in ((1, "223 148 start"), (2, "215.25 152 end")):
        (link,) = [one for one in svg.draw_country(cities[:number]).links if one.path == "a/"]
        assert f"{link.label.x:g} {link.label.y:g} {link.label.anchor}" == label


def test_backdrop_and_inset_are_drawn() -> None:
    cells = {0: 1, 1: 15, 2: 1, 11: 1, 12: 58, 25: 1, 38: 59, 39: 1}
    drawn = svg.draw_backdrop([value for cell in cells.items() for value in cell], Frame(0, 0, 10, 4, 1)).decode()
    assert re.findall('stroke-width="(.*?)" d="(.*?)"', drawn) == [
        ("0.45", "m0 0h2m0 1h1m1 0h1"), ("0.68", "m0 0h2m2 1h1"), ("0.92", "m4 1h1"),
    ]  # fmt: skip
    inset = svg.draw_inset([(None, 1), (-99.1, 19.4), (-99.1, 19.4), (0, 0), (-86.8, 21.2)])
    assert inset == "M242.5 188.7h0M393.8 165.1h0"
    assert svg.draw_inset([(0, 0)]) == ""


def test_cell_belongs_to_the_estado_with_most_places_in_it() -> None:
    below = svg.STATES.columns  # the cell below the first
    cells = [(1, 0, 5, 10), (2, 0, 6, 10), (1, below, 6, 1), (2, below, 6, 1), (2, 1, 1, 1)]
    drawn = svg.draw_states(StateCell(*cell) for cell in cells)
    assert {id_: shape.path for id_, shape in drawn.items()} == {2: "m0 0h2", 1: "m0 1h1"}
    assert svg.draw_states([StateCell(1, None, 3, 5)]) == {}


def test_estados_are_shaded_by_fifths_of_their_density() -> None:
    cells = [StateCell(id_, id_, 1, 10 * id_) for id_ in range(1, 11)]
    cells += [StateCell(1, 20, 1, None), StateCell(10, None, 3, 1000), StateCell(5, 21, 1, 10_000)]
    assert {id_: shape.shade for id_, shape in svg.draw_states(cells).items()} == {
        1: 0, 2: 0, 3: 1, 4: 1, 6: 2, 7: 2, 8: 3, 9: 3, 10: 4, 5: 4
    }  # fmt: skip
