"""Folds texts: without case, accents or punctuation, as people type them (docs/decisions/api.md).

Folded names are ASCII, so comparisons and searches don't depend on the locale of the database.
"""

import unicodedata

# Characters that INEGI writes instead of others: `Concepci½n` is Concepción, `N°` is `No`. The last is I in capitals.
_STANDS_FOR = {"½": "o", "°": "o", "\N{LATIN SMALL LETTER DOTLESS I}": "i"}
# Apostrophes don't separate words: `D'Artagnan` is one word. The last three are the glottal stop of native languages.
APOSTROPHES = (
    "'`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{PRIME}"
    "\N{MODIFIER LETTER APOSTROPHE}\N{LATIN CAPITAL LETTER SALTILLO}\N{LATIN SMALL LETTER SALTILLO}"
)
_FIRST_RARE = 0x2200  # after Latin and punctuation


class _Folding(dict[int, str]):
    """Caches the folded form of each character, except for the hundreds of thousands that stand for themselves."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if code >= _FIRST_RARE and not unicodedata.decomposition(character):
            return _plain(character)
        folded = self[code] = self._fold(character)
        return folded

    @staticmethod
    def _fold(character: str) -> str:
        character = unicodedata.normalize("NFC", character)  # replaces the Greek accents, which are separate characters
        if character in APOSTROPHES:
            return ""
        decomposed = unicodedata.normalize("NFKD", _STANDS_FOR.get(character, character)).casefold()
        return "".join(map(_plain, unicodedata.normalize("NFKD", decomposed)))


def _plain(part: str) -> str:
    """Return letters and digits unchanged, nothing for marks, and a space for everything else."""
    if part.isascii() and part.isalnum():
        return part
    return "" if unicodedata.combining(part) or part in APOSTROPHES else " "


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Return the words of a text in a-z and 0-9, one space between them: `Peñón  [Rancho]` is `penon rancho`."""
    return " ".join(text.translate(_FOLDING).split())


def fold_header(header: str) -> str:
    """Return the header of a column as one word: `Clave del Municipio` is `clave_del_municipio`."""
    return fold(header).replace(" ", "_")
