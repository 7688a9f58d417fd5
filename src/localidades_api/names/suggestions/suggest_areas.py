"""Finds the estados and municipios that a text names, for suggestions and for searches of their lists."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from rapidfuzz import process
from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE, KINDS, PlaceKind, kind_of_key, state_of
from localidades_api.catalogue.schemas import MatchReason
from localidades_api.names import weights
from localidades_api.names.files.query import wrong_letters
from localidades_api.names.places import NameKind, PlaceName
from localidades_api.names.reading.areas import AreaBook, untitled
from localidades_api.names.reading.text import (
    canonical,
    canonical_words,
    core,
    open_word,
    repair,
    state_names,
    variants,
)
from localidades_api.names.suggestions.ranking import REASONS

_MIN_BEGINNING_OF_ESTADO = 3  # letters
_CACHED_WORDS = 1024
_MAX_WRONG_LETTERS = 2  # of a whole name
_LETTERS_PER_WRONG_ONE = 4
_OF_SEATS = frozenset({NameKind.SEAT, NameKind.EVERYDAY})
_Words: TypeAlias = tuple[str, ...]


class SuggestedArea(NamedTuple):
    """An estado or municipio that a text may mean: how alike they are, from 0 to 100, why, and by which name."""

    id: int
    likeness: float
    match: MatchReason
    name: PlaceName


class _Found(NamedTuple):
    """Words of names, the areas with any of them in their names, and the estados whose municipios may be meant."""

    words: frozenset[str]
    named: frozenset[int]
    estados: frozenset[int]


class _Reading(NamedTuple):
    """Words that may be the name of an area, and the estados that the other words name, if there are any."""

    name: str
    estados: Collection[int] | None = None

    def allows(self, id_: int) -> bool:
        """Return whether an area is in one of the estados."""
        return self.estados is None or state_of(id_) in self.estados


class AreaSuggester:
    """Suggests estados and municipios by their names, those of cabeceras, and former ones."""

    def __init__(self, book: AreaBook, former: Mapping[int, str], seats: Mapping[int, Sequence[str]]) -> None:
        """Read the names; `seats` has the name of each municipio's cabecera, followed by everyday names of it."""
        self._labels = sorted((fold(book.label(id_)), id_) for id_ in (*book.estados, *book.municipios))
        self._names: dict[int, list[PlaceName]] = {}
        self._by_name: dict[str, list[tuple[int, PlaceName]]] = defaultdict(list)
        self._unspaced: dict[str, list[tuple[int, PlaceName]]] = defaultdict(list)
        self._named: dict[str, set[int]] = defaultdict(set)
        for id_, estado in book.estados.items():
            texts = [text for name in state_names(id_, estado) for text in (name, f"estado {name}")]
            self._add(id_, ((NameKind.OWN, text, canonical_words(text)) for text in texts))
        for id_, nombre in book.municipios.items():
            self._add(id_, _written(nombre, book.words[id_], seats.get(id_, ()), former.get(id_)))
        self._text = "".join(f"\n{name}" for name in self._by_name) + "\n"  # searched for beginnings
        self._words = sorted(self._named)
        self._by_length: dict[int, list[str]] = defaultdict(list)
        for name in self._by_name:
            self._by_length[len(name)].append(name)
        self._begun = lru_cache(_CACHED_WORDS)(self._find_begun)

    def _add(self, id_: int, names: Iterable[tuple[NameKind, str, _Words]]) -> None:
        """Add an area with its names, each of which has a kind, a spelling and words."""
        known: dict[_Words, PlaceName] = {}
        for kind, text, words in names:
            folded = fold(text)
            for word in (*folded.split(), *words):
                self._named[word].add(id_)
            if words not in known:
                name = known[words] = PlaceName(kind, words, "" if kind is NameKind.OWN else text)
                self._by_name[" ".join(words)].append((id_, name))
                self._unspaced[folded.replace(" ", "")].append((id_, name))
        self._names[id_] = list(known.values())

    def suggest(self, text: str, kinds: Collection[PlaceKind]) -> list[SuggestedArea]:
        """Return the areas that a text may mean, the likeliest first.

        The words may be unfinished and in any order; the estado may come before or after its municipio. Beside
        localities, municipios are not suggested by the names of their seats, which are suggested themselves.
        """
        folded, beside = fold(repair(text)), "localidad" in kinds
        found = [*self._as_typed(folded, kinds), *self._alike(folded)]
        if not beside and not any(kind_of_key(area.id) in kinds for area in found):
            found = self._misspelt(folded)
        return _ranked(
            area for area in found if kind_of_key(area.id) in kinds and not (beside and area.name.kind in _OF_SEATS)
        )

    def find(self, text: str, kind: PlaceKind) -> list[int]:
        """Return the keys of the areas that a search finds, the likeliest first.

        They are those with a key, else those that `suggest` returns, with letters wrong only if there are no others,
        nor an estado with the words.
        """
        folded = fold(repair(text))
        if found := self._by_key(folded, kind):
            return found
        suggested = self._as_typed(folded, [kind])
        if not suggested and kind == "municipio" and (found := self._in_estado(folded)):
            return found
        return [area.id for area in _ranked(suggested) or self.suggest(text, [kind])]

    def _by_key(self, folded: str, kind: PlaceKind) -> list[int]:
        """Return the area with a key, or the municipios of the estado with it."""
        digits = folded.replace(" ", "")
        if not digits.isdecimal():
            return []
        if len(digits) == KINDS[kind].digits:
            return [int(digits)] if int(digits) in self._names and kind_of_key(int(digits)) == kind else []
        return self._municipios_of({int(digits)}) if len(digits) == KINDS["estado"].digits else []

    def _in_estado(self, folded: str) -> list[int]:
        """Return the municipios of the estados that have every word, unfinished or not."""
        found = [self._begun(word).estados for word in canonical_words(folded)]
        estados = frozenset.intersection(*found) if found else frozenset[int]()
        return self._municipios_of(estados)

    def _municipios_of(self, estados: Collection[int]) -> list[int]:
        return [id_ for id_ in sorted(self._names) if id_ >= KEYS_OF_A_STATE and state_of(id_) in estados]

    # -- As typed

    def _as_typed(self, folded: str, kinds: Collection[PlaceKind]) -> list[SuggestedArea]:
        """Return the areas with every word; without titles such as `Municipio de` if there is none with them."""
        words = canonical_words(folded)
        bare = untitled(words)
        found = [area for area in self._with_every_word(folded, words) if kind_of_key(area.id) in kinds]
        if not found and bare != words:
            found = [area for area in self._with_every_word(" ".join(bare), bare) if kind_of_key(area.id) in kinds]
        return found

    def _with_every_word(self, folded: str, words: _Words) -> Iterator[SuggestedArea]:
        """Yield the areas with a label or a name that goes on as the text does, then those that have its words."""
        known: set[int] = set()
        for area in chain(self._labelled(folded), self._beginning(words)):
            known.add(area.id)
            yield area
        typed = folded.split()
        spoken = tuple([word for word in typed if open_word(word)] or typed)
        for reading in {spoken, words}:
            parts = list(map(self._begun, reading))
            for id_ in _with_every(parts) - known:
                yield SuggestedArea(id_, weights.WORDS_LIKENESS, "words", self._name_with(parts, id_))

    def _labelled(self, folded: str) -> Iterator[SuggestedArea]:
        """Yield the areas whose label is a text, or begins so."""
        for label, id_ in islice(self._labels, bisect_left(self._labels, (folded,)) if folded else None, None):
            if not folded or not label.startswith(folded):
                return
            is_whole = label == folded and id_ >= KEYS_OF_A_STATE  # an estado's label is its name
            likeness = weights.SAME_NAME if is_whole else weights.BEGINNING_LIKENESS
            yield SuggestedArea(id_, likeness, "label" if is_whole else "prefix", self._names[id_][0])

    def _beginning(self, words: _Words) -> Iterator[SuggestedArea]:
        """Yield the areas with a name that is, begins with, or has a word that begins with these words."""
        for reading in self._readings(words):
            for before, usual in (("\n", weights.BEGINNING_LIKENESS), (" ", weights.WORD_BEGINNING_LIKENESS)):
                for written in self._containing(before + reading.name):
                    is_whole = written == reading.name
                    likeness = weights.SAME_NAME if is_whole else usual
                    for id_, name in self._by_name[written]:
                        if reading.allows(id_):
                            match = REASONS.get(name.kind, "exact" if is_whole else "prefix")
                            yield SuggestedArea(id_, likeness - weights.NAME_KINDS[name.kind], match, name)

    def _containing(self, text: str) -> Iterator[str]:
        """Yield the names that contain a text; a newline comes before each."""
        at = self._text.find(text)
        while at >= 0:
            end = self._text.index("\n", at + 1)
            yield self._text[self._text.rindex("\n", 0, at + 1) + 1 : end]
            at = self._text.find(text, end)

    def _readings(self, words: _Words) -> Iterator[_Reading]:
        """Yield each part of the words that may be a name, with the estados that the rest names."""
        if words:
            yield _Reading(" ".join(words))
        for split in range(1, len(words)):
            for part, rest in ((words[:split], words[split:]), (words[split:], words[:split])):
                named = self._by_name.get(" ".join(rest), ())
                if estados := [id_ for id_, _ in named if id_ < KEYS_OF_A_STATE]:
                    yield _Reading(" ".join(part), estados)

    def _find_begun(self, word: str) -> _Found:
        """Return what has a word that begins like this one, or with the words that it abbreviates."""
        opened = open_word(word)
        found = self._all_of(self._words_with(word))
        if len(word) < _MIN_BEGINNING_OF_ESTADO:  # `san j` is not every San in Jalisco
            found = found._replace(estados=self._all_of([word]).estados)
        if opened in {(word,), ()}:
            return found
        parts = [self._all_of(self._words_with(full)) for full in opened]
        return _Found(
            found.words.union(*(part.words for part in parts)),
            found.named.union(frozenset.intersection(*(part.named for part in parts))),
            found.estados.union(frozenset.intersection(*(part.estados for part in parts))),
        )

    def _words_with(self, beginning: str) -> Iterator[str]:
        """Yield the words that begin with some letters."""
        for word in islice(self._words, bisect_left(self._words, beginning), None):
            if not word.startswith(beginning):
                return
            yield word

    def _all_of(self, words: Iterable[str]) -> _Found:
        """Return what has any of these words."""
        known = frozenset(words)
        named = frozenset(chain.from_iterable(self._named.get(word, ()) for word in known))
        return _Found(known, named, frozenset(id_ for id_ in named if id_ < KEYS_OF_A_STATE))

    def _name_with(self, parts: Iterable[_Found], id_: int) -> PlaceName:
        """Return the first name of an area that has any of the words."""
        names = self._names[id_]
        known = [part.words for part in parts]
        return next((name for name in names if not all(map(frozenset(name.words).isdisjoint, known))), names[0])

    # -- With letters wrong

    def _alike(self, folded: str) -> list[SuggestedArea]:
        """Return the areas with a name of which letters are wrong, or spaces left out."""
        found = _near(self._unspaced.get(folded.replace(" ", ""), ()), weights.MISSPELT_LIKENESS)
        for reading in self._readings(canonical_words(folded)):
            wrong = min(_MAX_WRONG_LETTERS, len(reading.name) // _LETTERS_PER_WRONG_ONE)
            for written, distance in self._names_like(reading.name, wrong):
                areas = [area for area in self._by_name[written] if reading.allows(area[0])]
                found += _near(areas, weights.MISSPELT_LIKENESS - distance)
        return found

    def _names_like(self, text: str, wrong: int) -> Iterator[tuple[str, float]]:
        for length in range(len(text) - wrong, len(text) + wrong + 1):
            names = self._by_length.get(length, ())
            for name, distance, _ in process.extract(text, names, scorer=OSA.distance, score_cutoff=wrong, limit=None):
                yield name, distance

    def _misspelt(self, folded: str) -> list[SuggestedArea]:
        """Return the areas with letters wrong in some of the words, which may be unfinished if none is like them."""
        words = canonical_words(folded)
        found = self._with_words_like(words, is_unfinished=False) or self._with_words_like(words, is_unfinished=True)
        return _near(found.items(), weights.MISSPELT_WORD_LIKENESS)

    def _with_words_like(self, words: _Words, *, is_unfinished: bool) -> dict[int, PlaceName]:
        """Return the areas with letters wrong in the words that no area has, or in any word if all are known."""
        exact = [self._begun(word) for word in words]
        checked = [at for at, word in enumerate(words) if wrong_letters(word) and not word.isdigit()]
        unknown = [at for at in checked if not exact[at].named]
        found: dict[int, PlaceName] = {}
        for wrong in [unknown] if unknown else [[at] for at in checked]:
            parts = [
                self._all_of(self._words_like(words[at], is_unfinished=is_unfinished)) if at in wrong else part
                for at, part in enumerate(exact)
            ]
            found |= {id_: self._name_with(parts, id_) for id_ in _with_every(parts)}
        return found

    def _words_like(self, word: str, *, is_unfinished: bool) -> list[str]:
        """Return the words that are, or begin, like this one, with letters wrong."""
        choices = [known[: len(word)] for known in self._words] if is_unfinished else self._words
        like = process.extract(word, choices, scorer=OSA.distance, score_cutoff=wrong_letters(word), limit=None)
        return [self._words[at] for _, _, at in like]


def _written(
    nombre: str, words: _Words, seat: Sequence[str], former: str | None
) -> Iterator[tuple[NameKind, str, _Words]]:
    """Yield the names of a municipio, each with its kind, its spelling and its words."""
    yield NameKind.OWN, nombre, words
    if (short := core(words)) != words:
        yield NameKind.OWN, nombre, short
    for at, text in enumerate(seat):
        if text != nombre:
            yield from ((NameKind.EVERYDAY if at else NameKind.SEAT, text, variant) for variant in variants(text))
    if former:
        yield NameKind.FORMER, former, canonical(former)


def _with_every(parts: Sequence[_Found]) -> frozenset[int]:
    """Return the areas that have every word in their names or in those of their estado, and one in their names."""
    areas = frozenset[int]().union(*(part.named for part in parts))
    for part in parts:
        areas &= part.named.union(id_ for id_ in areas if state_of(id_) in part.estados) if part.estados else part.named
    return areas


def _near(areas: Iterable[tuple[int, PlaceName]], likeness: float) -> list[SuggestedArea]:
    return [SuggestedArea(id_, likeness, "near", name) for id_, name in areas]


def _ranked(found: Iterable[SuggestedArea]) -> list[SuggestedArea]:
    """Return each area once, the likeliest first, then by key."""
    best: dict[int, SuggestedArea] = {}
    for area in sorted(found, key=lambda area: (-area.likeness, area.id)):
        best.setdefault(area.id, area)
    return list(best.values())
