"""What rows become, and which are rejected or refuse the whole file."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.columns import ATTRIBUTES
from localidades_api.errors import CatalogueError
from localidades_api.importer.extract import read_table
from localidades_api.importer.transform import CatalogueRecords, Rejected, transform
from tests.support.catalogue import HEADER, TRAPS, Place, lines_of, many, read_catalogue, unwatched

WIDTH = f"the header has {len(HEADER)}"
PLAIN = tuple(Place(f"01001{number:04d}", f"Lugar {number}") for number in range(1, 21))
ROWS = [place.values() for place in PLAIN]
TOTAL = "it is a total of the census, not a locality"
NO_MATCH = "CVEGEO does not match CVE_ENT, CVE_MUN and CVE_LOC"
NAME = "a name is empty or longer than 200 characters"


def read_lines(lines: Iterable[str]) -> CatalogueRecords:
    return transform(read_table("AGEEML.csv", (f"{line}\n" for line in lines)), unwatched)


def read_places(*places: Place) -> CatalogueRecords:
    return read_lines(lines_of(place.values() for place in places))


def read_rows(*rows: Sequence[str]) -> CatalogueRecords:
    return read_lines(lines_of(rows))


def with_values(place: Place, **values: str) -> tuple[str, ...]:
    """Return a place's row with some values changed, each by its column's name."""
    row = dict(zip(HEADER, place.values(), strict=True)) | {name.replace("_0_", " "): v for name, v in values.items()}
    assert len(row) == len(HEADER)
    return tuple(row.values())


# -- Values


@pytest.mark.parametrize("no_data", ["-", "*", ""])
def test_unknown_value_is_none_and_a_position_needs_both_coordinates(no_data: str) -> None:
    unknown = dict.fromkeys((attribute.header for attribute in ATTRIBUTES.values()), no_data)
    [locality] = read_rows(with_values(PLAIN[0], **unknown)).localities
    assert locality == (10010001, 1001, "0001", "Lugar 1", *[None] * len(ATTRIBUTES))
    assert read_places(replace(PLAIN[0], nom_abr=no_data)).states[1].abreviatura is None
    for column in ("LAT_DECIMAL", "LON_DECIMAL"):
        half, whole = read_rows(with_values(PLAIN[0], **{column: no_data}), ROWS[1]).localities
        assert (half.latitud, half.longitud) == (None, None)
        assert (whole.latitud, whole.longitud) == (21.880833, -102.296111)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        *(("latitud", text, number) for text, number in (("90", 90), ("-90.000", -90), ("0", 0), ("021.5", 21.5))),
        *(("altitud", text, int(text)) for text in ("-12", "0", "-0", "0005", "5610")),
        *(("poblacion", text, int(text)) for text in ("0", "00", "123456789")),
        *(("nombre", text, text) for text in ("-", "*", " Lugar", "Lugar ", "A  B", "A\N{NO-BREAK SPACE}B", "x" * 200)),
    ],
)
def test_value_is_read(column: str, text: str, value: object) -> None:
    [locality] = read_places(replace(PLAIN[0], **{column: text})).localities
    assert getattr(locality, column) == value


CENSUS = ("CVE_ENT", "NOM_ENT", "CVE_MUN", "NOM_MUN", "CVE_LOC", "NOM_LOC", "LONGITUD", "LATITUD")


def test_position_in_degrees_minutes_and_seconds_is_read_or_its_row_rejected() -> None:
    points = [('102°17\'45.768"" W', '21°52\'47.362"" N'), ('102°17´45.768"W', '21°52´47.362"N')] * 10
    rows = [("01", "A", "001", "A", f"{number:04d}", "A", *point) for number, point in enumerate(points, 1)]
    bad = ("01", "A", "001", "A", "0021", "A", "to the west", "21°52'47\"N")
    catalogue = read_lines(lines_of([*rows, bad], CENSUS))
    assert {(locality.latitud, locality.longitud) for locality in catalogue.localities} == {(21.879823, -102.296047)}
    assert catalogue.rejected == [Rejected(22, "its longitud can't be read as degrees")]


# -- Rejected rows, each among enough good ones


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        *(({"CVE_ENT": text}, "CVE_ENT is not two digits") for text in ("1", "AG", "", "\u0660\u0661")),
        *(({"CVE_MUN": text}, "CVE_MUN is not three digits from 001") for text in ("1", "01", "000", "0001")),
        *(
            ({"CVE_LOC": text}, "CVE_LOC is not four digits from 0001")
            for text in ("21", "00021", "\u0660\u0660\u0662\u0661", "-021")
        ),
        ({"CVE_LOC": "0000"}, TOTAL),
        ({"CVE_LOC": "0000", "CVE_MUN": "000"}, TOTAL),
        ({"CVE_LOC": "0000", "CVE_MUN": "000", "CVE_ENT": "00"}, TOTAL),
        ({"CVE_LOC": "9998"}, "it sums up the localities of one dwelling, as the census does, and is not a locality"),
        ({"CVE_LOC": "9999"}, "it sums up the localities of two dwellings, as the census does, and is not a locality"),
        *(
            ({"CVEGEO": text}, NO_MATCH)
            for text in ("010010022", "10010021", "0100100210", "٠١٠٠١٠٠٢١", "１０010021", "-", "9" * 5_000)
        ),
        *(({"NOM_LOC": text}, NAME) for text in ("", "  ", "x" * 201)),
        ({"NOM_LOC": "a\0b"}, "a name contains a NUL character"),
        ({"NOM_MUN": "", "CVE_MUN": "009"}, NAME),
        ({"NOM_ENT": "", "CVE_ENT": "09"}, NAME),
        *(({"AMBITO": text}, "AMBITO is neither U nor R") for text in "Xu"),
        *(
            ({"LAT_DECIMAL": text}, "its latitud can't be read as degrees")
            for text in ("north", "90.1", "nan", "1_0", "٢١", "２１", "--1", "1.2.3", "21°60'00\" N")
        ),
        *(({"LON_DECIMAL": text}, "its longitud can't be read as degrees") for text in ("-180.5", "-inf")),
        *(
            ({"ALTITUD": text}, "ALTITUD is not a whole number")
            for text in ("high", "1.5", "--5", "9999999999", "\u0665")
        ),
        ({"POB_TOTAL": "many"}, "POB_TOTAL is not a whole number"),
        *(({column: "-5"}, f"{column} is negative") for column in ("POB_TOTAL", "POB_MASCULINA", "POB_FEMENINA")),
        ({"TOTAL_0_DE_0_VIVIENDAS_0_HABITADAS": "-5"}, "TOTAL DE VIVIENDAS HABITADAS is negative"),
        ({"Estatus": "Alta"}, "Estatus is neither empty nor Baja"),
    ],
)
def test_row_with_a_bad_value_is_rejected_with_its_line_and_reason(values: dict[str, str], reason: str) -> None:
    catalogue = read_rows(*ROWS[:7], with_values(Place("010010021", "Lugar 21"), **values), *ROWS[7:])
    assert catalogue.rejected == [Rejected(9, reason)]  # after the header and seven rows
    assert [locality.nombre for locality in catalogue.localities] == [place.nombre for place in PLAIN]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", f"it has 0 values, but {WIDTH}"),
        ("Fuente: INEGI. Marco Geoestadístico", f"it has 1 values, but {WIDTH}"),
        ('"Fuente: INEGI","2018"', f"it has 2 values, but {WIDTH}"),
        ("\x1a", f"it has 1 values, but {WIDTH}"),
        (",".join([""] * len(HEADER)), "CVE_LOC is not four digits from 0001"),
        ("x" * 200_000, f"it has 1 values, but {WIDTH}"),
    ],
    ids=lambda value: value[:20],
)
@pytest.mark.parametrize("end", ["\n", ""], ids=["ended", "not ended"])
def test_incomplete_last_line_is_rejected_alone(line: str, reason: str, end: str) -> None:
    lines = [*(f"{row}\n" for row in lines_of(ROWS)), line + end]
    catalogue = transform(read_table("AGEEML.csv", filter(None, lines)), unwatched)
    assert catalogue.rejected == ([Rejected(22, reason)] if line + end else [])
    assert len(catalogue.localities) == len(PLAIN)


SCATTERED = {  # by row: the first ones, neighbours, and both sides of the end of a batch of 250
    0: ({"AMBITO": "X"}, "AMBITO is neither U nor R"),
    1: ({"Estatus": "Baja"}, None),
    249: ({"CVE_LOC": "0000"}, TOTAL),
    250: ({"POB_TOTAL": "-5", "NOM_LOC": ""}, NAME),
    251: ({"POB_TOTAL": "-5"}, "POB_TOTAL is negative"),
    252: ({"POB_MASCULINA": "-5"}, "POB_MASCULINA is negative"),
    600: ({"Estatus": "Baja", "CVE_ENT": "99"}, None),
    998: ({"CVE_MUN": "000", "LAT_DECIMAL": "x"}, "CVE_MUN is not three digits from 001"),
    999: ({"LAT_DECIMAL": "x", "LON_DECIMAL": "y"}, "its latitud can't be read as degrees"),
}


def test_faults_across_batches_are_reported_in_order_with_their_lines() -> None:
    places = many(1_000)
    rows = [with_values(place, **SCATTERED.get(row, ({}, None))[0]) for row, place in enumerate(places)]
    catalogue = read_rows(*rows)
    assert catalogue.rejected == [Rejected(row + 2, reason) for row, (_, reason) in SCATTERED.items() if reason]
    assert catalogue.withdrawn == 2
    sound = {int(place.cvegeo) for row, place in enumerate(places) if row not in SCATTERED}
    assert {locality.id for locality in catalogue.localities} == sound
    rows[700] = with_values(places[700], CVE_ENT="33")
    with pytest.raises(CatalogueError, match="Line 702 names an unknown estado 33; estados go from 01 to 32"):
        read_rows(*rows)


def test_rows_of_another_width_are_rejected_alone() -> None:
    catalogue = read_rows(*ROWS[:5], (*ROWS[5], "more"), ROWS[6][:-1], *ROWS[7:])
    assert catalogue.rejected == [
        Rejected(7, f"it has {len(HEADER) + 1} values, but {WIDTH}"),
        Rejected(8, f"it has {len(HEADER) - 1} values, but {WIDTH}"),
    ]
    assert len(catalogue.localities) == 18


def test_up_to_a_tenth_of_bad_rows_is_tolerated_and_more_refuse_the_file() -> None:
    catalogue = read_rows(*ROWS[:9], ("junk",))
    assert (len(catalogue.localities), len(catalogue.rejected)) == (9, 1)
    with pytest.raises(CatalogueError, match=r"2 of 11 rows can't be read; the first is line 4: it has 1 values"):
        read_rows(*ROWS[:2], ("junk",), *ROWS[2:9], ("junk",))


# -- Withdrawn localities


@pytest.mark.parametrize("estatus", ["Baja", "baja", "BAJA", " Baja "])
def test_withdrawn_locality_is_counted_and_left_out_with_its_municipio(estatus: str) -> None:
    gone = Place("010990001", "Gone", estatus=estatus)
    catalogue = read_places(
        PLAIN[0], replace(PLAIN[1], estatus=estatus), PLAIN[2], replace(PLAIN[2], estatus=estatus), gone
    )
    assert [locality.nombre for locality in catalogue.localities] == ["Lugar 1", "Lugar 3"]
    assert (catalogue.withdrawn, catalogue.rejected, [*catalogue.municipalities]) == (3, [], [1001])
    with pytest.raises(CatalogueError, match="no localities"):
        read_places(gone)


def test_withdrawn_row_with_a_bad_key_is_counted() -> None:
    rows = [with_values(PLAIN[1], Estatus="Baja", CVE_ENT="XX", CVE_MUN="", CVE_LOC="-", CVEGEO="") for _ in range(9)]
    catalogue = read_rows(ROWS[0], *rows)
    assert (len(catalogue.localities), catalogue.withdrawn, catalogue.rejected) == (1, 9, [])


def test_empty_status_means_not_withdrawn() -> None:
    statuses = ("", "-", "*", " ")
    places = [replace(place, estatus=estatus) for place, estatus in zip(PLAIN, statuses, strict=False)]
    assert len(read_places(*places).localities) == len(statuses)


# -- Faults that refuse the whole file


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (replace(PLAIN[2], nombre="Another"), "key 010010003 appears twice in the file"),
        *(
            (Place(f"{clave}0010001", "Nowhere"), f"Line 22 names an unknown estado {clave}; estados go from 01 to 32")
            for clave in ("33", "00", "99")
        ),
        *(
            (replace(Place("010010021", "Lugar 21"), **{column: "Another"}),
             "Line 22 gives estado 01 or municipio 01001 another name")
            for column in ("nom_mun", "nom_ent", "nom_abr")
        ),
    ],
)  # fmt: skip
def test_fault_refuses_the_file(place: Place, sentence: str) -> None:
    with pytest.raises(CatalogueError, match=sentence):
        read_places(*PLAIN, place)


@given(st.permutations(many(60)))
def test_localities_are_ordered_by_clave_then_id(places: list[Place]) -> None:
    keys = [(locality.clave, locality.id) for locality in read_places(*places).localities]
    assert keys == sorted((place.cvegeo[5:], int(place.cvegeo)) for place in places)


# -- Cut short


THREE = (PLAIN[0], TRAPS[3], replace(TRAPS[5], viviendas="12"))


@pytest.mark.parametrize(
    ("encoding", "end", "separator"),
    [("utf-8-sig", "\r\n", ","), ("utf-8", "\n", "\t"), ("windows-1252", "\r\n", "\t")],
)
def test_truncated_file_is_refused_unless_every_row_is_complete(
    tmp_path: Path, encoding: str, end: str, separator: str
) -> None:
    """A cut between two rows can't be detected; any other must refuse the file, never silently change or drop a row."""
    lines = lines_of((place.values() for place in THREE), separator=separator)
    path = tmp_path / "AGEEML.csv"
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    whole, localities = path.read_bytes(), sorted(read_catalogue(path).localities)
    # A row is complete from its last quote until the next row begins.
    ends = [len("".join(line + end for line in lines[: rows + 1]).encode(encoding)) for rows in range(len(lines))]
    rows_at = {ends[rows] - back: rows for rows in range(1, len(lines)) for back in range(len(end) + 1)}
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            catalogue = read_catalogue(path)
        except CatalogueError:
            assert length not in rows_at
        else:
            assert sorted(catalogue.localities) == localities[: rows_at[length]]
            assert catalogue.rejected == []
    path.write_bytes(whole[:-20])
    with pytest.raises(CatalogueError, match="cut short: line 4, the last one, stops in the middle of a row"):
        read_catalogue(path)


def test_unquoted_file_truncated_in_its_last_number_is_refused() -> None:
    """Without a quote after it, 12 may have been 123."""
    header, text = ",".join(HEADER), io.StringIO()
    csv.writer(text, lineterminator="").writerow(replace(PLAIN[0], poblacion="9", viviendas="12").values())
    row = text.getvalue()
    assert len(transform(read_table("AGEEML.csv", [header, f"{row}\n"]), unwatched).localities) == 1
    for length in range(1, len(row)):
        with pytest.raises(CatalogueError):
            transform(read_table("AGEEML.csv", [header, f"{row}\n", row[:length]]), unwatched)


# -- Anything else in a file


_VALUE = st.text(max_size=12) | st.sampled_from(['"', '","', "\0", "-", "0001", "01", "9" * 20, "nan", "1_0", "Baja"])
_ROW = st.lists(_VALUE, min_size=len(HEADER), max_size=len(HEADER))


@given(st.lists(_ROW | st.lists(_VALUE, max_size=len(HEADER) + 2), max_size=2), st.data())
def test_arbitrary_row_is_read_or_rejected_or_refuses_the_file(rows: list[list[str]], data: st.DataObject) -> None:
    for row in rows:
        for column in data.draw(st.sets(st.integers(0, len(row) - 1))) if row else ():
            if column < len(HEADER):
                row[column] = Place("010010021", "Lugar 21").values()[column]
    try:
        catalogue = read_rows(*ROWS, *rows)
    except CatalogueError:
        return
    assert len(catalogue.localities) + len(catalogue.rejected) + catalogue.withdrawn >= len(PLAIN) + len(rows)
    for locality in catalogue.localities:
        municipality = catalogue.municipalities[locality.municipio_id]
        state = catalogue.states[municipality.estado_id]
        assert f"{locality.id:09d}" == state.clave + municipality.clave + locality.clave
        assert "\0" not in "".join(value for value in locality if isinstance(value, str))
