"""Real names, changed in many ways: no table of examples finds a kind of mistake.

Those of Hidalgo in `make test`, those of the whole country each night.
"""

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from rapidfuzz.distance import OSA

from benchmarks.kinds import KINDS, Changer, Kind
from benchmarks.names import places_of, read_catalogue, withdrawn_of
from localidades_api.catalogue.folding import fold
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace
from localidades_api.names.rows import MatchResult, MatchRow
from tests.support.names import HIDALGO

MAX_WRONG = 0.005  # of the rows of a kind
ELSEWHERE = 1.0  # degrees, some 100 km


class Country(NamedTuple):
    """Places, their index, and how many rows of a kind are tried."""

    places: list[IndexedPlace]
    names: NameIndex
    changer: Changer
    rows: int
    slack: float  # Hidalgo has fewer places, and other kinds of names than the country


@pytest.fixture(scope="module", params=["hidalgo", pytest.param("country", marks=pytest.mark.tail)])
def country(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Country]:
    folder = tmp_path_factory.mktemp("kinds") / "names"
    if request.param == "hidalgo":
        places, gone, rows, slack = list(places_of(read_catalogue(HIDALGO), None)), [], 60, 0.1
    else:
        folder_of_files: Path = request.getfixturevalue("real_catalogues")
        today, earlier = (
            read_catalogue(folder_of_files / f"catun_localidad_{cut}.zip") for cut in ("2018-09", "2012-06")
        )
        places, gone, rows, slack = list(places_of(today, earlier)), list(withdrawn_of(today, earlier)), 300, 0.0
    build_index(folder, places, gone)
    with closing(NameIndex(folder)) as index:
        yield Country(places, index, Changer(places), rows, slack)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_changed_names_are_certain_only_where_the_place_is_meant(country: Country, kind: Kind) -> None:
    changed = [*islice(country.changer.change(kind), country.rows)]
    found = [(one, country.names.match(one.row)) for one in changed]
    wrong = [(one.row, result.candidates[0]) for one, result in found if result.id not in {None, *one.keys}]
    assert len(wrong) <= MAX_WRONG * len(changed), wrong
    if kind.least is not None:
        doubtful = [(one.row, result.candidates[:2]) for one, result in found if result.id not in one.keys]
        assert len(doubtful) <= (1 - kind.least + country.slack) * len(changed), doubtful


# -- More said is never worse


def alone(country: Country) -> list[IndexedPlace]:
    """Return places, in a random order, whose name no other place has, in whatever municipio."""
    names: dict[str, list[IndexedPlace]] = {}
    for place in country.places:
        names.setdefault(fold(place.nombre), []).append(place)
    found = [one for [one, *others] in names.values() if not others and one.latitud is not None and not one.is_seat]
    random.Random(7).shuffle(found)  # noqa: S311  # the same in every run
    return found[: country.rows * 2]


def is_alike(place: IndexedPlace, label: str) -> bool:
    """Return whether a label has the name of a place, or a part of it, with a letter or an article changed."""
    name, nombre = fold(label.partition(",")[0]), fold(place.nombre)
    return name in nombre or OSA.distance(nombre, name) <= len("la ")


def match(country: Country, place: IndexedPlace, **said: object) -> MatchResult:
    return country.names.match(MatchRow(place.nombre)._replace(**said))  # type: ignore[arg-type]


def test_true_area_key_or_point_beside_a_certain_row_leaves_it_certain(country: Country) -> None:
    for place in alone(country):
        truth = {
            "estado": place.estado,
            "municipio": place.municipio,
            "cve_mun": f"{place.municipio_id:05d}",
            "clave": f"{place.id % 10_000:04d}",
            "cvegeo": f"{place.id:09d}",
            "latitud": place.latitud,
            "longitud": place.longitud,
        }
        said: dict[str, object] = {}
        certain = False
        for name, value in truth.items():
            said[name] = value
            if name == "latitud":
                continue
            result = match(country, place, **said)
            assert result.id in {None, place.id}, (place, said)
            assert result.id == place.id or not certain, (place, said, result.candidates[:2])
            certain = result.id == place.id
        assert certain, (place, said)


def test_false_area_key_or_point_never_makes_a_row_certain(country: Country) -> None:
    places = alone(country)
    for place, other in pairwise(places):
        if place.municipio_id == other.municipio_id or fold(place.municipio) == fold(other.municipio):
            continue
        truth = {"municipio": place.municipio, "estado": place.estado}
        lies: list[dict[str, object]] = [
            {**truth, "cvegeo": f"{other.id:09d}"},
            {**truth, "latitud": (place.latitud or 0) + ELSEWHERE, "longitud": place.longitud},
            {"municipio": other.municipio, "estado": other.estado},
        ]
        for said in lies:
            result = match(country, place, **said)
            is_other = result.id != place.id and is_alike(place, result.candidates[0].label)
            assert result.id is None or is_other, (place, said, result.candidates[:2])
        far = match(country, place, **lies[1])
        assert far.candidates[0].id == place.id, (place, far.candidates[:2])
        assert far.outcome == "ambiguous"
