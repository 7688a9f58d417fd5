"""Names as people type them: without case, accents or punctuation (decision 0008).

What is folded is ASCII, so comparing and searching it gives the same answers whatever locale the database has.
"""

import unicodedata

# What INEGI writes for something else: `Concepci½n` is Concepción, `N°` and `Nº` are `No`. The last is I in capitals.
_STANDS_FOR = {"½": "o", "°": "o", "\N{LATIN SMALL LETTER DOTLESS I}": "i"}
# Within a word they are no boundary: `D'Artagnan` is one word, however its apostrophe is written. The last three are
# the glottal stop of native languages.
_APOSTROPHES = (
    "'`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{PRIME}"
    "\N{MODIFIER LETTER APOSTROPHE}\N{LATIN CAPITAL LETTER SALTILLO}\N{LATIN SMALL LETTER SALTILLO}"
)
_FIRST_RARE = 0x2200  # Latin and punctuation end here; what clients make up beyond must not fill the memory


class _Folding(dict[int, str]):
    """What each character becomes, found out once."""

    def __missing__(self, code: int) -> str:
        folded = self._fold(chr(code))
        if code < _FIRST_RARE:
            self[code] = folded
        return folded

    @staticmethod
    def _fold(character: str) -> str:
        character = unicodedata.normalize("NFC", character)  # Greek has a grave and an acute accent of its own
        if character in _APOSTROPHES:
            return ""
        decomposed = unicodedata.normalize("NFKD", _STANDS_FOR.get(character, character)).casefold()
        return "".join(map(_plain, unicodedata.normalize("NFKD", decomposed)))


def _plain(part: str) -> str:
    """Return a letter or digit itself, nothing for what only marks one, and a space for what ends a word."""
    if part.isascii() and part.isalnum():
        return part
    return "" if unicodedata.combining(part) or part in _APOSTROPHES else " "


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Return the words of a text in a-z and 0-9, one space between them: `Peñón  [Rancho]` is `penon rancho`."""
    return " ".join(text.translate(_FOLDING).split())
