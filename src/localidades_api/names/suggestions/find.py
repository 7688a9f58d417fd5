"""Finds the places of a filtered list: all that match, in the order of the list (docs/decisions/names.md)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tantivy import Query

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KINDS, PlaceKind
from localidades_api.names.files.layout import JOINED, KEY, LABEL
from localidades_api.names.files.query import MAX_BEGINNING, all_of, any_of, wrong_letters
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reading.text import canonical_words, open_word, repair

# The filters that the index of names has, each with the letter of its terms in `word_writer`.
_LETTERS = {"estado_id": "e", "municipio_id": "m", "clave": "c", "ambito": "a"}
INDEXED = frozenset({"search", "cvegeo", *_LETTERS})
# Finds places that have a word in its names (`name`), or in its names and areas (`text`).
_Part = Callable[[str, str], Query]


def searched(text: str) -> str:
    """Return a search as it is compared: searches with the same return value find the same places."""
    return fold(repair(text[:MAX_TEXT]))


class Finder:
    """Finds places by words, label or key, narrowed by the other filters."""

    def __init__(self, index: IndexReader) -> None:
        self._words = index.words
        self._layout = index.layout

    def find(self, text: str, filters: LocalityFilters) -> list[int]:
        """Return the positions of the places that a text, as `searched`, and the filters in `INDEXED` select, in order.

        The filters don't change the meaning of the words: letters may be wrong only if no place of the release has the
        words as typed.
        """
        narrow = self._narrowing(filters)
        for query in self._queries(text):
            narrowed = all_of([query, *narrow])
            found = self._words.positions(narrowed)
            if found or (narrow and self._words.propose(query, 1)):
                return found
        return []

    def _narrowing(self, filters: LocalityFilters) -> list[Query]:
        chosen = ((letter, filters.chosen.get(name)) for name, letter in _LETTERS.items())
        found = [
            any_of([self._words.area(f"{letter}{value}") for value in values.split(",")])
            for letter, values in chosen
            if values
        ]
        if filters.cvegeo is not None:
            found.append(any_of([self._words.place(int(key)) for key in filters.cvegeo.split(",")]))
        return found

    def _queries(self, folded: str) -> Iterator[Query]:
        yield from self._keys(folded)
        if rows := self._layout.find(LABEL, folded):
            yield self._rows(rows)
        yield from self._names(folded)

    def _rows(self, rows: Iterable[int]) -> Query:
        return any_of([self._words.place(self._layout.record(row)[0]) for row in rows])

    def _keys(self, folded: str) -> Iterator[Query]:
        """Yield the places with a key, or in the area with that key; a place is also found by its earlier keys."""
        digits = folded.replace(" ", "")
        if not digits.isdecimal():
            return
        if len(digits) in {8, 9} and (rows := self._layout.find(KEY, str(int(digits)))):
            yield self._rows(rows)
        kinds: tuple[PlaceKind, ...] = ("estado", "municipio")
        for kind in kinds:
            if len(digits) == KINDS[kind].digits:
                yield self._words.area(f"{kind[0]}{int(digits)}")

    def _names(self, folded: str) -> Iterator[Query]:
        """Yield readings of the words of names and areas: as typed, then with letters wrong."""
        typed = folded.split()
        words = _distinct([word for word in typed if open_word(word)] or typed)
        if not words:
            return
        whole = canonical_words(folded)
        readings = [self._every(words)]
        if whole != tuple(opened for word in typed for opened in open_word(word)):
            readings.append(self._every(_distinct(whole)))  # several words are one: `buena vista` is Buenavista
        yield any_of(readings)
        yield all_of([self._begun(word, "text") for word in words])  # only areas were named
        if rows := self._layout.find(JOINED, folded.replace(" ", "")):
            yield self._rows(rows)
        for is_unfinished in (False, True):
            yield from self._misspelt(_distinct(whole), is_unfinished=is_unfinished)

    def _every(self, words: Sequence[str], part: _Part | None = None) -> Query:
        """Find places that have every word in their names or areas, and at least one of them in their names."""
        part = part or self._begun
        named = any_of([part(word, "name") for word in words])
        return named if len(words) == 1 else all_of([named, *(part(word, "text") for word in words)])

    def _begun(self, word: str, field: str) -> Query:
        """Find places with a word that begins like this one, or with the word that it abbreviates."""
        words, opened = self._words, open_word(word)
        is_short = field == "text" and len(word) <= MAX_BEGINNING
        parts = [words.word("begin", word) if is_short else words.like(field, word, 0), words.like("raw", word, 0)]
        if opened not in {(word,), ()}:
            parts.append(all_of([words.word(field, full) for full in opened]))
        return any_of(parts)

    def _misspelt(self, words: Sequence[str], *, is_unfinished: bool) -> Iterator[Query]:
        """Yield places with letters wrong in the words that no place has, or in any word if places have all of them."""

        def wrong(*ones: str) -> _Part:
            def part(word: str, field: str) -> Query:
                begun = self._begun(word, field)
                if word not in ones:
                    return begun
                return any_of([begun, self._words.like(field, word, wrong_letters(word), prefix=is_unfinished)])

            return part

        checked = [word for word in words if wrong_letters(word) and not word.isdigit()]
        unknown = [word for word in checked if not self._words.propose(self._begun(word, "text"), 1)]
        if unknown:
            yield self._every(words, wrong(*unknown))
        elif checked:
            yield any_of([self._every(words, wrong(word)) for word in checked])


def _distinct(words: Sequence[str]) -> list[str]:
    """Return the words once, the longest first, without `san` if `santa`, which begins with it, is there."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return [word for index, word in enumerate(ordered) if not any(long.startswith(word) for long in ordered[:index])]
