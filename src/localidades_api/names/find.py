"""Finds the places of a filtered list: all that match, in the order of the list (docs/decisions/names.md)."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from tantivy import Query

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEY_DIGITS, PlaceKind
from localidades_api.names.layout import JOINED, KEY, LABEL
from localidades_api.names.query import MAX_BEGINNING, all_of, any_of, wrong_letters
from localidades_api.names.reader import IndexReader
from localidades_api.names.text import canonical_words, open_word, repair

# The filters that the index of names has, each with the letter of its terms in `build`.
_LETTERS = {"estado_id": "e", "municipio_id": "m", "clave": "c", "ambito": "a"}
INDEXED = frozenset({"search", "cvegeo", *_LETTERS})
# Finds what has a word in its names (`name`), or in its names and areas (`text`).
_Part = Callable[[str, str], Query]


def searched(text: str) -> str:
    """Return what a search is for: searches that return the same find the same."""
    return fold(repair(text))


class Finder:
    """Finds places by words, label or key, narrowed by the other filters."""

    def __init__(self, index: IndexReader) -> None:
        self._words = index.words
        self._layout = index.layout

    def find(self, filters: LocalityFilters) -> list[int]:
        """Return the positions of the places that the filters in `INDEXED` select, in order; `search` must be set.

        What the words mean doesn't depend on the other filters: letters are taken for wrong only where no place of
        the release has the words as they are.
        """
        folded, narrow = searched(filters.search or ""), self._narrowing(filters)
        for query in self._queries(folded):
            narrowed = all_of([query, *narrow])
            found = self._words.positions(narrowed, max(self._layout.rows, 1))
            if found or (narrow and self._words.propose(query, 1)):
                return found
        return []

    def _narrowing(self, filters: LocalityFilters) -> list[Query]:
        """Return the queries for the other filters, whose terms are those that `names.build` writes."""
        chosen = filters.chosen
        found = [self._words.area(f"{letter}{chosen[name]}") for name, letter in _LETTERS.items() if name in chosen]
        if filters.cvegeo is not None:
            found.append(any_of([self._words.place(int(key)) for key in filters.cvegeo.split(",")]))
        return found

    def _queries(self, folded: str) -> Iterator[Query]:
        """Yield what a text may mean; what finds something first is meant."""
        yield from self._keys(folded)
        if rows := self._layout.find(LABEL, folded):
            yield self._rows(rows)
        yield from self._names(folded)

    def _rows(self, rows: Iterable[int]) -> Query:
        return any_of([self._words.place(self._layout.record(row)[0]) for row in rows])

    def _keys(self, folded: str) -> Iterator[Query]:
        """Yield what has a key, or lies in the area that has it; a place is found by its earlier keys as well."""
        digits = folded.replace(" ", "")
        if not digits.isdecimal():
            return
        if len(digits) in {8, 9} and (rows := self._layout.find(KEY, str(int(digits)))):
            yield self._rows(rows)
        kinds: tuple[PlaceKind, ...] = ("estado", "municipio")
        for kind in kinds:
            if len(digits) == KEY_DIGITS[kind]:
                yield self._words.area(f"{kind[0]}{int(digits)}")

    def _names(self, folded: str) -> Iterator[Query]:
        """Yield what the words of names and areas may mean: as they are, then with letters wrong."""
        typed = folded.split()
        words = _distinct([word for word in typed if open_word(word)] or typed)
        if not words:
            return
        whole = canonical_words(folded)
        meant = [self._every(words)]
        if whole != tuple(opened for word in typed for opened in open_word(word)):
            meant.append(self._every(_distinct(whole)))  # several words stand for one: `buena vista` for Buenavista
        yield any_of(meant)
        yield all_of([self._begun(word, "text") for word in words])  # only areas were named
        if rows := self._layout.find(JOINED, folded.replace(" ", "")):
            yield self._rows(rows)
        for is_unfinished in (False, True):
            yield from self._misspelt(_distinct(whole), is_unfinished=is_unfinished)

    def _every(self, words: Sequence[str], part: _Part | None = None) -> Query:
        """Every word stands in the names or areas of a place, and one of them in its names."""
        part = part or self._begun
        named = any_of([part(word, "name") for word in words])
        return named if len(words) == 1 else all_of([named, *(part(word, "text") for word in words)])

    def _begun(self, word: str, field: str) -> Query:
        """Find what has a word that begins so, or the word that this one stands for."""
        words, opened = self._words, open_word(word)
        is_short = field == "text" and len(word) <= MAX_BEGINNING
        parts = [words.word("begin", word) if is_short else words.like(field, word, 0), words.like("raw", word, 0)]
        if opened not in {(word,), ()}:
            parts.append(all_of([words.word(field, one) for one in opened]))
        return any_of(parts)

    def _misspelt(self, words: Sequence[str], *, is_unfinished: bool) -> Iterator[Query]:
        """Yield places with letters wrong in the words that no place has, or in one where each has its places."""

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
    """Return the words once, the longest first; `san` is left out beside `santa`, which begins with it."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return [word for index, word in enumerate(ordered) if not any(one.startswith(word) for one in ordered[:index])]
