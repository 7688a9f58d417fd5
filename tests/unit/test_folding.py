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
        ("AGUASCALIENTES", "aguascalientes"), ("Peñón Ñandú", "penon nandu"),
        ("ÁÉÍÓÚÜ áéíóúü àèìòù äëïö âêîôû ãõ ç", "aeiouu aeiouu aeiou aeio aeiou ao c"), ("Straße", "strasse"),
        ("N° 5", "no 5"), ("Nº 5", "no 5"), ("1ª Sección", "1a seccion"), ("Concepci½n", "concepcion"), ("½", "o"),
        ("Los Arbolitos [Rancho]", "los arbolitos rancho"), ("Abajo (Las Ardillas)", "abajo las ardillas"), ("(((", ""),
        ("San  Juan   del Río", "san juan del rio"), ("San\N{NO-BREAK SPACE}Juan", "san juan"),
        ("San\tJuan\nBautista\r\n", "san juan bautista"), ("  Asientos  ", "asientos"), ("Hechos 2:38", "hechos 2 38"),
        ("Resort & Spa", "resort spa"), ("Bomba #8", "bomba 8"), ("S.P.R. de R.L.", "s p r de r l"),
        ("Tres-Picos/El_Alto", "tres picos el alto"), ("", ""), (" ", ""), ("😀", ""), ("a😀b", "a b"), ("Москва", ""),
        ("Pueblo 東京 Nuevo", "pueblo nuevo"), ("Ｒａｎｃｈｏ ﬁno Ⅳ", "rancho fino iv"), ("a\u200bb", "a b"),
        ("\0", ""),
        ("٣ ４ ④ ²", "4 4 2"),  # digits of other scripts are dropped; compatibility forms of 0 to 9 are kept
    ],
)  # fmt: skip
def test_text_is_folded_to_plain_letters_and_digits(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    "apostrophe",
    [
        "'", "`", "\N{ACUTE ACCENT}", "\N{GREEK OXIA}", "\N{GREEK VARIA}", "\N{LEFT SINGLE QUOTATION MARK}",
        "\N{RIGHT SINGLE QUOTATION MARK}", "\N{PRIME}", "\N{MODIFIER LETTER APOSTROPHE}",
        "\N{LATIN SMALL LETTER SALTILLO}", "\N{FULLWIDTH APOSTROPHE}",
    ],
)  # fmt: skip
def test_apostrophes_do_not_separate_words(apostrophe: str) -> None:
    assert fold(f"D{apostrophe}Artagnan {apostrophe}El Güero{apostrophe}") == "dartagnan el guero"
    assert fold(apostrophe) == ""


@given(TEXT | TYPED, TEXT | TYPED)
@example("a\N{GREEK OXIA}b", "a\N{GREEK VARIA}b")
@example("\N{LATIN SMALL LETTER DOTLESS I}", "")
def test_folding_is_the_same_in_any_case_and_form_and_for_each_word(text: str, other: str) -> None:
    folded = fold(text)
    assert re.fullmatch(r"(?:[a-z0-9]+(?: [a-z0-9]+)*)?", folded)
    assert {fold(folded), fold(text.upper()), fold(text.lower()), fold(text.casefold())} == {folded}
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text)) == folded
    assert fold(f"{text} {other}") == " ".join(filter(None, [folded, fold(other)]))


def test_folding_every_character_takes_bounded_memory() -> None:
    every = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert re.fullmatch(r"[a-z0-9 ]*", fold(every))
    assert len(folding._FOLDING) <= 16_384
