"""What earlier releases called the places of a release."""

from types import SimpleNamespace

import pytest

from localidades_api.names.files.history import Areas, History

AREAS = Areas({1: "Aguascalientes"}, {1001: ("Aguascalientes", 1)})
MUNICIPIOS = [SimpleNamespace(id=1001, nombre="Aguascalientes")]


def place(id_: int) -> SimpleNamespace:
    rest = dict.fromkeys(("ambito", "poblacion", "altitud", "viviendas"))
    where = {"municipio_id": 1001, "clave": f"{id_ % 10_000:04d}", "latitud": 21.5, "longitud": -102.5}
    return SimpleNamespace(id=id_, nombre="El Refugio", **where, **rest)


@pytest.mark.parametrize(
    ("now", "former", "withdrawn"),
    [([10010002], [10010001], []), ([10010002, 10010003], [], [10010001]), ([10010001, 10010002], [], [])],
)
def test_withdrawn_key_leads_to_the_only_new_place_of_its_name_and_point(
    now: list[int], former: list[int], withdrawn: list[int]
) -> None:
    history = History([place(id_) for id_ in now], AREAS)
    history.add([place(10010001)], MUNICIPIOS)
    assert [one.id for found in history.places() for one in found.former] == former
    assert [one.id for one in history.withdrawn()] == withdrawn
