import re
from typing import Any

import pytest

from localidades_api.bulk.answers import match_row
from localidades_api.catalogue.columns import MATCHED, MATCHED_BY_DEFAULT
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.schemas import Match
from localidades_api.errors import UnreadableBodyError
from localidades_api.names.index import NameIndex
from tests.support.bulk import CSV, NDJSON, rows_in


def answer(index: NameIndex, body: str, kind: PlaceKind | None = None) -> dict[str, Any]:
    (row,) = rows_in(body.encode(), NDJSON if body.startswith("{") else CSV, kind=kind)
    found = match_row(row, index)
    Match.model_validate({"row": row.number, "sent": row.sent, **found}, strict=True)
    assert {"row", "sent", *found} == Match.model_fields.keys() - (set(MATCHED) - set(MATCHED_BY_DEFAULT))
    return dict(found)


def likeliest(found: dict[str, Any]) -> dict[str, Any]:
    """Return the place of an answer, or the first of its candidates."""
    return dict(found["candidates"][0]) if found["outcome"] == "ambiguous" else found


def test_certain_match_has_its_key_and_differences(index: NameIndex) -> None:
    found = answer(index, "localidad,nom_mun,edo\nFRONTERRA,CENTLA,TAB\n")
    (fault,) = found["faults"]
    assert fault == {"code": "spelling", "given": "fronterra", "found": "frontera", "penalty": fault["penalty"]}
    assert (found["outcome"], found["cvegeo"], found["id"]) == ("sure", "270030001", 270030001)
    assert (found["label"], found["candidates"]) == ("Frontera, Centla, Tabasco", [])
    assert 97 <= found["score"] < 100
    assert found["problem"] is None


def test_ambiguous_row_lists_candidates_by_likelihood(index: NameIndex) -> None:
    found = answer(index, '{"nombre": "El Colorado", "municipio": "Puerto Vallarta", "estado": "Jal."}')
    first = found["candidates"][0]
    assert found["outcome"] == "ambiguous"
    assert (found["score"], found["faults"]) == (first["score"], first["faults"])
    assert {found[name] for name in ("cvegeo", "id", "label", "nombre", "municipio", "estado")} == {None}
    assert {"140670020", "140670021"} <= {one["cvegeo"] for one in found["candidates"]}
    assert len(found["candidates"]) <= 5


def test_row_without_a_place_has_no_key(index: NameIndex) -> None:
    found = answer(index, "nombre,municipio,estado\nXochitepec,Centla,Tabasco\n")
    assert (found["outcome"], found["cvegeo"], found["score"], found["margin"]) == ("none", None, None, None)
    found = answer(index, "cvegeo\n270030099\n")
    assert (found["outcome"], found["withdrawn"]) == ("none", "270030099")
    assert answer(index, "Entidad,Municipio,Localidad\n14,39,9999\n")["outcome"] == "none"
    found = answer(index, "cvegeo\n180040112\n")  # a former key
    assert (found["cvegeo"], [fault["code"] for fault in found["faults"]]) == ("140670031", ["former_key"])


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("cvegeo\n50380001\n", "050380001"),
        ("cvegeo\n1.4067001E+08\n", "140670010"),  # no spreadsheet shows seven decimals of a rounded number
        ("cve_loc\n50380001\n", "050380001"),
        ("cve_ent,cve_mun,nom_loc\n14,39,Puente de Arcediano\n", "140390045"),
        ('{"cve_ent": 14, "cve_mun": 39.0, "cve_loc": 1}', "140390001"),
        ("nombre,cvegeo\nGuadalajara,ND\n", "140390001"),
        ("cve_ent,cve_mun,cve_loc,nom_loc\n14,67,21.0,El Colorado\n", "140670021"),
        ("cve_mun,cve_loc,nom_loc\n14067,21,El Colorado\n", "140670021"),
        ("cve_loc,nom_loc\n140670021,El Colorado\n", "140670021"),
        ("cvegeo,cve_loc,nom_loc\n14067,0021,El Colorado\n", "140670021"),
        ("municipio_id,clave,nombre\n14067,0021,El Colorado\n", "140670021"),
        ("municipio_id,nombre\n5038,Zaragoza\n", "050380001"),
        ("estado_id,municipio_id,clave\n5,38,1\n", "050380001"),
        ("cve_mun\n5038\n", "05038"),
        ("entidad,clave localidad\nJalisco,670021\n", "140670021"),
        # Digits in every column are claves.
        ("Entidad,Municipio,Localidad\n14,39,45\n", "140390045"),
        ("Municipio,Localidad\n14039,45\n", "140390045"),
        ("Entidad,Municipio,Localidad\nJalisco,14039,45\n", "140390045"),
        ('{"Entidad": 14, "Municipio": 39, "Localidad": 45}', "140390045"),
        ("cve_agee,cve_agem,cve_loc\n14,039,0045\n", "140390045"),
        ("ent_resid,mun_resid,loc_resid\n14,39,45\n", "140390045"),
        # Headers of registers.
        ("LOC.,MUNICIPIO DE RESIDENCIA,Entidad de residencia\nFrontera,Centla,Tabasco\n", "270030001"),
        ("Loc. de ocurrencia,CVE_MPO,Ent. ocurrencia\n0001,003,27\n", "270030001"),
        ("loc_res,mun_res,ent_res\nLa Estación,Centla,TAB\n", "270030012"),
        ("CLAVE,Municipio\n270030001,Centla\n", "270030001"),
        # Five digits below `Clave`, in a table without localities, or four without a zero, as the row's names decide.
        ("Clave,Municipio,Estado\n14039,Guadalajara,Jalisco\n", "14039"),
        ("CLAVE\n14067\n", "14067"),
        ("CLAVE,Municipio\n5038,Zaragoza\n", "05038"),
        ("Estado,CLAVE,Municipio\nCoah.,5038,Saragoza\n", "05038"),
        ("CLAVE\n5038\n", "05038"),
        ("CLAVE,Municipio\n0045,Guadalajara\n", "140390045"),
        ("CLAVE,Municipio\n0021,Puerto Vallarta\n", "140670021"),
        ("Estado,Clave\nTabasco,30001\n", "270030001"),
        ("Municipio,Estado,Clave Localidad\nCentla,Tabasco,30001\n", "270030001"),
        # The key of a municipio says which of two of one name, or one whose name is not known; not against the name.
        ("nom_ent,nom_mun,cve_mun,nom_loc\nOaxaca,San Juan Mixtepec,209,El Rosario\n", "202090002"),
        ("nom_ent,nom_mun,cve_mun,nom_loc\nOaxaca,Mixtepec bis,208,El Rosario\n", "202080002"),
        ("nom_ent,nom_mun,cve_mun,nom_loc\nJalisco,Guadalajara,067,Guadalajara\n", "140390001"),
    ],
)
def test_keys_are_read_as_spreadsheets_write_them(index: NameIndex, body: str, key: str) -> None:
    assert likeliest(answer(index, body))["cvegeo"] == key


@pytest.mark.parametrize(
    "body", ["CLAVE,Municipio\n5038,Guadalajara\n", "Estado,CLAVE,Municipio\nTabasco,5038,Zaragoza\n"]
)
def test_four_digits_are_a_clave_where_the_row_names_another_area(index: NameIndex, body: str) -> None:
    found = answer(index, body)
    assert "05038" not in {one["cvegeo"] for one in (found, *found["candidates"])}


OF_MUNICIPIO = "`cvegeo` has the key of its `municipio`; that of a locality has nine digits."


@pytest.mark.parametrize(
    ("body", "kind", "problem"),
    [
        ("nombre,estado\n  ,Jalisco\n", None, "Its `nombre` is empty, and it has no key to go by."),
        ("cvegeo\nA12\n", None, "`cvegeo` must be a key of nine digits at most; leave it empty to go by the name."),
        ("cvegeo\n1.4039E+08\n", None,
         "A spreadsheet has rounded `cvegeo`: format it as text there, and enter it again."),
        ("nombre,cvegeo\n,5038\n", None, OF_MUNICIPIO),
        ("nombre,cvegeo\n,14\n", None, "`cvegeo` has the key of its `estado`; that of a locality has nine digits."),
        ("municipio,estado\n,Jalisco\n", None, "Its `municipio` is empty, and it has no key to go by."),
        ("estado,nota\n,1\n", None, "Its `estado` is empty, and it has no key to go by."),
        ("cve_mun,cve_loc\n,0001\n", None,
         "Its `clave` is that of a place in a municipio: give the `municipio` as well."),
        ("cve_loc\n670021\n", None, "Its `clave` has the keys of a municipio and a place: give the `estado` as well."),
        ("municipio,cvegeo\nCentla,140390001\n", "municipio",
         "`cvegeo` must be the key of its `municipio`; leave it empty to go by the name."),
        ("estado,cvegeo\nTabasco,140\n", "estado",
         "`cvegeo` must be the key of its `estado`; leave it empty to go by the name."),
        ("cvegeo\n14039\n", "localidad", OF_MUNICIPIO),
        ("clave\n5039\n", None, "Its `clave` is that of a place in a municipio: give the `municipio` as well."),
        ("clave\n14039\n", "localidad",
         "Its `clave` has the keys of a municipio and a place: give the `estado` as well."),
    ],
)  # fmt: skip
def test_row_with_a_problem_has_no_key(index: NameIndex, body: str, kind: PlaceKind | None, problem: str) -> None:
    found = answer(index, body, kind)
    assert (found["outcome"], found["problem"]) == ("problem", problem)
    assert (found["cvegeo"], found["score"], found["faults"], found["candidates"]) == (None, None, [], [])


@pytest.mark.parametrize(
    ("latitud", "longitud", "why"),
    [
        ("pendiente", "-105.2", "`latitud` can't be read as degrees, such as 20.6736."),
        ("20.7", "-105.2 E", "`longitud` can't be read as degrees, such as 20.6736."),
        ("20.7", "", "`latitud` and `longitud` belong together: give both, or neither."),
        ("", "-105.2", "`latitud` and `longitud` belong together: give both, or neither."),
        ("-20.7", "105.2", "`latitud` and `longitud` are not in Mexico."),
        ("20.7", "1021799", "`longitud` must be decimal degrees from -180 to 180, such as 20.6736."),
        ("471234.5", "2289654.1", "`latitud` must be decimal degrees from -90 to 90, such as 20.6736."),
    ],
)
def test_row_with_an_unusable_point_is_matched_without_it(
    index: NameIndex, latitud: str, longitud: str, why: str
) -> None:
    found = answer(index, f"nombre,municipio,lat,lon\nIxtapa,Puerto Vallarta,{latitud},{longitud}\n")
    assert (found["outcome"], found["cvegeo"]) == ("exact", "140670010")
    assert found["problem"] == f"{why} The row was matched without its coordinates."


@pytest.mark.parametrize(
    ("body", "key", "note"),
    [
        ("cvegeo,nombre\n27004,Guadalajara\n", "270040052", "`municipio`, not of a locality: the row was matched by"),
        ("cvegeo,nombre,mun\n27004,Guadalajara,14039\n", "140390001", "`municipio`, not of a locality: it was left"),
        ("cvegeo,nombre\n27,Guadalajara\n", "270040052", "`estado`, not of a locality: the row was matched by its"),
    ],
)
def test_key_of_an_area_limits_the_search_for_the_name(index: NameIndex, body: str, key: str, note: str) -> None:
    found = answer(index, body)
    assert (found["outcome"], found["cvegeo"], found["faults"]) == ("exact", key, [])
    assert found["problem"].startswith(f"`cvegeo` has the key of its {note}")


@pytest.mark.parametrize(
    ("clave", "outcome", "key", "codes"),
    [
        ("0021", "exact", "140670021", []),  # of two places of the name
        ("20.0", "exact", "140670020", []),
        ("0010", "ambiguous", "140670020", ["key", "homonym"]),  # of a place with another name
        ("0777", "ambiguous", "140670020", ["unknown_key", "homonym"]),  # a register's own code
        ("A-12", "ambiguous", "140670020", ["homonym"]),
    ],
)
@pytest.mark.parametrize("header", ["clave", "id_localidad", "cve_loc"])
@pytest.mark.parametrize("municipio", ["Puerto Vallarta", "067"])
def test_clave_decides_between_places_of_the_name(
    index: NameIndex, municipio: str, header: str, clave: str, outcome: str, key: str, codes: list[str]
) -> None:
    found = answer(index, f"{header},nombre,municipio,estado\n{clave},El Colorado,{municipio},Jalisco\n")
    assert (found["outcome"], likeliest(found)["cvegeo"]) == (outcome, key)
    assert [fault["code"] for fault in found["faults"]] == codes


@pytest.mark.parametrize(
    "key",
    [
        "1.40390045E8", "1.40390045E+08", "140390045.00", '"140,390,045"', "140.390.045", "14-039-0045", "14/39/45",
        "14 039 0045", "'140390045", "\u200b140390045\ufeff", "１４０３９００４５", "140390045\N{NO-BREAK SPACE}",
        '"140390045,0"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("nombre", ["", "Puente de Arcediano"])
def test_key_that_has_lost_nothing_is_read(index: NameIndex, key: str, nombre: str) -> None:
    found = answer(index, f"cvegeo,nombre\n{key},{nombre}\n")
    assert (found["outcome"], found["cvegeo"], found["problem"]) == ("exact", "140390045", None)


@pytest.mark.parametrize(
    ("key", "note"),
    [
        ("1.40390E+08", "A spreadsheet has rounded `cvegeo`: the row was matched without it."),
        ("1.404E+04", "A spreadsheet has rounded `cvegeo`: the row was matched without it."),
        ("#REF!", "`cvegeo` is not a key: the row was matched without it."),
        ("12345678901234567890", "`cvegeo` is not a key: the row was matched without it."),
    ],
)
def test_row_whose_key_is_lost_is_matched_by_its_name(index: NameIndex, key: str, note: str) -> None:
    found = answer(index, f"nombre,municipio,cvegeo\nIxtapa,Puerto Vallarta,{key}\n")
    assert (found["outcome"], found["cvegeo"], found["problem"]) == ("exact", "140670010", note)
    area = answer(index, f"municipio,estado,cvegeo\nPuerto Vallarta,Jalisco,{key}\n", "municipio")
    assert (area["outcome"], area["cvegeo"], area["problem"]) == ("exact", "14067", note)


@pytest.mark.parametrize(
    ("ageb", "key"), [("140390001001A", "140390001"), ("1403900010019004", "140390001"), ("503800010101", "050380001")]
)
def test_key_of_an_ageb_or_a_block_is_that_of_its_locality(index: NameIndex, ageb: str, key: str) -> None:
    found = answer(index, f"cvegeo\n{ageb}\n")
    assert (found["outcome"], found["cvegeo"]) == ("exact", key)
    assert found["problem"] == "`cvegeo` has the key of an AGEB or a block: its locality's was used."
    other = answer(index, f"cvegeo,nombre,municipio\n{ageb},Ixtapa,Puerto Vallarta\n")
    assert {one["cvegeo"] for one in other["candidates"]} == {key, "140670010"}


def test_clave_that_is_not_a_key_is_left_out_with_a_note(index: NameIndex) -> None:
    found = answer(index, "cve_loc,nombre,municipio\nA-12,Ixtapa,Puerto Vallarta\n")
    assert (found["outcome"], likeliest(found)["cvegeo"]) == ("exact", "140670010")
    assert found["problem"] == "`clave` is not a key: the row was matched without it."


@pytest.mark.parametrize(
    ("body", "header"),
    [("Población,Estado\nIxtapa,Jalisco\n", "Población"),
     ("Sitio,c_Estado,Descripción\n01,JAL,Ixtapa\n", "Descripción"),
     ('{"Población": "Ixtapa", "Estado": "Jalisco"}', "Población")],
)  # fmt: skip
def test_list_of_places_is_not_taken_for_one_of_estados(index: NameIndex, body: str, header: str) -> None:
    sentence = (
        f"Only its estado was recognized. If `{header}` has the localities, say so with `nombre`; if the rows are about"
        " estados, with `kind=estado`."
    )
    if body.startswith("{"):
        assert answer(index, body)["problem"] == sentence
    else:
        with pytest.raises(UnreadableBodyError, match=re.escape(sentence)):
            answer(index, body)
    assert answer(index, body, "estado")["cvegeo"] == "14"


@pytest.mark.parametrize("beside", ["", "Población\n8348151", "Capital\nJalisco", "Folio\nA-12", "Fecha\n2026-01-01"])
def test_list_of_estados_may_have_other_columns(index: NameIndex, beside: str) -> None:
    header, _, value = beside.partition("\n")
    found = answer(index, f"Estado,{header or 'nota'}\nJalisco,{value}\n")
    assert (found["outcome"], found["cvegeo"]) == ("exact", "14")


@pytest.mark.parametrize(
    ("nombre", "problem"),
    [
        ("Tabasco", "Its `nombre` is that of an estado, and no locality has it."),
        ("Sin localidad", "Its name says that no place is given."),
        ("Xyzzy Qwert", None),
    ],
)
def test_name_without_a_place_is_explained(index: NameIndex, nombre: str, problem: str | None) -> None:
    found = answer(index, f"nombre\n{nombre}\n")
    assert (found["outcome"], found["problem"]) == ("none", problem)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("Total|Subtotal Centla|SUB-TOTAL|Total de Centla:|Gran total|Suma", "Its name is that of a total:"),
        ("Fuente: INEGI, 2020, Tabasco|NOTAS: Datos preliminares, a junio de 2026|Elaboró: J. Pérez", "It is a note"),
        ("la misma|Ídem|El mismo|la misma que arriba|〃", "Its name refers to another row:"),
        ("S/D|-|--|NS/NC|N.S./N.C.|No sabe / no contestó|...", "Its name says that no place is given."),
    ],
)
def test_row_of_no_place_leaves_no_doubt(index: NameIndex, texts: str, problem: str) -> None:
    for text in texts.split("|"):
        for body in (f'nombre\n"{text}"\n', f'nombre,municipio,estado\n"{text}",Centla,Tabasco\n'):
            found = answer(index, body)
            assert (found["outcome"], found["candidates"]) == ("none", [])
            assert found["problem"].startswith(problem)


@pytest.mark.parametrize(
    ("cells", "point"),
    [
        ("20°40'N,105°12'O", {"latitud": pytest.approx(20.6667, abs=1e-4), "longitud": -105.2}),
        ("-105.2,20.7", {"latitud": 20.7, "longitud": -105.2}),
        ("20.7,", None),
        ("48.85,2.35", None),
        (",", None),
    ],
)
def test_answer_has_the_point_of_its_row(index: NameIndex, cells: str, point: object) -> None:
    for nombre in ("Ixtapa", "Xyzzy Qwert"):
        assert answer(index, f"nombre,lat,lon\n{nombre},{cells}\n")["point"] == point


@pytest.mark.parametrize(
    ("cells", "problem"), [("Total,,", "Its name is that of a total:"), (",Nota: sin validar,", "It is a note")]
)
def test_row_of_no_place_may_say_so_in_the_column_of_an_area(index: NameIndex, cells: str, problem: str) -> None:
    found = answer(index, f"estado,municipio,nombre\n{cells}\n")
    assert (found["outcome"], found["problem"][: len(problem)]) == ("none", problem)


def test_row_reports_every_reinterpretation(index: NameIndex) -> None:
    found = answer(index, "cvegeo,nombre,lat,lon\n27004,Guadalajara,x,y\n")
    assert found["problem"] == (
        "`latitud` can't be read as degrees, such as 20.6736. The row was matched without its coordinates."
        " `cvegeo` has the key of its `municipio`, not of a locality: the row was matched by its name there."
    )


# -- Municipios and estados


@pytest.mark.parametrize(
    ("body", "kind", "outcome", "cvegeo", "label"),
    [
        ("municipio,estado\nGuadalajara,Jal.\n", None, "exact", "14039", "Guadalajara, Jalisco"),
        ("Entidad,Municipio\nTabasco,Mpio. de Centla\n", None, "sure", "27003", "Centla, Tabasco"),
        ("estado\nEdomex\n", None, "none", None, None),  # which this catalogue lacks
        ("cvegeo\n14039\n", None, "exact", "14039", "Guadalajara, Jalisco"),
        ("cvegeo\n5038\n", None, "exact", "05038", "Zaragoza, Coahuila de Zaragoza"),
        ("cvegeo\n9\n", None, "exact", "09", "Ciudad de México"),
        ("cvegeo\n140390001\n", None, "exact", "140390001", "Guadalajara, Guadalajara, Jalisco"),
        ("nombre,estado\nGuadalajara,Jalisco\n", "municipio", "exact", "14039", "Guadalajara, Jalisco"),
        ("nombre,municipio\nIxtapa,Puerto Vallarta\n", "municipio", "exact", "14067", "Puerto Vallarta, Jalisco"),
        ("nombre,estado\nIxtapa,Jalisco\n", "estado", "exact", "14", "Jalisco"),
        ("nombre\nJalisco\n", "estado", "exact", "14", "Jalisco"),
        ("cve_ent,cve_mun\n14,039\n", None, "exact", "14039", "Guadalajara, Jalisco"),
        ("cve_ent,cve_mun,nom_mun\n20,209,San Juan Mixtepec\n", None, "exact", "20209",
         "San Juan Mixtepec (209), Oaxaca"),
        ("nom_ent,cve_mun,nom_mun\nOaxaca,999,Oaxaca de Juarez\n", None, "exact", "20067", "Oaxaca de Juárez, Oaxaca"),
        ('{"municipio": "Guadalajara", "estado": 14}', None, "exact", "14039", "Guadalajara, Jalisco"),
    ],
)  # fmt: skip
def test_row_about_an_area_has_its_key(
    index: NameIndex, body: str, kind: PlaceKind | None, outcome: str, cvegeo: str | None, label: str | None
) -> None:
    found = answer(index, body, kind)
    assert (found["outcome"], likeliest(found)["cvegeo"], likeliest(found)["label"]) == (outcome, cvegeo, label)
    assert found["id"] == (int(cvegeo) if cvegeo else None)
    assert found["candidates"] == []


@pytest.mark.parametrize(
    ("body", "kind", "first", "codes"),
    [
        ("municipio,estado,cvegeo\nGuadalajara,Jal.,14067\n", "municipio", "14067", [["name"], ["key"]]),
        ("nom_ent,nom_mun,cve_mun\nOaxaca,Oaxaca de Juárez,413\n", None, "20413", [["name"], ["key"]]),
        ("municipio,estado\nSan Juan Mixtepec,Oaxaca\n", None, "20208", [[], []]),
        ("municipio,cvegeo\nAtlantis,14067\n", "municipio", "14067", [["name"]]),
        ("municipio,estado,cvegeo\nGuadalajara,Tabasco,14039\n", "municipio", "14039", [["estado"]]),
        ("municipio,estado,cvegeo\n,Atlantis,14039\n", "municipio", "14039", [["estado"]]),
        ("municipio,estado,cvegeo\nCentla,Tabasco,14039\n", "municipio", "14039", [["estado", "name"], ["key"]]),
        ("municipio,cve_mun,cvegeo\nGuadalajara,14067,14039\n", "municipio", "14039", [["key"]]),
    ],
)
def test_row_about_one_of_two_areas_is_ambiguous_and_its_key_comes_first(
    index: NameIndex, body: str, kind: PlaceKind | None, first: str, codes: list[list[str]]
) -> None:
    found = answer(index, body, kind)
    assert (found["outcome"], likeliest(found)["cvegeo"]) == ("ambiguous", first)
    assert [[fault["code"] for fault in one["faults"]] for one in found["candidates"]] == codes


def test_unknown_key_of_an_area_is_a_fault(index: NameIndex) -> None:
    found = answer(index, "municipio,estado,cvegeo\nGuadalajara,Jal.,14999\n", "municipio")
    assert (found["outcome"], found["cvegeo"]) == ("sure", "14039")
    assert [(fault["code"], fault["given"]) for fault in found["faults"]] == [("unknown_key", "14999")]
    assert answer(index, "cvegeo\n14999\n")["outcome"] == "none"


def test_table_about_a_kind_needs_its_columns() -> None:
    with pytest.raises(UnreadableBodyError, match="names no column for `nombre`, or `cvegeo`, or `clave`: begin"):
        rows_in(b"municipio,estado\nCentla,Tabasco\n", kind="localidad")
    with pytest.raises(UnreadableBodyError, match="names no column for `municipio`, or `nombre`, or `cvegeo`: begin"):
        rows_in(b"estado,x\nTabasco,1\n", kind="municipio")
