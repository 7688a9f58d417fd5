"""Suggestions while a person types; `test_golden` has what beginnings suggest."""

import random
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.names.files.layout import KEY
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former, IndexedPlace
from tests.support.names import PLACES, place

CHOSEN = st.sampled_from(PLACES)


def suggested(index: NameIndex, text: str) -> list[int]:
    return [one.id for one in index.suggest(text, kinds=["localidad"])]


# -- Any text


@given(CHOSEN, st.sampled_from(["nombre", "label"]), st.booleans())
def test_typing_on_loses_nothing(index: NameIndex, place: IndexedPlace, what: str, is_decomposed: object) -> None:
    """What is shown for the beginning of a name or a label is shown until it is complete."""
    text = place.nombre if what == "nombre" else index.label(index.place(index.layout.find(KEY, str(place.id))[0]))
    text = unicodedata.normalize("NFD", text) if is_decomposed else text
    shown = False
    for length in range(3, len(text) + 1):
        is_there = place.id in {one.id for one in index.suggest(text[:length])}
        assert is_there >= shown, text[:length]
        shown = is_there
    assert shown


def test_every_label_leads_to_its_place(index: NameIndex) -> None:
    for row in range(index.layout.rows):
        label = index.label(index.place(row))
        found = index.suggest(label)[0]
        assert (found.id, found.match, found.label) == (index.place(row).id, "label", label)


@given(CHOSEN, st.randoms(use_true_random=False))
def test_order_of_words_does_not_matter(index: NameIndex, place: IndexedPlace, chance: random.Random) -> None:
    words = f"{place.nombre} {place.municipio} {place.estado}".split()
    chance.shuffle(words)
    assert place.id in {found.id for found in index.suggest(" ".join(words), limit=50)}


@given(st.text(max_size=60), st.sampled_from([None, 14, 27]), st.sampled_from([None, 14039, 99999]))
def test_any_text_is_answered_within_bounds(
    index: NameIndex, text: str, estado_id: int | None, municipio_id: int | None
) -> None:
    found = index.suggest(text, estado_id=estado_id, municipio_id=municipio_id, limit=3)
    assert len({one.id for one in found}) == len(found) <= 3
    assert all(
        estado_id in {None, int(place.cvegeo[:2])} and municipio_id in {None, place.municipio_id} for place in found
    )


# -- What comes first


def test_area_restricts_suggestions_and_the_name_that_matched_is_told(index: NameIndex) -> None:
    assert [one.id for one in index.suggest("guadalajara", estado_id=27)] == [270040052]
    assert [one.id for one in index.suggest("guadalajara", municipio_id=27004)] == [270040052]
    assert [one.id for one in index.suggest("guadalajara", estado_id=27, municipio_id=27004)] == [270040052]
    assert [index.suggest(text)[0].name for text in ("gdl", "guadalajara")] == ["GDL", None]


HAMLETS = [place(270040100 + at, "El Puerto", "Centro", "Tabasco") for at in range(12)]
CARDENAS = ("Cárdenas", "Tabasco")


@pytest.mark.parametrize(
    ("places", "texts", "first"),
    [
        ([*PLACES, *HAMLETS], ["puerto", "Puerto ", "PTO."], [140670001]),  # a large place of the kind, then hamlets
        ([*PLACES, place(270040055, "Jalisco", "Centro", "Tabasco")], ["Jalisco"], [270040055]),
        (
            [
                place(270080002, "Uno", *CARDENAS),
                place(270080003, "Otro", *CARDENAS, 9000, former=(Former("Otro", "Cárdenas", 270080002),)),
            ],
            ["270080002"],  # which the second had
            [270080002, 270080003],
        ),
        (
            [
                place(50070001, "Cuatro Ciénegas de Carranza", "Cuatro Ciénegas", "Coahuila"),
                place(50070002, "Las Cuatrocientas", "Cuatro Ciénegas", "Coahuila"),
            ],
            ["cuatrociénegas"],  # no letter is wrong
            [50070001],
        ),
        (
            [place(20010001, "Ensenada", "Ensenada", "Baja California", 300_000)]
            + [place(20010002 + at, f"E{at} Vieja", "Ensenada", "Baja California", 9000) for at in range(60)]
            + [place(270080002, "La Estancia", *CARDENAS)],
            ["la e", "La E"],  # an article, and the beginning of a name: before towns without the article
            [20010001, 270080002],
        ),
    ],
    ids=["kind", "estado", "key", "spaces", "article"],
)
def test_likelier_place_comes_first(
    index_of: Callable[..., NameIndex], places: list[IndexedPlace], texts: list[str], first: list[int]
) -> None:
    index = index_of(*places)
    assert [suggested(index, text)[: len(first)] for text in texts] == [first] * len(texts)


def test_places_of_other_estados_with_the_words_of_one_are_left_out(index_of: Callable[..., NameIndex]) -> None:
    index = index_of(*PLACES, place(270040055, "México y su Ciudad de Cartón", "Centro", "Tabasco", 90_000))
    assert suggested(index, "Ciudad de México") == [90070001]
    assert suggested(index, "ciudad mexico carton") == [270040055]


def test_two_letters_are_wrong_only_if_nothing_has_one_wrong(index_of: Callable[..., NameIndex]) -> None:
    index = index_of(place(270080002, "Tlalnepantla", *CARDENAS), place(270080003, "Tlalnepanto", *CARDENAS, 9000))
    assert suggested(index, "tlalnepantal ") == suggested(index, "tlalnepamtal ") == [270080002]
    assert suggested(index, "tlanepamto ") == [270080003]


def test_as_many_are_suggested_as_are_asked_for(index_of: Callable[..., NameIndex]) -> None:
    index = index_of(*(place(270030001 + at, f"Lugar {at}", "Centla", "Tabasco") for at in range(1, 31)))
    assert [len(index.suggest(text, limit=20)) for text in ("lugar", "l", "lugar centla", "27003")] == [20] * 4
