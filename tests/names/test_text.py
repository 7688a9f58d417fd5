from collections.abc import Callable
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.coordinates import read_degrees
from localidades_api.names.candidates.alignment import read_name
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.reading.dates import undo_date
from localidades_api.names.reading.lines import split_last
from localidades_api.names.reading.text import canonical, core, repair, take_apart, variants, with_article
from localidades_api.names.reading.vocabulary import ABBREVIATIONS, GENERICS, NUMBERS, PHRASES, STOP_WORDS
from tests.support.long_texts import long_texts

AREAS = AreaBook({14: "Jalisco"}, {14039: "Guadalajara"}, {})
WORDS = st.sampled_from(
    sorted({*ABBREVIATIONS, *NUMBERS, *STOP_WORDS, *GENERICS, *(word for phrase in PHRASES for word in phrase)})
)
NAMES = st.lists(WORDS | st.text("abcñü123 .,'()[]", min_size=1, max_size=8), min_size=1, max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sta. María", "SANTA MA."), ("FCO. I. MADERO 1A", "Francisco I. Madero 1ra."),
        ("SECC. PRIMERA", "Sección 1ra."), ("2 DA. SECCION", "2da. Sección"), ("Dos", "II"),
        ("N.C.P.E. Nuevo", "NCPE Nuevo"), ("CD. VALLES", "Ciudad Valles"), ("R/a El Caoba", "Ranchería Caoba"),
        ("Boca de Cielo", "Boca del Cielo"), ("BUENA VISTA", "Buenavista"), ("S.L.P.", "slp"),
        ("LOC. ARROYO GDE. IZQ.", "Localidad Arroyo Grande Izquierda"), ("Km. 007", "Kilómetro 7"),
        ("Diecisiete de Septiembre", "17 DE SEPTIEMBRE"),
    ],
)  # fmt: skip
def test_spellings_of_one_name_have_the_same_canonical_words(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


def test_names_of_two_places_have_different_canonical_words() -> None:
    for one, other in (("Chilapa 1ra. Sección", "Chilapa 2da. Sección"), ("San Juan", "Juan"), ("Km. 00", "Km.")):
        assert canonical(one) != canonical(other)


@given(NAMES)
def test_core_is_part_of_the_name_and_normalising_again_changes_nothing(name: str) -> None:
    words = canonical(name)
    assert canonical(" ".join(words)) == words
    assert set(core(words)) <= set(words)
    assert bool(core(words)) == bool(words)


@pytest.mark.parametrize(
    ("damaged", "name"),
    [
        ("BahÃ\xada Kino", "Bahía Kino"), ("PE¥A BLANCA", "PEÑA BLANCA"), ("LA ESTACI?N", "LA ESTACIN"),
        ("PE¿ON", "PEON"), ("¿PEON", "¿PEON"), ("Pe&ntilde;&oacute;n", "Peñón"), ("Mérida", "Mérida"),
        # letters of MS-DOS, only within words
        ("M‚rida", "Mérida"), ("Michoac\N{NO-BREAK SPACE}n", "Michoacán"), ("Ju\N{NO-BREAK SPACE}rez", "Juárez"),
        ("SAN ANDRšS", "SAN ANDRÜS"),
        *((name, name) for name in ("San\N{NO-BREAK SPACE}Juan", "Lomas de\N{NO-BREAK SPACE}la Cruz",
                                    "Rancho\N{NO-BREAK SPACE}grande", "el\N{NO-BREAK SPACE}carmen")),
    ],
)  # fmt: skip
def test_broken_encoding_is_undone_as_far_as_can_be_told(damaged: str, name: str) -> None:
    assert repair(damaged) == name


def test_brackets_and_their_content_are_names_of_their_own_unless_they_only_say_the_kind() -> None:
    assert variants("Pochitocal 1ra. Sección (La Palma)") == [
        ("pochitocal", "1", "seccion"), ("pochitocal", "1", "seccion", "palma"), ("palma",),
    ]  # fmt: skip
    assert variants("Los Arbolitos [Rancho]") == [("arbolitos",), ("arbolitos", "rancho")]


def test_article_behind_a_comma_and_a_bracket_that_is_never_closed_are_read() -> None:
    assert take_apart("VENTA, LA").main == "LA VENTA"
    assert take_apart("VENTA (LA)") == ("LA VENTA", ())
    assert take_apart("MEZCALTEPEC I (DE BELLAVIST").inner == ("DE BELLAVIST",)


def read_longitude(text: str) -> None:
    with suppress(ValueError):
        read_degrees(text, "longitud")


@pytest.mark.parametrize(
    "read", [take_apart, with_article, repair, read_name, split_last, AREAS.split_line, read_longitude]
)
def test_time_is_in_proportion_to_the_length_of_a_text(read: Callable[[str], object]) -> None:
    slow = []
    for text in long_texts(10_000):
        began = process_time()
        read(text)
        if process_time() - began > 0.5:
            slow.append(text[:20])
    assert slow == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("18-mar", "18 de Marzo"), ("5-may", "5 de Mayo"), ("16-sep", "16 de Septiembre"), ("1-Dec", "1 de Diciembre"),
        ("20-nov-26", "20 de Noviembre"), ("2-apr", "2 de Abril"), ("6-jan", "6 de Enero"), ("15-aug", "15 de Agosto"),
        ("2026-11-20", "20 de Noviembre"), ("20 nov.", "20 de Noviembre"),
        ("18-mas", "18-mas"), ("2026-13-20", "2026-13-20"), ("18 de Marzo", "18 de Marzo"), ("18", "18"),
    ],
)  # fmt: skip
def test_date_is_read_as_the_name_that_it_was(text: str, name: str) -> None:
    assert undo_date(text) == name
