"""Scores how well the names of a place fit a typed text."""

import math
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.schemas import MatchReason
from localidades_api.names import weights
from localidades_api.names.layout import SEAT
from localidades_api.names.places import IndexedLocality, NameKind
from localidades_api.names.query import ParsedQuery, wrong_letters
from localidades_api.names.vocabulary import GENERICS

_MATCHES: dict[NameKind, MatchReason] = {
    NameKind.SEAT: "seat", NameKind.SHARED_SEAT: "seat", NameKind.EVERYDAY: "everyday", NameKind.FORMER: "former",
}  # fmt: skip
_SHORT_WORD = 5  # letters: a shorter word is misspelt more surely
_NAME, _MUNICIPIO = 0, 1  # the part of a place that has a word


class Fit(NamedTuple):
    """The points of the name of a place that fits best, why it fits, and its spelling (empty: that of `nombre`)."""

    points: float
    match: MatchReason
    written: str


def fit(typed: ParsedQuery, place: IndexedLocality) -> Fit:
    """Return the fit of the name that fits best."""
    best, kind_of_best, written_of_best, most = None, NameKind.OWN, "", -math.inf
    for kind, words, written in place.names:
        fitting = _Fitting(typed, place, words)
        points = fitting.points(kind)
        if points > most:
            best, kind_of_best, written_of_best, most = fitting, kind, written, points
    return Fit(most, best.match(kind_of_best) if best else "words", written_of_best)


class _Fitting:
    """Fits the typed words to one name of a place, word by word."""

    __slots__ = (
        "begun",
        "early",
        "hits",
        "in_municipio",
        "in_state",
        "left",
        "lost",
        "misspelt",
        "ordered",
        "place",
        "position",
        "typed",
        "weighty",
        "words",
    )  # fmt: skip

    def __init__(self, typed: ParsedQuery, place: IndexedLocality, words: tuple[str, ...]) -> None:
        self.typed = typed
        self.place = place
        self.words = words
        self.left = list(words)  # words of the name that were not typed
        self.lost = 0.0
        self.hits = self.weighty = 0  # typed words of the name, and those of them that are not for its kind
        self.in_municipio = self.early = 0  # typed words of the municipio, and those before the name
        self.in_state: bool | None = None  # whether a word other than a kind was typed of the estado; None if none was
        self.position = 0  # position in the name of the last typed word
        self.misspelt = self.begun = False
        self.ordered = True

    def points(self, kind: NameKind) -> float:
        """Return the points of the name."""
        last = len(self.typed.words) - 1 if self.typed.unfinished else -1
        for position, word in enumerate(self.typed.words):
            if word in self.left:
                self._hit(word)
            elif word in self.place.municipio_words:
                self._hit_municipio()
            elif position == last and self._begins_name(self.typed.unfinished or ""):
                self._hit_begun(self.typed.unfinished or "")  # `aguas` is an estado, and the beginning of its capital
            elif word in self.place.state_words:
                self.in_state = bool(self.in_state) or word not in GENERICS
            elif position != last or not self._hit_begun(self.typed.unfinished or ""):
                self._hit_near(word, unfinished=position == last)
        return 100 - self.lost - weights.NAME_KINDS[kind] - self._lost_as_a_whole()

    def _hit(self, word: str) -> None:
        index = self.words.index(word)
        self.ordered = self.ordered and index >= self.position
        self.position = index
        self._take(word)
        self.weighty += word not in GENERICS

    def _take(self, word: str) -> None:
        self.left.remove(word)
        self.hits += 1

    def _hit_municipio(self) -> None:
        self.in_municipio += 1
        self.early += not self.hits

    def _begins_name(self, beginning: str) -> bool:
        return any(other.startswith(beginning) for other in self.left)

    def _hit_begun(self, beginning: str) -> bool:
        """Count the unfinished word as a word that begins so, if there is one."""
        if whole := next((other for other in self.left if other.startswith(beginning)), None):
            self._take(whole)
            self.weighty += 1
            self.begun = True
            return True
        for words, count in ((self.place.municipio_words, 1), (self.place.state_words, 0)):
            if any(other.startswith(beginning) for other in words):
                self.in_municipio += count
                self.lost += weights.BEGINNING_OF_AREA
                return True
        return False

    def _hit_near(self, word: str, *, unfinished: bool) -> None:
        """Count a word as the word that it is most like, misspelt; as unknown if it is like none."""
        other, lost, part = _nearest(word, self.left, self.place, unfinished=unfinished)
        if other is None:
            self.lost += weights.UNKNOWN_KIND if word in GENERICS else weights.UNKNOWN_WORD
            return
        self.misspelt = True
        self.lost += lost
        if part == _NAME:
            self._take(other)
            self.weighty += 1
        else:
            self.in_municipio += part == _MUNICIPIO

    def _lost_as_a_whole(self) -> float:
        """Return the points lost for words left out, and for their order."""
        lost = 0.0 if self.hits else weights.NO_NAME
        if self.left:
            lost += _left_out(self.left, self.words) * (weights.LEFT_OUT_OF_SEAT if self.place.flags & SEAT else 1)
            lost += weights.ONLY_KIND if self.hits and not self.weighty and self.words[0] in self.left else 0
        if self.in_state is False:  # `Ciudad` alone is not Ciudad de México
            lost += weights.UNKNOWN_KIND
        if self.early and self.hits:
            lost += weights.AREA_FIRST
        if 0 < self.in_municipio < len(self.place.municipio_words):
            lost += weights.PART_OF_MUNICIPIO * (1 - self.in_municipio / len(self.place.municipio_words))
        return lost + (0 if self.ordered else weights.OTHER_ORDER) + (weights.BEGINNING_OF_NAME if self.begun else 0)

    def match(self, kind: NameKind) -> MatchReason:
        """Return why the name fits."""
        if self.misspelt:
            return "near"
        if kind in _MATCHES:
            return _MATCHES[kind]
        if not self.ordered:
            return "words"
        return "prefix" if self.begun or self.left else "exact"


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
    heavy = sum(len(word) for word in left if word not in GENERICS)
    if not heavy:
        return weights.LEFT_OUT_KIND
    begins = words[0] not in left or words[0] in GENERICS
    whole = sum(map(len, words))
    return max(weights.LEFT_OUT * heavy / whole, weights.MIN_LEFT_OUT) + (0 if begins else weights.LEFT_OUT_BEGINNING)


def _nearest(word: str, left: list[str], place: IndexedLocality, *, unfinished: bool) -> tuple[str | None, float, int]:
    """Return the most similar word of a place, the points lost, and where it is: in the name, municipio or estado."""
    allowed = wrong_letters(word)
    best: tuple[str | None, float, int] = (None, 0.0, 0)
    least = 99.0
    for part, words in enumerate((left, place.municipio_words, place.state_words)):
        for other in words:
            longer = len(other) - len(word)
            if longer < -allowed or (longer > allowed and not unfinished):
                continue  # so it is with most words, and comparing takes longer
            distance = OSA.distance(word, other, score_cutoff=allowed)
            if unfinished and distance > allowed and longer > 0:
                distance = min(
                    OSA.distance(word, other[: len(word) + more], score_cutoff=allowed) for more in (0, 1, -1)
                )
            if distance <= allowed:
                lost = weights.MISSPELT_LETTER * distance
                lost += weights.MISSPELT_SHORT_WORD if len(word) < _SHORT_WORD else 0
                lost += weights.MISSPELT_FIRST_LETTER if word[0] != other[0] else 0
                if lost < least:
                    least = lost
                    best = other, lost, part
    return best
