"""The evidence for a place, its coefficients, and when an answer is certain."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.build import build_index
from localidades_api.names.certainty import (
    coefficients,
    outcome,
    probabilities,
    probabilities_by_key,
)
from localidades_api.names.evidence import Question, gather
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.places import Former
from localidades_api.names.rows import MatchRow
from localidades_api.names.weights import MAX_SURE, MIN_SURE
from tests.support.names import ESTADOS, MUNICIPIOS, PLACES

SCALE = {"scale_shift", "scale_slope"}
LEFT_OUT = {"ambito_other"}  # of the table, since the rows of the fit don't say it
BOUNDS = (MIN_SURE, 0.9, 0.97, MAX_SURE)
FITTED = sorted(coefficients().keys() - SCALE)
EVIDENCE = st.dictionaries(st.sampled_from(FITTED), st.floats(-3, 8))
# A word of each sort that `gather` tells apart, and one that no place has.
WORDS = ("frontera", "qwrtz", "rancho", "ejido", "puerto", "pueblo", "hospital")
POINTS = ((None, None), *((24.3 + km / 111.2, -108.5) for km in (0.5, 2.0, 5.0, 9.0)))


def differences() -> Iterator[NameFault]:
    """Yield a difference of each sort: a word for another where there may be one, added, and missing."""
    for difference, word in product(Difference, WORDS):
        yield NameFault(difference, word, "", 2.0)
        yield NameFault(difference, "", word, 2.0)
        yield NameFault(difference, word, "norte", 2.0)


def evidence_of_each_sort(index: NameIndex) -> Iterator[dict[str, float]]:
    """Yield the evidence of each sort of difference, point and area, for a seat and for a place that is none."""
    seat, other = (index.place(index.layout.find(KEY, str(key), 1)[0]) for key in (270030001, 270030015))

    def question(row: MatchRow, *words: str) -> Question:
        return Question(row, " ".join(words), words, frozenset(words), [], lambda _: 1.0, lambda word: word != "qwrtz")

    for difference in differences():
        yield gather(question(MatchRow("Frontera"), "frontera"), seat, [difference], 0.0)
    for point, place in product(POINTS, (seat, other)):
        yield gather(question(MatchRow("Centla", "Centla", "Tabasco", *point), "centla"), place, [], 7.0)


def test_each_coefficient_is_of_evidence_and_each_evidence_has_one(index: NameIndex) -> None:
    yielded = {name for one in evidence_of_each_sort(index) for name in one}
    assert coefficients().keys() - SCALE == yielded - LEFT_OUT


# -- Probabilities


@given(st.lists(EVIDENCE, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_candidates_compete_whatever_their_order(evidence: list[dict[str, float]], random: Random) -> None:
    order = list(range(len(evidence)))
    random.shuffle(order)
    found, other = probabilities(evidence), probabilities([evidence[at] for at in order])
    assert [found[at] for at in order] == pytest.approx(other)


@given(EVIDENCE, st.integers(2, 4))
def test_candidates_of_the_same_evidence_stay_level(evidence: dict[str, float], count: int) -> None:
    found = probabilities([evidence] * count)
    assert set(found) == {found[0]}
    assert count * found[0] <= 1 + 1e-9


@given(st.lists(st.floats(0, 100), min_size=1, max_size=4))
def test_places_of_one_key_compete(penalties: list[float]) -> None:
    found = probabilities_by_key(sorted(penalties))
    assert sum(found) <= 1 + 1e-9
    assert all(0 <= one <= 1 for one in found)


def best_score(index: NameIndex, row: MatchRow) -> float:
    result = index.match(row)
    assert result.best is not None
    return result.best.score


def test_another_municipio_speaks_against_a_place(index: NameIndex) -> None:
    own, none, another = (
        best_score(index, MatchRow("Seybaplaya", name, "Tabasco")) for name in ("Centla", None, "Centro")
    )
    assert own > another
    assert none > another


def test_rare_word_that_is_shared_speaks_for_a_place(tmp_path: Path) -> None:
    """Both names lack one word of the place's; the word that they share is one of many places, or of this alone."""
    many = [
        place._replace(id=270030200 + at, nombre=f"Laguna {word}", former=())
        for at, (place, word) in enumerate(
            zip(PLACES, (f"Zz{chr(97 + at)}{chr(98 + at)}orita" for at in range(20)), strict=False)
        )
    ]
    two = [
        PLACES[0]._replace(id=270030300, nombre="Tecolutla Sabanera", is_seat=False, former=()),
        PLACES[0]._replace(id=270030301, nombre="Laguna Sabanera", is_seat=False, former=()),
    ]
    of_centla = [
        one._replace(municipio_id=27003, municipio="Centla", estado_id=27, estado="Tabasco", poblacion=None, ambito="R")
        for one in [*many, *two]
    ]
    build_index(tmp_path / "names", of_centla, [])
    index = NameIndex(tmp_path / "names")
    row = MatchRow("x", "Centla", "Tabasco")
    scores = {}
    for word, key in (("Tecolutla", 270030300), ("Laguna", 270030301)):
        result = index.match(row._replace(nombre=f"{word} Savanera"))
        scores[word] = next(one.score for one in result.candidates if one.id == key)
    index.close()
    assert scores["Tecolutla"] > scores["Laguna"]


# -- What is certain


@pytest.mark.parametrize(
    "row",
    [
        MatchRow("Frontera", "Centla", "Tabasco"),
        MatchRow("CONCEPCI?N", "Centla", "Tabasco"),
        MatchRow("Carranza", "Zaragoza", "Coahuila"),
        MatchRow("Centro", None, "Tabasco"),
        MatchRow("El Colorado", "Puerto Vallarta", "Jalisco"),
        MatchRow(cvegeo="180040112"),
    ],
)
def test_bound_moves_rows_between_certain_and_ambiguous_and_changes_nothing_else(
    index: NameIndex, row: MatchRow
) -> None:
    results = [index.match(row, bound) for bound in BOUNDS]
    assert {one._replace(outcome="ambiguous") for one in results} == {results[0]._replace(outcome="ambiguous")}
    for bound, result in zip(BOUNDS, results, strict=True):
        if result.id is not None:
            assert result.candidates[0].score >= 100 * bound
    certain = [result.id is not None for result in results]
    assert certain == sorted(certain, reverse=True)


def test_bound_is_of_what_the_score_says(index: NameIndex) -> None:
    row = MatchRow("Seybaplay", None, "Tabasco")
    share = best_score(index, row) / 100
    assert 0.85 < share < 0.97
    outcomes = [index.match(row, bound).outcome for bound in (share - 0.01, share + 0.01)]
    assert outcomes == ["sure", "ambiguous"]


@pytest.mark.parametrize(
    ("probability", "found"),
    [(0.0999, "none"), (0.1, "ambiguous"), (0.9699, "ambiguous"), (0.97, "sure"), (1.0, "sure")],
)
def test_probability_that_equals_a_bound_has_reached_it(probability: float, found: str) -> None:
    assert outcome(probability, is_doubtful=False, is_literal=False) == found
    assert outcome(probability, is_doubtful=True, is_literal=True) == ("none" if found == "none" else "ambiguous")


def test_score_that_equals_the_bound_of_a_row_is_sure(index: NameIndex) -> None:
    result = index.match(MatchRow("Frontera", "Centla", "Tabasco"), 0.998)
    assert (result.outcome, result.candidates[0].score) == ("exact", 99.8)
    assert index.match(MatchRow("Frontera", "Centla", "Tabasco"), 0.9981).outcome == "ambiguous"


NEVER_CERTAIN = {
    "point over 5 km away": MatchRow("Seybaplaya", "Centla", "Tabasco", 25.7 + 5.3 / 111.2, -101.0),
    "unknown estado": MatchRow("Frontera", "Centla", "Nueva Galicia"),
    "another place's key": MatchRow("Villahermosa", "Centro", "Tabasco", cvegeo="140390001"),
    "withdrawn namesake": MatchRow("Parrilla", "Centro", "Tabasco"),
    "homonym": MatchRow("El Colorado", "Puerto Vallarta", "Jalisco"),
    "other name outside the bracket": MatchRow("Yuku Ndee (Seybaplaya)", "Centla", "Tabasco"),
    "firm in a bracket": MatchRow("Frontera [Procesadora de Carnes]", "Centla", "Tabasco"),
    "farm in a bracket": MatchRow("Frontera (Rancho)", "Centla", "Tabasco"),
    "one word of eight": MatchRow("Mora Centla Zarco Huerto Lindero Molino Frontera Tabasco", "Centla", "Tabasco"),
    "initial added": MatchRow("Frontera T", "Centla", "Tabasco"),
    "word of the municipio added": MatchRow("Frontera Centla", "Centla", "Tabasco"),
}


@pytest.mark.parametrize("row", NEVER_CERTAIN.values(), ids=NEVER_CERTAIN)
def test_row_that_is_contradicted_is_never_certain(index: NameIndex, row: MatchRow) -> None:
    result = index.match(row, MIN_SURE)
    assert result.candidates
    assert result.outcome in {"ambiguous", "none"}


def test_key_that_another_place_had_is_that_of_its_own_place(tmp_path: Path) -> None:
    frontera, chilapa = (next(one for one in PLACES if one.id == key) for key in (270030001, 270030010))
    moved = chilapa._replace(former=(Former(chilapa.nombre, "Centla", frontera.id),))
    build_index(tmp_path / "names", [frontera, moved], [])
    index = NameIndex(tmp_path / "names")
    bare, named = index.match(MatchRow(cvegeo="270030001")), index.match(MatchRow(moved.nombre, cvegeo="270030001"))
    index.close()
    assert (bare.id, [one.id for one in bare.candidates]) == (frontera.id, [frontera.id, moved.id])
    assert sum(one.score for one in bare.candidates) <= 100
    assert named.best is not None
    assert named.best.id == moved.id


# -- The catalogue's own names


@pytest.mark.parametrize("municipio_id", MUNICIPIOS)
def test_name_of_a_municipio_is_its_seat(index: NameIndex, municipio_id: int) -> None:
    """Two municipios of one estado may have one name, and then nothing tells which is meant.

    Without the municipio, a seat with a name of its own, as Villahermosa has in Centro, may be in doubt.
    """
    name, estado = MUNICIPIOS[municipio_id], ESTADOS[municipio_id // 1000]
    namesakes = [id_ for id_, other in MUNICIPIOS.items() if (other, id_ // 1000) == (name, municipio_id // 1000)]
    seats = {id_ * KEYS_OF_A_MUNICIPIO + 1 for id_ in namesakes}
    for row in (MatchRow(name, None, estado), MatchRow(name, name, estado)):
        result = index.match(row)
        assert {one.id for one in result.candidates[: len(seats)]} == seats
        assert result.id in (seats if len(seats) == 1 and row.municipio else {None, *seats})
        assert result.id is None or len(seats) == 1


def test_homonyms_are_told_apart_or_ambiguous(index: NameIndex) -> None:
    by_name: dict[tuple[str, int], set[int]] = {}
    for place in PLACES:
        by_name.setdefault((place.nombre, place.municipio_id), set()).add(place.id)
    homonyms = [place for place in PLACES if len(by_name[place.nombre, place.municipio_id]) > 1]
    assert homonyms
    for place in homonyms:
        row = MatchRow(place.nombre, place.municipio, place.estado)
        bare = index.match(row, MIN_SURE)
        assert (bare.outcome, bare.margin) == ("ambiguous", 0)
        assert {one.id for one in bare.candidates} >= by_name[place.nombre, place.municipio_id]
        assert index.match(row._replace(latitud=place.latitud, longitud=place.longitud)).id == place.id
