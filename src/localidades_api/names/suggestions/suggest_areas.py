"""Suggests the estados and municipios that a text names, and searches their lists."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, takewhile
from operator import attrgetter
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE, KINDS, PlaceKind, kind_of_key, state_of
from localidades_api.names import weights
from localidades_api.names.files.query import MAX_WRONG, ParsedQuery, readings, wrong_letters
from localidades_api.names.places import IndexedLocality
from localidades_api.names.reading.areas import AreaBook, untitled
from localidades_api.names.reading.text import canonical_words, open_word, state_names
from localidades_api.names.suggestions.ranking import Fit, fit

_MIN_BEGINNING_OF_ESTADO = 3  # letters: `san j` is not every San in Jalisco
_LETTERS_PER_WRONG_ONE = 5  # of a whole name
_CACHED_WORDS = 1024


class _Having(NamedTuple):
    """The areas that have a word in one of their names, and the municipios of the estados that have it."""

    named: frozenset[int]
    within: frozenset[int]


class AreaSuggester:
    """Finds the areas that have every word of a text, whole or begun, and ranks them as localities are ranked."""

    def __init__(self, book: AreaBook, places: Mapping[int, IndexedLocality]) -> None:
        """Index the words of `places`: the areas of the book, as places with names."""
        self._places = places
        self._labels = {id_: fold(book.label(id_)) for id_ in book.municipios}
        self._named: dict[str, set[int]] = defaultdict(set)  # the areas with a word in one of their names
        self._joined: dict[str, dict[int, str]] = defaultdict(dict)  # and by a name without its spaces: its spelling
        self._municipios: dict[int, list[int]] = defaultdict(list)
        for id_, area in places.items():
            texts = {fold(name.written or area.nombre): name.written for name in area.names}
            if id_ < KEYS_OF_A_STATE:
                texts |= dict.fromkeys(state_names(id_, area.nombre), "")
            else:
                self._municipios[state_of(id_)].append(id_)
                texts.setdefault(fold(book.label(id_).rpartition(",")[0]), "")  # with the clave of a homonym
            for text, written in texts.items():
                self._joined[text.replace(" ", "")].setdefault(id_, written)
            for word in chain(*map(str.split, texts), *(name.words for name in area.names)):
                self._named[word].add(id_)
        self._words = sorted(self._named)
        self._begun = lru_cache(_CACHED_WORDS)(self._find_begun)

    def suggest(self, text: str, kinds: Collection[PlaceKind]) -> list[tuple[int, Fit]]:
        """Return the areas that a text may mean, the likeliest first, and how the best of their names fits.

        Letters may be wrong only if no area of these kinds has the words; beside localities, only in a whole name.
        """
        typed = readings(text)
        if fits := self._ranked(self._fits(typed, self._with_every_word(typed[0].folded)), kinds):
            return fits
        fits = self._ranked(self._misspelt(typed), kinds)
        return [item for item in fits if item[1].points >= weights.WHOLE_NAME] if "localidad" in kinds else fits

    def find(self, text: str, kind: PlaceKind) -> list[int]:
        """Return the keys of the areas that a search finds, the likeliest first.

        They are those with a key, else those that `suggest` returns; if only an estado was named, its municipios.
        """
        typed = readings(text)
        folded = typed[0].folded
        digits = folded.replace(" ", "")
        if digits.isdecimal() and len(digits) == KINDS[kind].digits:
            return [int(digits)] if int(digits) in self._places and kind_of_key(int(digits)) == kind else []
        if digits.isdecimal() and len(digits) == KINDS["estado"].digits:
            return self._municipios.get(int(digits), [])
        if kind == "municipio" and not self._ranked(self._fits(typed, self._with_every_word(folded)), [kind]):
            parts = [self._begun(word).within for word in canonical_words(folded)]
            if parts and (within := frozenset.intersection(*parts)):
                return sorted(within)
        return [id_ for id_, _ in self.suggest(text, [kind])]

    def _ranked(self, fits: Mapping[int, Fit], kinds: Collection[PlaceKind]) -> list[tuple[int, Fit]]:
        """Return the areas of these kinds, those that fit best first; of homonyms the largest."""
        found = [(id_, best) for id_, best in fits.items() if kind_of_key(id_) in kinds]
        return sorted(found, key=lambda item: (-item[1].points, -(self._places[item[0]].poblacion or 0), item[0]))

    def _fits(self, typed: Sequence[ParsedQuery], areas: Iterable[int]) -> dict[int, Fit]:
        """Return how each area fits: its label, or the words of its names."""
        return {
            id_: Fit(weights.SAME_NAME, "label", "")
            if typed[0].folded == self._labels.get(id_)
            else max((fit(reading, self._places[id_]) for reading in typed), key=attrgetter("points"))
            for id_ in areas
        }

    # -- As typed

    def _with_every_word(self, folded: str) -> set[int]:
        """Return the areas with every word; without titles such as `Municipio de` if there is none with them."""
        words = canonical_words(folded)
        typed = folded.split()
        spoken = tuple([word for word in typed if open_word(word)] or typed)
        found = _every(map(self._begun, spoken)) | _every(map(self._begun, words))
        return found or _every(map(self._begun, untitled(words)))

    def _find_begun(self, word: str) -> _Having:
        """Return what has a word that begins like this one, or with the words that it abbreviates."""
        named = self._having(self._beginning(word))
        of_estado = named if len(word) >= _MIN_BEGINNING_OF_ESTADO else self._having([word])
        opened = open_word(word)
        if opened not in {(word,), ()}:
            full = frozenset.intersection(*(self._having(self._beginning(part)) for part in opened))
            named, of_estado = named | full, of_estado | full
        return _Having(named, self._within(of_estado))

    def _beginning(self, letters: str) -> Iterator[str]:
        words = islice(self._words, bisect_left(self._words, letters), None)
        return takewhile(lambda word: word.startswith(letters), words)

    def _having(self, words: Iterable[str]) -> frozenset[int]:
        return frozenset(chain.from_iterable(self._named.get(word, ()) for word in words))

    def _within(self, areas: Iterable[int]) -> frozenset[int]:
        return frozenset(chain.from_iterable(self._municipios.get(id_, ()) for id_ in areas if id_ < KEYS_OF_A_STATE))

    # -- With letters wrong

    def _misspelt(self, typed: Sequence[ParsedQuery]) -> dict[int, Fit]:
        """Return how areas fit with letters wrong: in their words, which may be unfinished if none is like them.

        Of a whole name, the spaces may be wrong as well.
        """
        words = canonical_words(typed[0].folded)
        areas = self._with_words_like(words) or self._with_words_like(words, is_unfinished=True)
        fits = self._fits(typed, areas)
        letters = typed[0].folded.replace(" ", "")
        most = min(MAX_WRONG, len(letters) // _LETTERS_PER_WRONG_ONE)
        like = process.extract(letters, list(self._joined), scorer=OSA.distance, score_cutoff=most, limit=None)
        for name, wrong, _ in like:
            for id_, written in self._joined[name].items():
                joined = Fit(weights.JOINED_NAME - wrong * weights.MISSPELT_LETTER, "near", written)
                fits[id_] = max(fits.get(id_, joined), joined, key=attrgetter("points"))
        return fits

    def _with_words_like(self, words: Sequence[str], *, is_unfinished: bool = False) -> set[int]:
        """Return the areas with letters wrong in the words that no area has, or in any word if all are known."""
        exact = [self._begun(word) for word in words]
        checked = [at for at, word in enumerate(words) if wrong_letters(word) and not word.isdigit()]
        unknown = [at for at in checked if not exact[at].named]
        found: set[int] = set()
        for wrong in [unknown] if unknown else [[at] for at in checked]:
            parts = list(exact)
            for at in wrong:
                named = self._having(self._words_like(words[at], is_unfinished=is_unfinished))
                parts[at] = _Having(named, self._within(named))
            found |= _every(parts)
        return found

    def _words_like(self, word: str, *, is_unfinished: bool) -> list[str]:
        """Return the words that are, or begin, like this one, with letters wrong."""
        choices = [known[: len(word)] for known in self._words] if is_unfinished else self._words
        like = process.extract(word, choices, scorer=OSA.distance, score_cutoff=wrong_letters(word), limit=None)
        return [self._words[at] for _, _, at in like]


def _every(parts: Iterable[_Having]) -> set[int]:
    """Return the areas that have every word in their names or in those of their estado, and one in their names."""
    every = list(parts)
    found = set[int]().union(*(part.named for part in every))
    for part in every:
        found &= part.named | part.within
    return found
