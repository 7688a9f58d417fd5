"""Columns of places and areas, read from the index by key."""

from pathlib import Path

import pytest

from localidades_api.catalogue.columns import COLUMNS, MATCHED, MATCHED_BY_DEFAULT
from localidades_api.names.build import build_index
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former, IndexedPlace
from tests.support.names import ESTADOS, MUNICIPIOS, PLACES


def test_default_fields_can_be_requested_and_are_columns_of_the_catalogue() -> None:
    assert set(MATCHED_BY_DEFAULT) < set(MATCHED) < set(COLUMNS)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.id))
def test_locality_has_every_field(index: NameIndex, place: IndexedPlace) -> None:
    key = f"{place.id:09d}"
    assert list(read_fields(index, place.id, MATCHED).items()) == [
        ("nombre", place.nombre),
        ("municipio", place.municipio),
        ("estado", place.estado),
        ("clave", key[5:]),
        ("cve_ent", key[:2]),
        ("cve_mun", key[2:5]),
        ("cvegeo_mun", key[:5]),
        ("ambito", place.ambito),
        ("latitud", place.latitud),
        ("longitud", place.longitud),
        ("altitud", place.altitud),
        ("poblacion", place.poblacion),
        ("viviendas", place.viviendas),
    ]


@pytest.mark.parametrize(("id_", "nombre"), MUNICIPIOS.items())
def test_municipio_has_the_fields_of_an_area(index: NameIndex, id_: int, nombre: str) -> None:
    key = f"{id_:05d}"
    known = {
        "nombre": nombre, "municipio": nombre, "estado": ESTADOS[id_ // 1000],
        "cve_ent": key[:2], "cve_mun": key[2:], "cvegeo_mun": key,
    }  # fmt: skip
    assert read_fields(index, id_, MATCHED) == {**dict.fromkeys(MATCHED), **known}


@pytest.mark.parametrize(("id_", "nombre"), ESTADOS.items())
def test_estado_has_its_name_and_key(index: NameIndex, id_: int, nombre: str) -> None:
    known = {"nombre": nombre, "estado": nombre, "cve_ent": f"{id_:02d}"}
    assert read_fields(index, id_, MATCHED) == {**dict.fromkeys(MATCHED), **known}


def test_only_the_requested_fields_are_returned_in_their_order(index: NameIndex) -> None:
    assert list(read_fields(index, 140390001, ["viviendas", "nombre"])) == ["viviendas", "nombre"]
    assert read_fields(index, 14039, ["viviendas", "nombre"]) == {"viviendas": None, "nombre": "Guadalajara"}
    assert read_fields(index, 140390001, ()) == {}


@pytest.mark.parametrize("number", [0, -1, 1, 4_000, -(10**9) + 1, 10**9 - 1])
def test_numbers_at_the_bounds_of_an_import_are_kept(tmp_path: Path, number: int) -> None:
    """An altitude may be below the sea; the least sum and altitude are not taken for an unknown one."""
    count = abs(number)
    place = IndexedPlace(
        140390001, "Uno", 14039, "Dos", 14, "Tres", poblacion=count, altitud=number, viviendas=count,
        latitud=21.0, longitud=-102.000001,
    )  # fmt: skip
    unknown = IndexedPlace(140390002, "Dos", 14039, "Dos", 14, "Tres")  # with a flag for the name
    build_index(tmp_path / "names", [place, unknown])
    index = NameIndex(tmp_path / "names")
    numbers = ["poblacion", "altitud", "viviendas"]
    assert read_fields(index, 140390001, numbers) == {"poblacion": count, "altitud": number, "viviendas": count}
    assert set(read_fields(index, 140390002, [*numbers, "ambito", "latitud", "longitud"]).values()) == {None}
    index.close()


def test_degrees_are_written_as_in_the_list(tmp_path: Path) -> None:
    """Postgres writes whole degrees without a fraction."""
    place = IndexedPlace(140390001, "Uno", 14039, "Dos", 14, "Tres", latitud=21.0, longitud=-102.000001)
    build_index(tmp_path / "names", [place])
    index = NameIndex(tmp_path / "names")
    assert str(read_fields(index, 140390001, ["latitud", "longitud"])) == "{'latitud': 21, 'longitud': -102.000001}"
    index.close()


def test_key_that_another_place_had_before_leads_to_the_place_that_has_it_now(tmp_path: Path) -> None:
    before = (Former("Viejo", "Dos", 140390001),)
    places = [
        IndexedPlace(140390002, "Grande", 14039, "Dos", 14, "Tres", poblacion=9000, former=before),
        IndexedPlace(140390001, "Chico", 14039, "Dos", 14, "Tres", poblacion=1),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert read_fields(index, 140390001, ["nombre"]) == {"nombre": "Chico"}
    index.close()


@pytest.mark.parametrize("id_", [270030099, 180040112, 140399999, 14999, 32], ids=lambda id_: f"key {id_}")
def test_key_that_the_release_lacks_is_refused(index: NameIndex, id_: int) -> None:
    """Neither a withdrawn nor a former key is one of the release."""
    with pytest.raises(KeyError, match=str(id_)):
        read_fields(index, id_, MATCHED)
