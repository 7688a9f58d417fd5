import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localidades_api.catalogue import folding
from localidades_api.catalogue.folding import fold

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
# Texts with many of the characters that have special folding rules.
TYPED = st.text(
    st.sampled_from(
        "aàÁñÑüßłøœæıİſǆﬁº°½ªⅣ①'`´‘’′ʼ‛＇῝´`[](),.-_/\\&#0٣９ \N{NO-BREAK SPACE}\t\u0301\u0303\u0345\u200b\u20dd"
    )
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Aguascalientes", "aguascalientes"),
        ("AGUASCALIENTES", "aguascalientes"),
        ("Peñón Ñandú", "penon nandu"),
        ("ÁÉÍÓÚÜ áéíóúü àèìòù äëïö âêîôû ãõ ç", "aeiouu aeiouu aeiou aeio aeiou ao c"),
        ("Straße", "strasse"),
        ("STRASSE", "strasse"),
        ("N° 5", "no 5"),
        ("Nº 5", "no 5"),
        ("No 5", "no 5"),
        ("1ª Sección", "1a seccion"),
        ("Concepci½n", "concepcion"),
        ("Concepción", "concepcion"),
        ("Los Arbolitos [Rancho]", "los arbolitos rancho"),
        ("Ardillas de Abajo (Las Ardillas)", "ardillas de abajo las ardillas"),
        ("(((", ""),
        ("San  Juan   del Río", "san juan del rio"),
        ("San\N{NO-BREAK SPACE}Juan", "san juan"),
        ("San\tJuan\nBautista\r\n", "san juan bautista"),
        ("  Asientos  ", "asientos"),
        ("Hechos 2:38", "hechos 2 38"),
        ("Secrets Huatulco Resort & Spa", "secrets huatulco resort spa"),
        ("Bomba #8", "bomba 8"),
        ("S.P.R. de R.L.", "s p r de r l"),
        ("Tres-Picos/El_Alto", "tres picos el alto"),
        ("", ""),
        (" ", ""),
        ("½", "o"),
        ("😀", ""),
        ("a😀b", "a b"),
        ("Москва", ""),
        ("東京", ""),
        ("العربية", ""),
        ("Pueblo 東京 Nuevo", "pueblo nuevo"),
        ("٣ ４ ④ ²", "4 4 2"),  # digits of other scripts are dropped; compatibility forms of 0 to 9 are kept
        ("Ｒａｎｃｈｏ ﬁno Ⅳ", "rancho fino iv"),
        ("a\u200bb", "a b"),
        ("\0", ""),
    ],
)
def test_text_is_folded_to_plain_letters_and_digits(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    "apostrophe",
    [
        "'",
        "`",
        "\N{ACUTE ACCENT}",
        "\N{GREEK OXIA}",
        "\N{GREEK VARIA}",
        "\N{LEFT SINGLE QUOTATION MARK}",
        "\N{RIGHT SINGLE QUOTATION MARK}",
        "\N{PRIME}",
        "\N{MODIFIER LETTER APOSTROPHE}",
        "\N{LATIN SMALL LETTER SALTILLO}",
        "\N{FULLWIDTH APOSTROPHE}",
    ],
)
def test_apostrophes_do_not_separate_words(apostrophe: str) -> None:
    assert fold(f"D{apostrophe}Artagnan") == "dartagnan"
    assert fold(f"Rancho {apostrophe}El Güero{apostrophe}") == "rancho el guero"
    assert fold(apostrophe) == ""


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_unicode_normalization_forms_fold_alike(form: str) -> None:
    name = "Peñón Ñandú del Río Ángulo Güémez"
    assert fold(unicodedata.normalize(form, name)) == "penon nandu del rio angulo guemez"  # type: ignore[arg-type]  # a form


@given(TEXT | TYPED)
def test_folded_words_are_separated_by_single_spaces(text: str) -> None:
    assert re.fullmatch(r"(?:[a-z0-9]+(?: [a-z0-9]+)*)?", fold(text))


@given(TEXT | TYPED)
def test_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(TEXT | TYPED)
@example("a\N{GREEK OXIA}b")
@example("a\N{GREEK VARIA}b")
def test_composed_and_decomposed_text_fold_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFC", text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)


@given(TEXT | TYPED)
@example("\N{LATIN SMALL LETTER DOTLESS I}")
def test_case_does_not_matter(text: str) -> None:
    assert fold(text.upper()) == fold(text)
    assert fold(text.lower()) == fold(text)
    assert fold(text.casefold()) == fold(text)


@given(TEXT | TYPED, TEXT | TYPED)
def test_words_are_folded_independently(left: str, right: str) -> None:
    assert fold(f"{left} {right}") == " ".join(filter(None, [fold(left), fold(right)]))


@given(st.text(st.characters(min_codepoint=folding._FIRST_RARE, exclude_categories=["Cs"]), min_size=1))
def test_rare_characters_that_stand_for_themselves_are_not_cached(text: str) -> None:
    fold(text)
    cached = folding._FOLDING.keys() & set(map(ord, text))
    assert all(unicodedata.decomposition(chr(code)) for code in cached)


def test_folding_every_character_takes_bounded_memory() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert re.fullmatch(r"[a-z0-9 ]*", fold(every))
    assert len(folding._FOLDING) <= 16_384
