import io
import json
import re
import tracemalloc
from time import process_time
from typing import Any

import pytest

from localidades_api.bulk.answers import describe_problem
from localidades_api.bulk.columns import Reading
from localidades_api.bulk.formats import MediaType, reader
from localidades_api.bulk.readers import CsvReader, for_a_while
from localidades_api.bulk.roles import ROLES
from localidades_api.bulk.writers import writer
from localidades_api.errors import UnreadableBodyError
from localidades_api.names.places import MAX_TEXT
from tests.support.bulk import CSV, JSON, NDJSON, open_rows, rows_in


def cells_of(data: bytes, *, header_row: int | None = None, **named: str) -> list[dict[str, str | float | None]]:
    rows = rows_in(data, named=named, header_row=header_row)
    assert [row.problem for row in rows] == [None] * len(rows)
    return [dict(row.cells) for row in rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_delimiter_and_line_ending_is_recognized(delimiter: str, end: str) -> None:
    data = end.join(map(delimiter.join, [["nombre", "estado"], ["El Peñón", "Jal."], ["Ixtapa", ""]]))
    for body in (data, data + end):
        assert cells_of(body.encode()) == [
            {"nombre": "El Peñón", "estado": "Jal."}, {"nombre": "Ixtapa", "estado": None}
        ]  # fmt: skip


def test_lines_that_are_not_utf8_are_read_as_windows_1252() -> None:
    source = open_rows("nombre,estado\nPeñón,Jalisco\n".encode("cp1252") + "Peñón,México\n".encode())
    assert [row.cells["nombre"] for row in source] == ["Peñón", "Peñón"]
    assert not source.layout.is_utf8


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("NOM_LOC", "nombre"), ("Localidad", "nombre"), ("Nombre de la localidad", "nombre"), ("Población", None),
        ("MUNICIPIO", "municipio"), ("Nom_Mun", "municipio"), ("CVE_MUN", "municipio"), ("Alcaldía", "municipio"),
        ("Entidad federativa", "estado"), ("NOM_ENT", "estado"), ("cve_ent", "estado"), ("Edo.", "estado"),
        ("Latitud", "latitud"), ("LAT_DECIMAL", "latitud"), ("lat", "latitud"), ("y", "latitud"),
        ("LON_DECIMAL", "longitud"), ("lng", "longitud"), ("CVEGEO", "cvegeo"), ("MAPA", "cvegeo"),
        ("Cve_Loc", "clave"), ("Clave", "clave"), ("folio", None), ("ciudad_o_localidad", "nombre"),
        ("Localidad/Colonia", "nombre"), ("Localidad o colonia", "nombre"), ("NB_LOCALIDAD", "nombre"),
        ("Nombre del municipio o delegación", "municipio"), ("NB_MUNICIPIO", "municipio"), ("D_mnpio", "municipio"),
        ("Clave de la Entidad Federativa", "estado"), ("d_estado", "estado"), ("LOC", "clave"), ("NOMBRELOC", "nombre"),
        ("cve_agee", "estado"), ("nom_agee", "estado"), ("nom_agem", "municipio"), ("ent_resid", "estado"),
        ("loc_resid", "clave"), ("C_NOM_LOC", "nombre"), ("1. Localidad", "nombre"), ("3) Estado", "estado"),
        ("nombreLocalidad", "nombre"), ("NombreDelMunicipio", "municipio"), ("Estado (requerido)", "estado"),
        ("* Localidad [texto]", "nombre"), ("txtMunicipio", "municipio"), ("Localidad*", "nombre"),
        ("Clave (SEP)", None), ("c_Localidad", None), ("Nombre (tutor)", None), ("2. Nombre", None),
        ("Clave INEGI (CVEGEO)", None), ("Estado (2)", None), ("Municipio (obligatorio)", "municipio"),
    ],
)  # fmt: skip
def test_common_headers_are_recognized(header: str, role: str | None) -> None:
    first, other = (
        "cvegeo" if role == "nombre" else "nombre",
        {"latitud": "Lon", "longitud": "Lat"}.get(role or "", "nota"),
    )
    (row,) = rows_in(f"{first};{header};{other}\n1;2;3\n".encode())
    assert row.cells.get(role or "") in {"2", 2.0, None}
    assert (role in row.cells) == (role is not None)
    assert len(row.cells) == 1 + (role is not None) + (other != "nota")


@pytest.mark.parametrize(
    ("body", "cells"),
    [
        (b"nombre,x\nIxtapa,si\n", {"nombre": "Ixtapa"}),  # no longitude without a latitude
        (b"CVE_ENT,NOM_ENT,CVE_MUN,NOM_MUN,CVE_LOC,NOM_LOC\n14,Jalisco,039,Guadalajara,0001,Guadalajara\n",
         {"nombre": "Guadalajara", "municipio": "Guadalajara", "estado": "Jalisco", "cve_mun": "039", "clave": "0001"}),
        (b"Localidad (opcional),Localidad,Estado (requerido),ESTADO *\nA,B,C,D\n", {"nombre": "B", "estado": "D"}),
        (b'nombre;mun;cvegeo;lat;lon\n ;39.0;140390001.0;"20,67";1.033E+02\n',  # without its minus
         {"nombre": None, "municipio": "39", "cvegeo": "140390001", "latitud": 20.67, "longitud": -103.3}),
        (b"cvegeo,lat,lon\nN/D,NULL,-\n", {"cvegeo": None, "latitud": None, "longitud": None}),
        # The download for Excel, and keys with an apostrophe.
        (b'\xef\xbb\xbfcvegeo,clave,nombre,estado_id\r\n="010010001",="0001","Aguascalientes",="01"\r\n',
         {"cvegeo": "010010001", "clave": "0001", "nombre": "Aguascalientes", "estado": "01"}),
        (b"cvegeo,mun\n'010010001,'01001\n", {"cvegeo": "010010001", "municipio": "01001"}),
        (b"nota,nombre,nota,NOMBRE DEL CENTRO\na,Ixtapa,b,c\n", {"nombre": "Ixtapa"}),
    ],
)  # fmt: skip
def test_cells_are_read_as_programs_write_them(body: bytes, cells: dict[str, object]) -> None:
    assert cells_of(body) == [cells]


def test_named_columns_are_not_guessed() -> None:
    body = b"Nombre,Lugar del evento,Localidad\nAna,Ixtapa,Otra\n"
    assert cells_of(body)[0]["nombre"] == "Otra"
    assert cells_of(body, nombre="Lugar del evento")[0]["nombre"] == "Ixtapa"
    assert cells_of(body, nombre="lugar DEL evento")[0]["nombre"] == "Ixtapa"


def test_municipio_of_all_rows_is_none_of_rows_about_municipios() -> None:
    roles, _ = ROLES.with_areas({"municipio": "Centla"}, None)
    (row,) = rows_in(b"municipio,estado\n,Tabasco\n", roles=roles)
    assert row.cells == {"municipio": None, "estado": "Tabasco"}


def test_bad_row_does_not_affect_the_others() -> None:
    rows = rows_in("nombre,lat,lon\nFrontera,18,-92\nIxtapa,20,-105,más,y más\nIxtapa,20,-105\n".encode())
    assert [row.problem is None for row in rows] == [True, False, True]
    assert "It has 5 cells and the header 3" in (rows[1].problem or "")
    assert rows[1].sent == ["Ixtapa", "20", "-105", "más", "y más"]


def test_inegi_census_file_is_read() -> None:
    header = "ENTIDAD,NOM_ENT,MUN,NOM_MUN,LOC,NOM_LOC,LONGITUD,LATITUD,ALTITUD,POBTOT\r\n"
    lines = [
        '14,Jalisco,067,Puerto Vallarta,0010,Ixtapa,"105°12\'21.768"" W","20°43\'07.362"" N",0015,29019\r\n',
        "14,Jalisco,067,Puerto Vallarta,0010,Ixtapa,1051222,204307,15,29019\r\n",
    ]
    for row in cells_of((header + "".join(lines)).encode()):
        assert row["nombre"] == "Ixtapa"
        assert row["longitud"] == pytest.approx(-105.20606, abs=1e-3)
        assert row["latitud"] == pytest.approx(20.71871, abs=1e-3)


def test_of_a_very_long_cell_the_beginning_is_read_and_everything_sent_back() -> None:
    for cell in ("x" * 200_000, "x\n" * 300_000, " " * 100_000 + "x" * 200_000):
        (row,) = rows_in(f'nombre,estado\n"{cell}",Jal.\n'.encode())
        assert (row.problem, row.sent) == (None, [cell, "Jal."])
        assert row.cells == {"nombre": cell.strip()[:MAX_TEXT].strip(), "estado": "Jal."}


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"nombre" + b",x" * 16_000 + b"\nIxtapa\n", CSV),
        (("nombre," + "\N{CJK UNIFIED IDEOGRAPH-7530}" * 300_000 + "\nIxtapa\n").encode(), CSV),
        (json.dumps({"nombre": "Ixtapa"} | dict.fromkeys(map(str, range(16_000)), 1)).encode(), NDJSON),
        (b'{"rows":[' + b'{"nombre":"Ixtapa"},' * 20_000 + b'{"nombre":"Ixtapa"}]}', JSON),
    ],
    ids=["equal headers", "a header in Chinese", "many members", "many rows"],
)
def test_time_is_in_proportion_to_the_length_of_a_body(body: bytes, media_type: MediaType) -> None:
    began = process_time()
    source = open_rows(body, media_type)
    source.describe(list(source))
    assert process_time() - began < 2


def test_row_has_no_more_cells_than_a_sheet() -> None:
    with pytest.raises(UnreadableBodyError, match=re.escape("Line 3 has more than 16,384 cells.")):
        rows_in(b"nombre\nIxtapa\n" + b"," * 17_000 + b"\n")
    (row,) = rows_in(json.dumps(dict.fromkeys(map(str, range(17_000)), 1)).encode(), NDJSON)
    assert row.problem == "It has more than 16,384 members."


def test_column_that_is_used_may_not_be_repeated() -> None:
    body = b"Nombre,nombre,NOMBRE\nAna,Ixtapa,x\n"
    assert cells_of(body, nombre="nombre") == [{"nombre": "Ixtapa"}]  # the only one that is written so
    with pytest.raises(UnreadableBodyError, match="the column `Nombre` twice"):
        rows_in(body)


@pytest.mark.parametrize(("media_type", "rows"), [(CSV, (b"nombre\nx\n", b"y\n")), (NDJSON, (b"1\n", b"2\n"))])
def test_many_empty_lines_are_read_fast(media_type: MediaType, rows: tuple[bytes, bytes]) -> None:
    source = reader(media_type, io.BytesIO((b"\n" * 300_000).join([*rows, b""])), Reading(ROLES))
    assert sum(1 for _ in source.check()) > 2
    assert source.count == 2
    coming, found, slices = source.rows(), 0, 0
    while found < source.count:
        found, slices = found + len(list(for_a_while(coming))), slices + 1
    assert slices > 2


def test_missing_cells_are_empty_and_extra_empty_cells_are_ignored() -> None:
    assert [row.sent for row in rows_in(b"nombre,estado\nIxtapa\n\nx,y,,\n\n\n")] == [["Ixtapa", ""], ["x", "y"]]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "The file is empty: begin it with a line such as `nombre,municipio,estado`"),
        (b"\n" * 1_000_000 + b"nombre\n", "The file is empty"),
        (b"\xef\xbb\xbf", "The file is empty"),
        (b"Guadalajara,14\nIxtapa,14\n", "The first line names no column for `nombre`"),
        (b"a;b;c;d\n",
         "The first line names no column for `nombre`, or `cvegeo`, or `clave`, or `municipio`, or `estado`: begin"),
        (b"sitio,nota\nTequila,Jalisco\n", "The first line names no column"),
        (b"1,2,x,Jalisco\n", "The first line names no column"),
        (b'nombre,estado\nx,y\n"Ixtapa,Jal.\nz,w\n', "A quote in line 3 is never closed"),
        (b'nombre\n"' + b"x\n" * 600_000 + b'"\n', "A quote in line 2 is not closed within 1 MB: close it"),
        (b"Localidad,folio,localidad\nx,1,y\n", "The first line has the column `Localidad` twice: rename or remove"),
        (b'nombre\nx\n\ny\n"z\n' + b'","\n' * 400_000, "A quote in line 5 is not closed within 1 MB"),
        (b"nombre\nx\n" + "\u00f1".encode() * 1_100_000, "A line is longer than 1 MB"),
        (b"nombre" + b"," * 16_384, "The first line has more than 16,384 columns"),
        ("nombre\n".encode("utf-16-le") + b"x", "The file is not text, or is UTF-16"),
        ("<html>".encode("utf-16"), "The file is a web page"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "The file is a picture"),
        (b"MIME-Version: 1.0\r\nX-Document-Type: Workbook\r\n", "The file is a web page"),
        (b"PK\x03\x04" + b"\0" * 20, "The workbook can't be read: save it as .xlsx"),
        (b"\x1f\x8b\x08" + bytes(range(256)), "The file is compressed: unpack it first."),
    ],
)  # fmt: skip
def test_unreadable_file_is_explained(body: bytes, sentence: str) -> None:
    with pytest.raises(UnreadableBodyError) as caught:
        open_rows(body)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_unicode_text_of_excel_is_read_and_answered_as_utf8(encoding: str) -> None:
    text = '\N{ZERO WIDTH NO-BREAK SPACE}Localidad\tEstado\r\n"Peñón, El"\tJal.\r\nĊelaya\tGto.\r\n'
    source = open_rows(text.removeprefix("\ufeff" if encoding == "utf-16" else "").encode(encoding) + b"\xd8")
    first, second, *_ = source
    assert first.cells == {"nombre": "Peñón, El", "estado": "Jal."}
    assert second.cells == {"nombre": "Ċelaya", "estado": "Gto."}  # U+010A has the byte of a line end
    assert (source.layout.delimiter, source.layout.line_end, source.layout.has_bom) == ("\t", "\r\n", True)


# -- Without a header


@pytest.mark.parametrize(
    ("body", "cells"),
    [
        (b"Tequila\nZapopan\n", [{"nombre": "Tequila"}, {"nombre": "Zapopan"}]),
        (b"Tequila, Jal.\nSan Pedro, Tlaquepaque, Jalisco\n\nZapopan\n",
         [{"nombre": "Tequila, Jal."}, {"nombre": "San Pedro, Tlaquepaque, Jalisco"}, {"nombre": "Zapopan"}]),
        (b"El Fuerte, Sin\n", [{"nombre": "El Fuerte, Sin"}]),
        (b"El Fuerte\tSin\nLa Paz\tBCS\n",
         [{"nombre": "El Fuerte", "estado": "Sin"}, {"nombre": "La Paz", "estado": "BCS"}]),
        (b"Ixtapa;Puerto Vallarta;JALISCO\n",
         [{"nombre": "Ixtapa", "municipio": "Puerto Vallarta", "estado": "JALISCO"}]),
        (b'"Fuerte, El",Sin\n', [{"nombre": "Fuerte, El", "estado": "Sin"}]),
        (b"\xef\xbb\xbfTequila\r\n", [{"nombre": "Tequila"}]),
    ],
)  # fmt: skip
def test_list_without_a_header_is_one_of_places(body: bytes, cells: list[dict[str, str]]) -> None:
    source = open_rows(body)
    assert isinstance(source, CsvReader)
    assert not source.has_header
    assert [row.cells for row in source] == cells
    assert [row.number for row in source] == [number for number, line in enumerate(body.splitlines(), 1) if line]
    assert source.count == len(cells)
    assert source.layout.columns == [*cells[0]]


@pytest.mark.parametrize(
    ("body", "named", "cells"),
    [
        (b"Tequila;Tequila\n", {}, [{"nombre": "Tequila", "municipio": "Tequila"}]),
        (b"Ixtapa;Puerto Vallarta;x\n", {}, [{"nombre": "Ixtapa", "municipio": "Puerto Vallarta", "estado": "x"}]),
        (b"7,Tequila,x,Jal.\n", {"nombre": "2", "estado": "4"}, [{"nombre": "Tequila", "estado": "Jal."}]),
        (b"nombre,estado\nIxtapa,14\n", {}, [{"nombre": "nombre,estado"}, {"nombre": "Ixtapa,14"}]),
    ],
)
def test_columns_without_a_header_are_named_by_their_numbers(
    body: bytes, named: dict[str, str], cells: list[dict[str, str]]
) -> None:
    assert [row.cells for row in rows_in(body, named=named, header_row=0)] == cells
    if named:
        assert open_rows(body, named=named, header_row=0).layout.columns == ["", "nombre", "", "estado"]


@pytest.mark.parametrize(
    ("body", "media_type", "options", "sentence"),
    [
        *((b"7,Tequila,x\n", CSV, {"header_row": 0, "named": {"nombre": number}},
           "Without a header, name columns by their numbers, from 1 to 3.") for number in "04x\u00b2"),
        (b"7,Tequila,x,Jal.\n", CSV, {"header_row": 0},
         "The file has 4 columns and no header: say the number of each"),
        (b"{}", NDJSON, {"header_row": 0}, "Only CSV and workbooks have a header: leave out `header_row`."),
        (b"nombre\nx\n", CSV, {"header_row": 2}, "Only a workbook (.xlsx) may have rows above its header"),
        (b"Tequila, Jal.\n", CSV, {"header_row": 1}, "The first line names no column"),
        # A header is not echoed.
        (b"sitio\nTequila\n", CSV, {"header_row": 1, "named": {"nombre": "lugar"}},
         "The first line does not have the header that was named for `nombre`."),
    ],
)  # fmt: skip
def test_header_that_is_not_as_it_was_said_is_explained(
    body: bytes, media_type: MediaType, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UnreadableBodyError) as caught:
        open_rows(body, media_type, **options)
    assert str(caught.value).startswith(sentence)


def test_column_alone_has_names_whatever_it_is_called() -> None:
    assert cells_of(b"sitio\nTequila\n", header_row=1) == [{"nombre": "Tequila"}]
    assert cells_of(b"cvegeo\n140390001\n", header_row=1) == [{"cvegeo": "140390001"}]


# -- Files of any length are read in constant memory

ROWS = 100_000


@pytest.mark.tail
@pytest.mark.parametrize("media_type", [CSV, NDJSON, JSON])
def test_memory_does_not_grow_with_rows(media_type: MediaType) -> None:
    row = json.dumps({"nombre": "El Peñón [Rancho]", "municipio": "Guadalajara", "estado": "Jalisco", "folio": 7})
    body = {
        CSV: "nombre,municipio,estado,folio\n" + '"El Peñón [Rancho]","Guadala\njara",Jalisco,7\n' * ROWS,
        NDJSON: f"{row}\n" * ROWS,
        JSON: f'{{"rows": [{", ".join([row] * ROWS)}]}}',
    }[media_type].encode()
    answer = describe_problem("It has no answer.")
    tracemalloc.start()
    try:
        source = open_rows(body, media_type)
        target = writer(media_type, source)
        written = len(target.begin()) + sum(len(target.write(row, answer)) for row in source)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written > 60 * ROWS
    assert peak < 12 * 1024**2
