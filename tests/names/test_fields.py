"""Columns of places and areas, read from the index by key."""

from collections.abc import Callable

import pytest

from localidades_api.catalogue.columns import MATCHED
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from tests.support.names import place

CENTRO = ("Centro", "Tabasco")


@pytest.mark.parametrize(
    ("id_", "known"),
    [
        (5038, {"nombre": "Zaragoza", "municipio": "Zaragoza", "cve_mun": "038", "cvegeo_mun": "05038",
                "estado": "Coahuila de Zaragoza", "cve_ent": "05", "poblacion": 12_702, "localidades": 2}),
        (9, {"nombre": "Ciudad de México", "estado": "Ciudad de México", "cve_ent": "09", "poblacion": 1_835_486,
             "localidades": 1}),
    ],
)  # fmt: skip
def test_areas_have_their_names_keys_and_totals(index: NameIndex, id_: int, known: dict[str, object]) -> None:
    assert read_fields(index, id_, MATCHED) == {**dict.fromkeys(MATCHED), **known}


def test_population_of_an_area_is_unknown_if_that_of_its_localities_is(index_of: Callable[..., NameIndex]) -> None:
    one, other = place(270040002, "Uno", *CENTRO), place(270040003, "Dos", *CENTRO)
    for second, population in ((other, None), (other._replace(poblacion=0), 0), (other._replace(poblacion=7), 7)):
        for id_ in (27, 27004):
            found = read_fields(index_of(one, second), id_, ["poblacion", "localidades"])
            assert found == {"poblacion": population, "localidades": 2}


@pytest.mark.parametrize("number", [0, -1, 1, 4_000, -(10**9) + 1, 10**9 - 1])
def test_numbers_at_the_bounds_of_an_import_are_kept(index_of: Callable[..., NameIndex], number: int) -> None:
    """An altitude may be below the sea; the least sum and altitude are not taken for an unknown one."""
    count = abs(number)
    known = place(270040002, "Uno", *CENTRO, count)._replace(altitud=number, viviendas=count)
    index = index_of(known, place(270040003, "Dos", *CENTRO)._replace(ambito=None))
    numbers = ["poblacion", "altitud", "viviendas"]
    assert read_fields(index, 270040002, numbers) == {"poblacion": count, "altitud": number, "viviendas": count}
    assert set(read_fields(index, 270040003, [*numbers, "ambito", "latitud", "longitud"]).values()) == {None}


def test_coordinates_are_written_as_in_the_list(index_of: Callable[..., NameIndex]) -> None:
    """Postgres writes whole degrees without a fraction."""
    index = index_of(place(270040002, "Uno", *CENTRO)._replace(latitud=21.0, longitud=-102.000001))
    assert str(read_fields(index, 270040002, ["latitud", "longitud"])) == "{'latitud': 21, 'longitud': -102.000001}"


def test_key_that_another_place_had_before_leads_to_the_place_that_has_it_now(
    index_of: Callable[..., NameIndex],
) -> None:
    large = place(270040003, "Grande", *CENTRO, 9000, former=(Former("Viejo", "Centro", 270040002),))
    assert read_fields(index_of(large, place(270040002, "Chico", *CENTRO, 1)), 270040002, ["nombre"]) == {
        "nombre": "Chico"
    }


@pytest.mark.parametrize("id_", [270030099, 180040112, 140399999, 14999, 32], ids=lambda id_: f"key {id_}")
def test_key_that_the_release_lacks_is_refused(index: NameIndex, id_: int) -> None:
    """Neither a withdrawn nor a former key is one of the release."""
    with pytest.raises(KeyError, match=str(id_)):
        read_fields(index, id_, MATCHED)
