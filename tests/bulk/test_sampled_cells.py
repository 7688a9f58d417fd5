"""Columns that are found by their cells: the same ones in every format, in a list of Hidalgo's places."""

import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import pytest

from localidades_api.bulk.answers import answer_sample
from localidades_api.bulk.columns import name_columns
from localidades_api.bulk.formats import XLSX, MediaType
from localidades_api.bulk.readers import TableReader
from localidades_api.bulk.roles import POINTS
from localidades_api.errors import UnreadableBodyError
from localidades_api.names.index import NameIndex
from tests.support.bulk import CSV, NDJSON, open_rows
from tests.support.workbooks import workbook_of

Table = Sequence[Sequence[str]]
PEOPLE = ("Juan Pérez López", "María Hernández", "José García", "Ana Cruz", "Rosa Mendoza", "Pedro Flores")


@pytest.fixture(scope="module")
def places(hidalgo: NameIndex) -> Table:
    """Return the name, the municipio, the latitude and the longitude of places."""
    areas = hidalgo.areas.municipios
    places = [(hidalgo.place(row), name) for id_, name in areas.items() for row in hidalgo.layout.block(id_)[1]]
    chosen = Random(74).sample(places, 120)  # noqa: S311  # as in other tests
    return [(place.nombre, name, f"{place.latitud:.5f}", f"{place.longitud:.5f}") for place, name in chosen]


def read(index: NameIndex, header: Sequence[str], rows: Table, media_type: MediaType = CSV, **options: Any) -> Any:  # noqa: ANN401
    """Return the kind of the rows, the columns by role, and those that aren't used; the same for every format."""
    if media_type == CSV:
        text = io.StringIO()
        csv.writer(text).writerows([header, *rows])
        data = text.getvalue().encode()
    elif media_type == NDJSON:
        data = "\n".join(json.dumps(dict(zip(header, row, strict=True))) for row in rows).encode()
    else:
        data = workbook_of(header, *rows)
    reader = open_rows(data, media_type, answer=partial(answer_sample, index), **options)
    first = [row for row, _ in zip(reader, range(5), strict=False)]
    table = reader.describe(first)
    if isinstance(reader, TableReader):
        assert table["roles"] == name_columns(reader.assignment, header)
    return table["kind"], table["roles"], [(column["column"], column["role"]) for column in table["unused"]]


@pytest.mark.parametrize("media_type", [CSV, NDJSON, XLSX])
@pytest.mark.parametrize(
    "header",
    ["Ejido/Comunidad", "¿En qué localidad vive?", "grupo/localidad", "Población", "Paraje", "Punto de entrega", "x"],
)
def test_cells_that_are_places_name_their_column(
    hidalgo: NameIndex, places: Table, header: str, media_type: MediaType
) -> None:
    rows = [(f"A{number}", name, municipio) for number, (name, municipio, *_) in enumerate(places)]
    read_as = read(hidalgo, ("Folio", header, "Municipio"), rows, media_type)
    assert read_as == ("localidad", {"nombre": header, "municipio": "Municipio"}, [])


@pytest.mark.parametrize("media_type", [CSV, NDJSON, XLSX])
def test_municipio_and_estado_are_found_within_questions_and_without_any_header(
    hidalgo: NameIndex, places: Table, media_type: MediaType
) -> None:
    rows = [(name, municipio, "Hidalgo", "1") for name, municipio, *_ in places]
    for header in (("¿En qué localidad vive?", "¿En qué municipio vive?", "Su entidad", "n"), ("a", "b", "c", "d")):
        kind, roles, _ = read(hidalgo, header, rows, media_type)
        assert (kind, roles) == ("localidad", dict(zip(("nombre", "municipio", "estado"), header, strict=False)))


@pytest.mark.parametrize("media_type", [CSV, XLSX])
def test_place_and_municipio_in_one_column(hidalgo: NameIndex, places: Table, media_type: MediaType) -> None:
    lines = [f"{name}, {municipio}" for name, municipio, *_ in places]
    header = "Localidad, Municipio"
    assert read(hidalgo, [header], [[line] for line in lines], media_type) == ("localidad", {"nombre": header}, [])
    rows = [(str(number), line) for number, line in enumerate(lines)]
    assert read(hidalgo, ("No.", header), rows, media_type) == ("localidad", {"nombre": header}, [])


@pytest.mark.parametrize(
    ("other", "cells"),
    [
        ("Presidente", PEOPLE), ("Programa", ("Maíz", "Becas Benito Juárez", "Agua", "Salud")),
        ("Partido", ("PRI", "PAN", "Morena")),
    ],
)  # fmt: skip
def test_list_of_municipios_stays_one_and_asks(
    hidalgo: NameIndex, places: Table, other: str, cells: Sequence[str]
) -> None:
    municipios = sorted({municipio for _, municipio, *_ in places})
    rows = [(municipio, cells[at % len(cells)]) for at, municipio in enumerate(municipios)]
    assert read(hidalgo, ("Municipio", other), rows) == ("municipio", {"municipio": "Municipio"}, [(other, "nombre")])
    seats = [(municipio, municipio) for municipio in municipios]
    assert read(hidalgo, ("Municipio", "Cabecera"), seats) == ("municipio", {"municipio": "Municipio"}, [])


def test_names_of_people_do_not_hide_those_of_places(hidalgo: NameIndex, places: Table) -> None:
    rows = [(PEOPLE[at % len(PEOPLE)], name, municipio) for at, (name, municipio, *_) in enumerate(places)]
    _, roles, _ = read(hidalgo, ("Nombre", "Comunidad", "Municipio"), rows)
    assert roles == {"nombre": "Comunidad", "municipio": "Municipio"}
    turned = [(name, person, municipio) for person, name, municipio in rows]
    _, roles, _ = read(hidalgo, ("Nombre", "Responsable", "Municipio"), turned)
    assert roles == {"nombre": "Nombre", "municipio": "Municipio"}


def test_column_that_the_sender_names_is_taken_whatever_its_cells_are(hidalgo: NameIndex, places: Table) -> None:
    rows = [(name, municipio, "x") for name, municipio, *_ in places]
    header = ("Paraje", "Municipio", "Otro")
    assert read(hidalgo, header, rows, named={"nombre": "Otro"})[1]["nombre"] == "Otro"
    assert "nombre" not in read(hidalgo, header, rows, named={"nombre": ""})[1]
    assert read(hidalgo, header, rows, kind="municipio")[0] == "municipio"


def test_column_of_an_earlier_answer_can_be_named(hidalgo: NameIndex, places: Table) -> None:
    rows = [("exact", "", name, municipio) for name, municipio, *_ in places]
    header = ("match_outcome", "match_cvegeo", "match_label", "Otro")
    assert read(hidalgo, header, rows, named={"nombre": "match_label"})[1] == {"nombre": "match_label"}


@pytest.mark.parametrize(("some", "of", "kind"), [(1, 2, "localidad"), (3, 7, "municipio")])
def test_half_of_the_cells_must_be_places_unless_the_header_says_so(
    hidalgo: NameIndex, places: Table, some: int, of: int, kind: str
) -> None:
    rows = [
        (name if at % of < some else f"Zzyx Qwert {at}", municipio) for at, (name, municipio, *_) in enumerate(places)
    ]
    assert read(hidalgo, ("Paraje", "Municipio"), rows)[0] == kind
    assert read(hidalgo, ("Comunidad o paraje", "Municipio"), rows)[0] == "localidad"


def test_sheet_that_begins_with_a_place_has_no_header(hidalgo: NameIndex) -> None:
    """By the cells below it, the first row could be the header of estados."""
    data = workbook_of(("Pachuca de Soto", "Hgo."), ("Tulancingo", "Hgo."), ("Actopan", "Hgo."))
    cells = [row.cells for row in open_rows(data, XLSX, answer=partial(answer_sample, hidalgo))]
    assert cells[0] == {"nombre": "Pachuca de Soto", "estado": "Hgo."}
    assert len(cells) == 3


def test_only_the_first_rows_count(hidalgo: NameIndex, places: Table) -> None:
    rows = [("A-1 B", "Actopan")] * 250 + [(name, municipio) for name, municipio, *_ in places]
    assert read(hidalgo, ("Dato", "Municipio"), rows)[0] == "municipio"


@pytest.mark.parametrize("media_type", [CSV, NDJSON, XLSX])
@pytest.mark.parametrize("header", ["_ubicacion", "Coordenadas", "Latitud", "_x_latitude,_x_longitude", "N,W"])
def test_degrees_name_their_columns(hidalgo: NameIndex, places: Table, header: str, media_type: MediaType) -> None:
    columns = header.split(",")
    rows = [[name, f"{lat} {lon} 2240 5"] if len(columns) == 1 else [name, lat, lon] for name, _, lat, lon in places]
    expected = {"latitud": columns[0], "longitud": columns[-1]}
    assert read(hidalgo, ["Localidad", *columns], rows, media_type)[1] == {"nombre": "Localidad", **expected}
    points = [row[1:] for row in rows]
    reader = open_rows(workbook_of(columns, *points), XLSX, roles=POINTS)
    assert [(row.cells["latitud"], row.cells["longitud"]) for row in reader][:3] == [
        (float(lat), float(lon)) for _, _, lat, lon in places[:3]
    ]


@pytest.mark.parametrize("media_type", [CSV, NDJSON, XLSX])
def test_keys_name_their_column(hidalgo: NameIndex, media_type: MediaType) -> None:
    keys = [f"{hidalgo.place(row).id:09d}" for id_ in hidalgo.areas.municipios for row in hidalgo.layout.block(id_)[1]]
    rows = [(key, f"2026{at % 12 + 1:02}01", PEOPLE[at % len(PEOPLE)]) for at, key in enumerate(keys[:60])]
    read_as = read(hidalgo, ("Código de la comunidad", "Fecha", "Responsable"), rows, media_type)
    assert read_as == ("localidad", {"cvegeo": "Código de la comunidad"}, [])


def test_list_beside_another_with_the_same_headers_is_read(hidalgo: NameIndex, places: Table) -> None:
    rows = [(name, municipio, "", municipio, name) for name, municipio, *_ in places]
    _, roles, _ = read(hidalgo, ("Localidad", "Municipio", "", "Municipio", "Localidad"), rows, XLSX)
    assert roles == {"nombre": "Localidad", "municipio": "Municipio"}


def test_numbers_that_are_no_degrees_are_no_point(hidalgo: NameIndex, places: Table) -> None:
    rows = [(name, "21.5", "-99.5") for name, *_ in places]
    assert read(hidalgo, ("Localidad", "Temperatura", "Saldo"), rows)[1] == {"nombre": "Localidad"}


def test_table_without_places_is_refused(hidalgo: NameIndex) -> None:
    with pytest.raises(UnreadableBodyError, match="names no column"):
        read(hidalgo, ("Persona", "Programa"), [(person, "Salud") for person in PEOPLE])
