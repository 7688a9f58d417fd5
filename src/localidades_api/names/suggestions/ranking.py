"""Scores how well the names of a place fit a typed text."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.schemas import MatchReason
from localidades_api.names import weights
from localidades_api.names.files.layout import SEAT, URBAN
from localidades_api.names.files.query import ParsedQuery, wrong_letters
from localidades_api.names.places import IndexedLocality, NameKind, ranked_population
from localidades_api.names.reading.vocabulary import GENERICS, STOP_WORDS

REASONS: dict[NameKind, MatchReason] = {
    NameKind.SEAT: "seat", NameKind.SHARED_SEAT: "seat", NameKind.EVERYDAY: "everyday", NameKind.FORMER: "former",
}  # fmt: skip
POPULATION_POINTS = 6.5  # won by ten times the population
_SHORT_WORD = 5  # letters: a shorter word is misspelt more surely
_NAME, _MUNICIPIO, _ESTADO, _NOWHERE = range(4)  # the part of a place that has a word


class Fit(NamedTuple):
    """The points of the name of a place that fits best, why it fits, and its spelling (empty: that of `nombre`)."""

    points: float
    match: MatchReason
    written: str


def fit(typed: ParsedQuery, place: IndexedLocality) -> Fit:
    """Return the fit of the name that fits best."""
    if typed.words[0] in STOP_WORDS and fold(place.nombre).startswith(typed.folded):  # `Los` begins Los Mochis
        return Fit(weights.ARTICLE_ONLY, "prefix", "")
    best = Fit(-math.inf, "words", "")
    for kind, words, written in place.names:
        perfect = 100 - weights.NAME_KINDS[kind]
        if perfect <= best.points:
            continue
        found = _fit_words(typed, place, words)
        points = 100 - found.lost - weights.NAME_KINDS[kind] - _lost_as_a_whole(found, place, words)
        if points > best.points:
            best = Fit(points, _match(found, kind), written)
    return best


class _FittedWords(NamedTuple):
    """The typed words, fitted to one name of a place."""

    lost: float  # points, for words misspelt or unknown
    left: list[str]  # words of the name that were not typed
    hits: int  # typed words of the name
    weighty: int  # those of them that are not for its kind
    in_municipio: int  # typed words of the municipio
    early: int  # those of them before the name
    in_state: bool | None  # whether a word other than a kind was typed of the estado; None if none was
    is_misspelt: bool
    is_begun: bool
    is_ordered: bool


# One function in spite of its branches: it runs for some twenty names a text, and a call for each word takes a quarter
# more time.
def _fit_words(typed: ParsedQuery, place: IndexedLocality, words: tuple[str, ...]) -> _FittedWords:
    """Fit the typed words to one name of a place, word by word."""
    left = list(words)
    lost = 0.0
    hits = weighty = in_municipio = early = 0
    in_state = None
    is_misspelt = is_begun = False
    is_ordered = True
    position = 0  # position in the name of the last typed word
    unfinished = typed.unfinished or ""
    last = len(typed.words) - 1 if unfinished else -1
    for at, word in enumerate(typed.words):
        if word in left:
            index = words.index(word)
            is_ordered = is_ordered and index >= position
            position = index
            left.remove(word)
            hits += 1
            weighty += word not in GENERICS
        elif word in place.municipio_words:
            in_municipio += 1
            early += not hits
        elif at == last and (whole := _begun(left, unfinished)):  # `aguas` is an estado, and begins its capital
            left.remove(whole)
            hits += 1
            weighty += 1
            is_begun = True
        elif word in place.state_words:
            in_state = in_state or word not in GENERICS
        elif at == last and (part := _begun_area(place, unfinished)) != _NOWHERE:
            in_municipio += part == _MUNICIPIO
            lost += weights.BEGINNING_OF_AREA
        else:
            near, points, part = _nearest(word, left, place, unfinished=at == last)
            lost += points
            is_misspelt = is_misspelt or near is not None
            in_municipio += part == _MUNICIPIO
            if near is not None and part == _NAME:
                left.remove(near)
                hits += 1
                weighty += 1
    return _FittedWords(lost, left, hits, weighty, in_municipio, early, in_state, is_misspelt, is_begun, is_ordered)


def _begun(words: Iterable[str], beginning: str) -> str | None:
    for word in words:
        if word.startswith(beginning):
            return word
    return None


def _begun_area(place: IndexedLocality, beginning: str) -> int:
    """Return the area of a place that has a word that begins so."""
    if _begun(place.municipio_words, beginning):
        return _MUNICIPIO
    return _ESTADO if _begun(place.state_words, beginning) else _NOWHERE


def _lost_as_a_whole(found: _FittedWords, place: IndexedLocality, words: tuple[str, ...]) -> float:
    """Return the points lost for words left out, and for their order."""
    lost = 0.0 if found.hits else weights.NO_NAME
    if found.left:
        lost += _left_out(found.left, words) * (weights.LEFT_OUT_OF_SEAT if place.flags & SEAT else 1)
        lost += weights.ONLY_KIND if found.hits and not found.weighty and words[0] in found.left else 0
    if found.in_state is False:  # `Ciudad` alone is not Ciudad de México
        lost += weights.UNKNOWN_KIND
    if found.early and found.hits:
        lost += weights.AREA_FIRST
    if 0 < found.in_municipio < len(place.municipio_words):
        lost += weights.PART_OF_MUNICIPIO * (1 - found.in_municipio / len(place.municipio_words))
    if not found.is_ordered:
        lost += weights.OTHER_ORDER
    return lost + weights.BEGINNING_OF_NAME if found.is_begun else lost


def _match(found: _FittedWords, kind: NameKind) -> MatchReason:
    if found.is_misspelt:
        return "near"
    if kind in REASONS:
        return REASONS[kind]
    if not found.is_ordered:
        return "words"
    return "prefix" if found.is_begun or found.left else "exact"


def population_points(place: IndexedLocality) -> float:
    """Return the points that a place wins by its population, on a logarithmic scale."""
    is_urban, is_seat = bool(place.flags & URBAN), bool(place.flags & SEAT)
    ranked = ranked_population(place.poblacion, is_urban=is_urban, is_seat=is_seat)
    return POPULATION_POINTS * math.log10(1 + ranked)


def literal_points(typed: ParsedQuery, place: IndexedLocality) -> float:
    """Return the points that a place wins if its name was typed to the letter; more for a former name."""
    text = f" {typed.folded} "
    if f" {fold(place.nombre)} " in text:
        return weights.LITERAL_NAME
    if any(f" {fold(nombre)} " in text for nombre, _, _ in place.former):
        return weights.LITERAL_FORMER_NAME
    return 0.0


def _left_out(left: list[str], words: tuple[str, ...]) -> float:
    """Return the points lost for words of the name that were left out."""
    heavy = sum([len(word) for word in left if word not in GENERICS])
    if not heavy:
        return weights.LEFT_OUT_KIND
    begins = words[0] not in left or words[0] in GENERICS
    whole = sum(map(len, words))
    return max(weights.LEFT_OUT * heavy / whole, weights.MIN_LEFT_OUT) + (0 if begins else weights.LEFT_OUT_BEGINNING)


def _nearest(word: str, left: list[str], place: IndexedLocality, *, unfinished: bool) -> tuple[str | None, float, int]:
    """Return the most similar word of a place, the points lost, and where it is; None if no word is similar."""
    allowed = wrong_letters(word)
    shortest, longest = len(word) - allowed, len(word) + allowed
    best: tuple[str | None, float, int] = (
        None,
        weights.UNKNOWN_KIND if word in GENERICS else weights.UNKNOWN_WORD,
        _NOWHERE,
    )
    least = 99.0
    for part, words in enumerate((left, place.municipio_words, place.state_words)):
        for other in words:
            if len(other) < shortest or (len(other) > longest and not unfinished):
                continue  # so it is with most words, and comparing takes longer
            distance = OSA.distance(word, other, score_cutoff=allowed)
            if unfinished and distance > allowed and len(other) > len(word):
                distance = min(
                    [OSA.distance(word, other[: len(word) + more], score_cutoff=allowed) for more in (0, 1, -1)]
                )
            if distance <= allowed:
                lost = weights.MISSPELT_LETTER * distance
                lost += weights.MISSPELT_SHORT_WORD if len(word) < _SHORT_WORD else 0
                lost += weights.MISSPELT_FIRST_LETTER if word[0] != other[0] else 0
                if lost < least:
                    least = lost
                    best = other, lost, part
    return best
