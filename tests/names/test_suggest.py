import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.keys import PlaceKind
from localidades_api.names.build import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.layout import KEY
from localidades_api.names.places import Former, IndexedPlace
from localidades_api.names.query import read, readings
from localidades_api.names.ranking import fit
from tests.support.names import PLACES


def first(index: NameIndex, text: str) -> int | None:
    found = index.suggest(text)
    return found[0].id if found else None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("guadalajara", 140390001),
        ("Guadalajara, Jalisco", 140390001),
        ("jal guadalajara", 140390001),
        ("guadalajara tabasco", 270040052),
        ("gdl", 140390001),
        ("guadalajra", 140390001),
        ("guadal", 140390001),
        ("pto vallarta", 140670001),
        ("puertovallarta", 140670001),
        ("vallarta jal", 140670001),
        ("oaxaca", 200670001),
        ("centro", 270040001),
        ("huatulco", 204130078),
        ("sta maria huatulco", 204130001),
        ("tlaquepaque", 140980001),
        ("san pedro tlaquepaque jal", 140980001),
        ("zaragoza coah", 50380001),
        ("ixtapa", 140670010),
        ("chilapa 2a secc", 270030011),
        ("margen izquierda", 270030010),
        ("san jose puerto vallarta", 140670030),
        ("fco i madero tab", 270030014),
        ("V", 270040001),
    ],
)
def test_what_people_type_leads_to_what_they_mean(index: NameIndex, text: str, key: int) -> None:
    assert first(index, text) == key


@pytest.mark.parametrize(
    ("text", "key", "match"),
    [
        ("140390001", 140390001, "key"),
        ("90070001", 90070001, "key"),
        ("180040112", 140670031, "former"),
        ("14039", 140390001, "key"),
        ("09", 90070001, "key"),
        ("oaxaca", 200670001, "everyday"),
        ("centro", 270040001, "seat"),
        ("san jose", 140670030, "former"),
        ("guadalajara", 140390001, "exact"),
        ("guada", 140390001, "prefix"),
        ("guadalajra", 140390001, "near"),
        ("partilka", 270040051, "near"),  # eight letters, two of them wrong
        ("juntas las", 140390044, "exact"),
        ("valle jose san", 140670030, "words"),
    ],
)
def test_suggestion_says_why(index: NameIndex, text: str, key: int, match: str) -> None:
    found = index.suggest(text)[0]
    assert (found.id, found.match) == (key, match)


@given(st.sampled_from(PLACES), st.sampled_from(["nombre", "label"]), st.booleans())
def test_typing_on_loses_nothing(index: NameIndex, place: IndexedPlace, what: str, is_decomposed: object) -> None:
    """What is shown for the beginning of a name or a label is shown until it is complete."""
    known = index.place(index.layout.find(KEY, str(place.id))[0])
    text = place.nombre if what == "nombre" else index.label(known)
    text = unicodedata.normalize("NFD", text) if is_decomposed else text
    shown = False
    for length in range(3, len(text) + 1):
        is_there = place.id in {one.id for one in index.suggest(text[:length])}
        assert is_there >= shown, text[:length]
        shown = is_there
    assert shown


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("oaxaca d", 200670001),
        ("Oaxaca de ", 200670001),
        ("oaxaca j", 200670001),
        ("puente d", 140390045),
        ("La E", 270030012),
        ("las ", 140390044),
        ("Estacion V.", 270030013),
        ("Francisco I. ", 270030014),
        ("guadalajara j.", 140390001),
        ("D`", 270030018),
        ("d`artagnan", 270030018),
        ("El Colorado (002", 140670020),
        ("El Colorado (0021", 140670021),
    ],
)
def test_text_may_end_anywhere(index: NameIndex, text: str, key: int) -> None:
    assert first(index, text) == key


def test_large_places_of_a_kind_come_before_hamlets_that_are_called_so(tmp_path: Path) -> None:
    hamlets = [IndexedPlace(270040100 + n, "El Puerto", 27004, "Centro", 27, "Tabasco") for n in range(12)]
    build_index(tmp_path / "names", [*PLACES, *hamlets])
    index = NameIndex(tmp_path / "names")
    assert [first(index, text) for text in ("puerto", "Puerto ", "PTO.")] == [140670001] * 3
    index.close()


def test_every_label_leads_to_its_place(index: NameIndex) -> None:
    for row in range(index.layout.rows):
        place = index.place(row)
        found = index.suggest(index.label(place))[0]
        assert (found.id, found.match, found.label) == (place.id, "label", index.label(place))


@given(st.sampled_from(PLACES), st.randoms(use_true_random=False))
def test_order_of_words_does_not_matter(index: NameIndex, place: IndexedPlace, chance: random.Random) -> None:
    words = f"{place.nombre} {place.municipio} {place.estado}".split()
    chance.shuffle(words)
    assert place.id in {found.id for found in index.suggest(" ".join(words), limit=50)}


@given(st.text(max_size=60), st.sampled_from([None, 14, 27]), st.sampled_from([None, 14039, 99999]))
def test_any_text_is_answered_within_bounds(
    index: NameIndex, text: str, estado_id: int | None, municipio_id: int | None
) -> None:
    found = index.suggest(text, estado_id=estado_id, municipio_id=municipio_id, limit=3)
    assert len(found) <= 3
    assert all(estado_id in {None, one.estado_id} and municipio_id in {None, one.municipio_id} for one in found)
    assert len({one.id for one in found}) == len(found)


def test_area_restricts_suggestions(index: NameIndex) -> None:
    assert [one.id for one in index.suggest("guadalajara", estado_id=27)] == [270040052]
    assert [one.id for one in index.suggest("guadalajara", municipio_id=270040052 // 10_000)] == [270040052]


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("cdmx", "estado", 9),
        ("distrito federal", "estado", 9),
        ("estado de jalisco", "estado", 14),
        ("centla", "municipio", 27003),
        ("tlaquepaque jal", "municipio", 14098),
        ("27004", "municipio", 27004),
    ],
)
def test_municipios_and_estados_are_suggested_where_asked_for(
    index: NameIndex, text: str, kind: PlaceKind, key: int
) -> None:
    found = index.suggest(text, kinds=[kind])[0]
    assert (found.kind, found.id, len(found.cvegeo)) == (kind, key, 2 if kind == "estado" else 5)


def test_place_that_is_called_like_another_estado_comes_first(tmp_path: Path) -> None:
    jalisco = IndexedPlace(270040055, "Jalisco", 27004, "Centro", 27, "Tabasco")
    build_index(tmp_path / "names", [*PLACES, jalisco])
    index = NameIndex(tmp_path / "names")
    assert first(index, "Jalisco") == 270040055
    index.close()


def test_places_of_other_estados_with_its_words_are_left_out(tmp_path: Path) -> None:
    elsewhere = IndexedPlace(
        270040055, "México y su Ciudad de Cartón", 27004, "Centro", 27, "Tabasco", poblacion=90_000
    )
    build_index(tmp_path / "names", [*PLACES, elsewhere])
    index = NameIndex(tmp_path / "names")
    assert [found.id for found in index.suggest("Ciudad de México", kinds=["localidad"])] == [90070001]
    assert [found.id for found in index.suggest("ciudad mexico carton", kinds=["localidad"])] == [270040055]
    index.close()


def test_as_many_are_suggested_as_are_asked_for(tmp_path: Path) -> None:
    places = [IndexedPlace(270030000 + n, f"Lugar {n}", 27003, "Centla", 27, "Tabasco") for n in range(1, 31)]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert [len(index.suggest(text, limit=20)) for text in ("lugar", "l", "lugar centla", "27003")] == [20] * 4
    index.close()


@pytest.mark.parametrize(
    ("text", "worse"), [("frontera centla", "centla frontera"), ("frontera centla", "frontera centlla")]
)
def test_text_fits_better_with_its_municipio_behind_and_spelt_right(index: NameIndex, text: str, worse: str) -> None:
    place = index.place(index.layout.find(KEY, "270030001")[0])
    assert fit(read(text), place).points == 100 > fit(read(worse), place).points


def test_other_name_that_matched_is_told(index: NameIndex) -> None:
    assert index.suggest("gdl")[0].name == "GDL"
    assert index.suggest("guadalajara")[0].name is None


def test_place_that_has_a_key_comes_before_a_larger_one_that_had_it(tmp_path: Path) -> None:
    former = (Former("Otro", "Cárdenas", 270080002),)
    places = [
        IndexedPlace(270080002, "Uno", 27008, "Cárdenas", 27, "Tabasco"),
        IndexedPlace(270080003, "Otro", 27008, "Cárdenas", 27, "Tabasco", poblacion=9000, former=former),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert [(one.id, one.match) for one in index.suggest("270080002")] == [(270080002, "key"), (270080003, "former")]
    index.close()


def test_name_in_one_word_comes_before_what_is_spelt_like_it(tmp_path: Path) -> None:
    places = [
        IndexedPlace(50070001, "Cuatro Ciénegas de Carranza", 5007, "Cuatro Ciénegas", 5, "Coahuila", is_seat=True),
        IndexedPlace(50070002, "Las Cuatrocientas", 5007, "Cuatro Ciénegas", 5, "Coahuila"),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert index.suggest("cuatrociénegas", kinds=["localidad"])[0].id == 50070001
    index.close()


# Words of several places, whole, begun and misspelt.
_WORDS = """guadalajara puerto vallarta pto vall chilapa chilpa 2a secc seccion margen la el juntas centro cento tabasco
jal oaxaca juarez san jose jos mojonera compostela villahermosa laguna nueva zaragoza ejido de q"""
WORDS = st.sampled_from(_WORDS.split())


@given(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), st.sampled_from(["", " ", ","]), st.sampled_from(PLACES))
def test_name_that_fits_best_is_the_first_of_those_with_most_points(
    index: NameIndex, text: str, end: str, place: IndexedPlace
) -> None:
    found = index.place(index.layout.find(KEY, str(place.id))[0])
    for typed in readings(text + end):
        each = [fit(typed, found._replace(names=(name,))) for name in found.names]
        assert fit(typed, found) == max(each, key=lambda one: one.points)


def test_two_letters_are_wrong_only_if_nothing_has_one_wrong(tmp_path: Path) -> None:
    places = [
        IndexedPlace(270080002, "Tlalnepantla", 27008, "Cárdenas", 27, "Tabasco"),
        IndexedPlace(270080003, "Tlalnepanto", 27008, "Cárdenas", 27, "Tabasco", poblacion=9000),
    ]
    build_index(tmp_path / "names", places)
    index = NameIndex(tmp_path / "names")
    assert [one.id for one in index.suggest("tlalnepantal ")] == [270080002]
    assert [one.id for one in index.suggest("tlalnepamtal ")] == [270080002]
    assert [one.id for one in index.suggest("tlanepamto ")] == [270080003]
    index.close()
