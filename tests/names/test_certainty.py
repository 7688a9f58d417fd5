"""How probable a place is, and when an answer is certain."""

from collections.abc import Callable

import pytest

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.certainty.probability import coefficients, outcome
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from localidades_api.names.rows import MatchRow
from localidades_api.names.weights import MIN_SURE
from tests.support.names import ESTADOS, MUNICIPIOS, PLACES, place


def test_rare_word_that_is_shared_speaks_for_a_place(index_of: Callable[..., NameIndex]) -> None:
    """Both names have a word with a letter wrong; the word that they share is one of many places, or of this alone."""
    names = [
        *(f"Laguna Zz{chr(97 + at)}{chr(98 + at)}orita" for at in range(20)),
        "Laguna Sabanera",
        "Tecolutla Sabanera",
    ]
    index = index_of(*(place(270030200 + at, name, "Centla", "Tabasco") for at, name in enumerate(names)))
    common, rare = (
        {one.id: one.score for one in index.match(MatchRow(f"{word} Savanera", "Centla", "Tabasco")).candidates}
        for word in ("Laguna", "Tecolutla")
    )
    assert rare[270030221] > common[270030220]


def test_certainty_is_fitted_to_the_evidence_of_each_candidate(index: NameIndex) -> None:
    keys, gathered = index.candidates(MatchRow("Rancho Frontera", "Centla", "Tabasco"))
    found = gathered[keys.index(270030001)]
    assert {"kind_added_farm", "kind_added_to_town"} <= found.keys() <= coefficients().keys()


# -- What is certain


@pytest.mark.parametrize(
    ("probability", "found"),
    [(0.0999, "none"), (0.1, "ambiguous"), (0.9499, "ambiguous"), (0.95, "sure"), (1.0, "sure")],
)
def test_probability_that_equals_a_bound_has_reached_it(probability: float, found: str) -> None:
    assert outcome(probability, is_doubtful=False, is_literal=False) == found
    assert outcome(probability, is_doubtful=True, is_literal=True) == ("none" if found == "none" else "ambiguous")


def test_key_that_another_place_had_is_that_of_its_own_place(index_of: Callable[..., NameIndex]) -> None:
    frontera, chilapa = (next(one for one in PLACES if one.id == key) for key in (270030001, 270030010))
    index = index_of(frontera, chilapa._replace(former=(Former(chilapa.nombre, "Centla", frontera.id),)))
    bare = index.match(MatchRow(cvegeo="270030001"))
    assert (bare.id, [one.id for one in bare.candidates]) == (frontera.id, [frontera.id, chilapa.id])
    assert sum(one.score for one in bare.candidates) <= 100
    named = index.match(MatchRow(chilapa.nombre, cvegeo="270030001"))
    assert named.candidates[0].id == chilapa.id


# -- The catalogue's own names


@pytest.mark.parametrize("municipio_id", MUNICIPIOS)
def test_name_of_a_municipio_is_its_seat(index: NameIndex, municipio_id: int) -> None:
    """Of two municipios of one name nothing tells which is meant; without a municipio a seat may be in doubt."""
    name, estado = MUNICIPIOS[municipio_id], ESTADOS[municipio_id // 1000]
    seats = {id_ * KEYS_OF_A_MUNICIPIO + 1 for id_, other in MUNICIPIOS.items() if other == name}
    for row in (MatchRow(name, None, estado), MatchRow(name, name, estado)):
        result = index.match(row)
        assert {one.id for one in result.candidates[: len(seats)]} == seats
        assert result.id in ({None} if len(seats) > 1 else seats if row.municipio else {None, *seats})


def test_homonyms_are_told_apart_or_ambiguous(index: NameIndex) -> None:
    by_name: dict[tuple[str, int], set[int]] = {}
    for one in PLACES:
        by_name.setdefault((one.nombre, one.municipio_id), set()).add(one.id)
    homonyms = [one for one in PLACES if len(by_name[one.nombre, one.municipio_id]) > 1]
    assert homonyms
    for one in homonyms:
        row = MatchRow(one.nombre, one.municipio, one.estado)
        bare = index.match(row, MIN_SURE)
        assert (bare.outcome, bare.margin) == ("ambiguous", 0)
        assert {found.id for found in bare.candidates} >= by_name[one.nombre, one.municipio_id]
        assert index.match(row._replace(latitud=one.latitud, longitud=one.longitud)).id == one.id
