"""Normalises names by rules on top of `catalogue.folding`.

`fold` makes texts comparable letter by letter. `canonical` goes further: it opens abbreviations, writes every
number in digits and leaves out articles and prepositions, so that `Fco. I. Madero 1ra. Secc.` and `FRANCISCO I MADERO
PRIMERA SECCION` are the same words.
"""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from localidades_api.catalogue import folding
from localidades_api.names.reading.vocabulary import (
    ABBREVIATIONS,
    ARTICLES,
    ESTADOS,
    FILLER,
    GENERICS,
    LINKS,
    NOTE,
    NUMBERS,
    PHRASES,
    SAME,
    STOP_WORDS,
    TOTAL,
)

_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]?")
# With a possessive `*+` and a start that is not a blank, time is in proportion to the blanks, not to their square.
_MOVED_ARTICLE = re.compile(r"^([^,]*\S)\s*,\s*(el|la|los|las)\s*+[,.]?\s*$", re.IGNORECASE)
_BRACKETED_ARTICLE = re.compile(r"(?<!\s)\s*\((el|la|los|las)\)$", re.IGNORECASE)
_ENDING_ARTICLE = re.compile(r"^(.*\S)\s+(el|la|los|las)\s*+[,.]?\s*$", re.IGNORECASE)
_ORDINAL = re.compile(r"([0-9]{1,3})(?:a|o|ra|ro|er|da|do|ta|to|va|vo|na|no|ma|mo|ava|avo|ero|era)")
_SPLIT_ORDINAL = re.compile(r"\b([0-9]{1,2}) (ra|ro|er|da|do|ta|to|va|vo|na|no|ma|mo)\b")
# A letter inside a word that an encoding destroyed, and the signs of UTF-8 read as windows-1252.
_LOST_LETTER = re.compile("(?<=\\w)[?¿¬\N{REPLACEMENT CHARACTER}]+[\N{LEFT DOUBLE QUOTATION MARK}\N{EN DASH}]?(?=\\w)")
_MISREAD = re.compile("[ÃÂ]")
# The letters of MS-DOS read as windows-1252: `PE¥A` is Peña.
_MS_DOS = str.maketrans(
    {"¥": "Ñ", "¤": "ñ", "¢": "ó", "¡": "í", "£": "ú", "\N{SINGLE LOW-9 QUOTATION MARK}": "é",
     "\N{NO-BREAK SPACE}": "á", "µ": "Á", "š": "Ü", "\x81": "ü", "\x90": "É"}
)  # fmt: skip
_OF_MS_DOS = "¥¤¢¡£\N{SINGLE LOW-9 QUOTATION MARK}µš\x81\x90"
_IN_WORD = re.compile(rf"(?<=\w)[{_OF_MS_DOS}]|[{_OF_MS_DOS}](?=\w)")
# A space of that sort is more likely one before a capital, in a text without capitals, and beside a whole word.
_A_WITH_ACCENT = re.compile("(?<![^\\W_])([^\\W_]+)\N{NO-BREAK SPACE}([a-zñ]\\w*)")
_DAMAGE = frozenset(f"?¿¬\N{REPLACEMENT CHARACTER}ÃÂ&\N{NO-BREAK SPACE}{_OF_MS_DOS}")  # most texts have none
_DIGIT = re.compile("[0-9] ")
_CACHED_WORDS = 30_000
_CACHED_TEXTS = 4096
MAX_WORDS = 30  # of a text: the longest label of a place has 17
_DITTO = frozenset({'"', "''", "〃"})
_LONGEST_FILLER = 40  # characters

# A name of a row, and that of each place it is compared with, is folded many times.
fold = lru_cache(_CACHED_TEXTS)(folding.fold)


class ParsedName(NamedTuple):
    """A name taken apart: the text outside its brackets, and the texts inside."""

    main: str
    inner: tuple[str, ...]


def repair(text: str) -> str:
    """Undo the damage of wrong encodings as far as possible: `BahÃ­a` is Bahía, `PE¥A` Peña."""
    if _DAMAGE.isdisjoint(text):
        return text
    if "&" in text:
        text = html.unescape(text)
    if _MISREAD.search(text):
        with suppress(UnicodeError):  # the text was right
            text = text.encode("cp1252").decode("utf-8")
    text = _IN_WORD.sub(lambda found: found[0].translate(_MS_DOS), text)
    if "\N{NO-BREAK SPACE}" in text and not text.islower():
        text = _A_WITH_ACCENT.sub(_with_accent, text)
    return _LOST_LETTER.sub("", text)


def _with_accent(found: re.Match[str]) -> str:
    parts = [fold(part) for part in found.groups()]
    is_space = any(part in STOP_WORDS or part in GENERICS or part in {"san", "santa", "santo"} for part in parts)
    return found[0] if is_space else found[0].translate(_MS_DOS)


def take_apart(text: str) -> ParsedName:
    """Return a name without its brackets and with its article in front, and the texts in the brackets."""
    inner: tuple[str, ...] = ()
    if text.endswith(")"):
        text = _BRACKETED_ARTICLE.sub(r", \1", text)
    if "(" in text or "[" in text or "{" in text:
        inner = tuple(found for part in _BRACKETS.findall(text) if (found := part.strip()))
        text = _BRACKETS.sub(" ", text).strip()
    if "," in text and (moved := _MOVED_ARTICLE.match(text)):
        text = f"{moved[2]} {moved[1]}"
    return ParsedName(text, inner)


def with_article(text: str) -> str | None:
    """Return a name with its trailing article moved to the front (`VENTA LA`); None if there is none."""
    moved = _ENDING_ARTICLE.match(text)
    if moved is None or fold(moved[1]).rpartition(" ")[2] in LINKS:
        return None
    return f"{moved[2]} {moved[1]}"


_PHRASE_STARTS = frozenset(phrase[0] for phrase in PHRASES)
_MAX_PHRASE = max(map(len, PHRASES))


@lru_cache(_CACHED_WORDS)
def open_word(word: str) -> tuple[str, ...]:
    """Return the canonical words of a folded one: `sta` is `santa`, `1ra` is `1`, `de` is nothing."""
    if number := NUMBERS.get(word):
        return (number,)
    if word[0].isdigit():
        ordinal = _ORDINAL.fullmatch(word)
        return ((ordinal[1] if ordinal else word).lstrip("0") or "0",)
    return () if word in STOP_WORDS else ABBREVIATIONS.get(word, (word,))


def canonical(text: str) -> tuple[str, ...]:
    """Return the canonical words of a text, in order; all of its words if each is a stop word."""
    return canonical_words(fold(text))


def canonical_name(text: str) -> tuple[str, ...]:
    """Return the canonical words of a whole name, in which `LINKS` at an edge count."""
    return canonical_words(fold(text), is_whole=True)


def canonical_words(folded: str, *, is_whole: bool = False) -> tuple[str, ...]:
    """Return the canonical words of a folded text, `MAX_WORDS` at most; `is_whole` as for `canonical_name`."""
    if _DIGIT.search(folded):
        folded = _SPLIT_ORDINAL.sub(r"\1", folded)
    words = folded.split(" ", MAX_WORDS)[:MAX_WORDS] if folded else []
    if not _PHRASE_STARTS.isdisjoint(words):
        words = list(_open_phrases(words))
    opened = tuple([part for word in words for part in open_word(word)][:MAX_WORDS])
    if "numero" in opened:
        opened = tuple(_without_numero(opened))
    if not opened:
        opened = tuple(words)
    elif is_whole:
        ends = words[-2:-1] if words[-1] in ARTICLES - LINKS else words[-1:]  # `La Piedra de la`
        opened = (*LINKS.intersection(words[:1]), *opened, *LINKS.intersection(ends))
    if not _PHRASE_STARTS.isdisjoint(opened):
        again = tuple(_open_phrases(list(opened)))  # `n de c p`: a stop word separated the phrase
        return opened if again == opened else canonical_words(" ".join(again))
    return opened


def _without_numero(words: Sequence[str]) -> Iterator[str]:
    """Yield words without `numero` before a number, which says nothing: `Campo No. 2`."""
    for word, behind in zip_longest(words, words[1:], fillvalue=""):
        if word != "numero" or not behind.isdigit():
            yield word


def _open_phrases(words: list[str]) -> Iterator[str]:
    at = 0
    while at < len(words):
        if words[at] in _PHRASE_STARTS:
            for length in range(_MAX_PHRASE, 0, -1):
                if opened := PHRASES.get(tuple(words[at : at + length])):
                    yield from opened
                    at += length
                    break
            else:
                yield words[at]
                at += 1
        else:
            yield words[at]
            at += 1


def state_names(estado_id: int, estado: str) -> list[str]:
    """Return the folded names of an estado: the official one, then those that people use."""
    return list(dict.fromkeys([fold(estado), *(ESTADOS[estado_id].names if estado_id in ESTADOS else ())]))


def forms_of_state(estado_id: int, estado: str) -> list[tuple[str, ...]]:
    """Return the names of an estado as canonical words."""
    return [canonical_words(name) for name in state_names(estado_id, estado)]


def core(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name without those for the kind of a place; all of them if nothing would be left."""
    return tuple(word for word in words if word not in GENERICS) or words


def variants(text: str) -> list[tuple[str, ...]]:
    """Return the canonical words of a name's variants: outside the brackets, the whole, and inside each bracket.

    A bracket counts as a name unless it only says the kind of the place (`[Rancho]`).
    """
    name = take_apart(text)
    main = canonical_name(name.main)
    if not name.inner:
        return [main]
    found = [canonical(part) for part in name.inner]
    whole = main + tuple(word for part in found for word in part)
    names = [main, whole, *(part for part in found if not GENERICS.issuperset(part))]
    return list(dict.fromkeys(names if main else [whole, *names[2:]]))


@lru_cache(_CACHED_TEXTS)
def is_filler(text: str | None) -> bool:
    """Return whether a text says only that no place is given: `Sin localidad`, `-`, `Total`, `Fuente: INEGI`."""
    if not text or NOTE.match(text):
        return bool(text)
    is_short = len(text) <= _LONGEST_FILLER
    return is_short and (not any(map(str.isalnum, text)) or FILLER.fullmatch(fold(text)) is not None)


def explain_filler(text: str) -> str:
    """Return why a text that is a filler names no place."""
    folded = fold(text)
    if re.fullmatch(TOTAL, folded):
        return "Its name is that of a total: the row is of no place."
    if NOTE.match(text):
        return "It is a note on the list: the row is of no place."
    if re.fullmatch(SAME, folded) or text.strip() in _DITTO:
        return "Its name refers to another row: repeat the place in each."
    return "Its name says that no place is given."
