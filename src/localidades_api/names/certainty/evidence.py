"""Gathers what speaks for and against a place that a row may mean: named figures, which the fit weighs.

What a difference says is in the table of reasons. Here are the figures that have degrees.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names import weights
from localidades_api.names.candidates.alignment import Comparison, GivenName, read_name
from localidades_api.names.candidates.proposals import is_seat_named
from localidades_api.names.files.layout import HOMONYM, SEAT, URBAN
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.places import IndexedLocality
from localidades_api.names.reading.areas import Area
from localidades_api.names.reading.vocabulary import ESTABLISHMENTS, GENERICS, STOP_WORDS
from localidades_api.names.reasons import Difference, Reason
from localidades_api.names.rows import MatchRow

_KINDS_ADDED = frozenset(reason for reason in Reason if reason.evidence.startswith("kind_added"))
_MISSING = frozenset({Reason.MISSING, Reason.INITIAL_MISSING})
_PROPERTIES = ESTABLISHMENTS | {"familia"}  # the first words of the names of several places in one municipio
_SPELT = frozenset({Reason.SPELLING, Reason.LETTERS})
_CALLED_SO = frozenset({Reason.WORDING, Reason.EVERYDAY})


class Question(NamedTuple):
    """What all candidates of a row share: its name, the areas that it may name, and its key."""

    reader: IndexReader
    row: MatchRow
    given: GivenName
    area_words: Sequence[Sequence[str]]  # of the names of the municipios that the row may name
    all_words: frozenset[str]  # the canonical words of the name in all readings
    key: int | None = None

    @classmethod
    def of(
        cls,
        reader: IndexReader,
        row: MatchRow,
        given: GivenName | None,
        areas: Sequence[Area] = (),
        key: int | None = None,
    ) -> Self:
        """Return the question that a row asks."""
        given = given or read_name("")
        area_words = [reader.areas.words.get(area.id, ()) for area in areas]
        words = frozenset(word for reading in given.readings for word in reading.words)
        return cls(reader, row, given, area_words, words, key)

    def has_key(self, place: IndexedLocality) -> bool:
        """Return whether a place has, or had, the key of the row."""
        return self.key is not None and self.key in {place.id, *(former.id for former in place.former)}

    @property
    def words(self) -> tuple[str, ...]:
        """The canonical words of the name outside its brackets."""
        return self.given.readings[0].words

    @property
    def has_area(self) -> bool:
        """Whether the row names the area in which the place is sought."""
        return bool(self.row.municipio if self.row.kind == "localidad" else self.row.estado)


def leads(compared: Sequence[Comparison]) -> Iterator[float]:
    """Yield the lead of each candidate, in penalties, over the best of the others."""
    costs = [comparison.cost for comparison in compared]
    for at, cost in enumerate(costs):
        yield min(costs[:at] + costs[at + 1 :], default=weights.LEAD_WITHOUT_RIVAL) - cost


def gather(question: Question, place: IndexedLocality, faults: Sequence[Difference], lead: float) -> dict[str, float]:
    """Return the evidence for a place, without zeros; `lead` is in penalties, over the best of the others."""
    return _sum(
        _of_reasons(question, place, faults, lead),
        _of_words(question, place, faults),
        _of_areas(question, faults),
        _of_point(question, place, faults),
        _of_place(question, place, faults),
        _of_key(question, place),
        _of_cost(faults, lead),
    )


def gather_area(
    question: Question, area: IndexedLocality, faults: Sequence[Difference], lead: float
) -> dict[str, float]:
    """Return the evidence for a municipio, as `gather` does; its coefficients are others."""
    evidence = _sum(
        _of_reasons(question, area, faults, lead),
        _of_words(question, area, faults),
        [
            ("estado_not_given", float(not question.row.estado)),
            ("estado_unlike", float(any(fault.reason is Reason.ESTADO_UNLIKE for fault in faults))),
        ],
        _of_cost(faults, lead),
    )
    return {f"area_{name}": value for name, value in evidence.items()}


def _sum(*parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    evidence: dict[str, float] = {"any": 1.0}
    for part in parts:
        for name, value in part:
            if value:
                evidence[name] = evidence.get(name, 0.0) + value
    return evidence


def is_called(faults: Sequence[Difference]) -> bool:
    """Return whether people call a place so: by its name, an everyday name, or with the word Ciudad before it."""
    return all(
        fault.reason in _CALLED_SO or (fault.reason is Reason.SETTLEMENT_ADDED and fault.given == "ciudad")
        for fault in faults
    )


def _of_reasons(
    question: Question, place: IndexedLocality, faults: Sequence[Difference], lead: float
) -> Iterator[tuple[str, float]]:
    of_name = [fault for fault in faults if fault.reason.is_of_name]
    for fault in faults:
        if fault.reason.evidence:
            yield fault.reason.evidence, 1.0
    if not of_name:
        yield "same_name", 1.0
        return
    yield "differences", float(len(of_name))
    yield "light", float(all("light" in fault.reason.marks for fault in of_name))
    if lead >= weights.LEAD_ONCE_READ and question.has_area and not GENERICS.issuperset(question.words):
        yield from _of_profile(question, place, of_name, is_alone=lead > weights.LEAD)
    for fault in of_name:
        yield from _of_degree(question, place, fault)


def _of_profile(
    question: Question, place: IndexedLocality, of_name: Sequence[Difference], *, is_alone: bool
) -> Iterator[tuple[str, float]]:
    """Yield the only reason why the name of a place without a near rival differs, if there is one."""
    unread = [fault for fault in of_name if "read" not in fault.reason.marks]
    if not unread:
        yield ("only_read_of_owner" if _is_of_an_owner(question, place) else "only_read"), 1.0
    elif len(unread) == 1 and is_alone:
        reason = unread[0].reason
        if reason not in _SPELT:
            yield f"only_{reason.evidence or reason}", 1.0
        elif OSA.distance(unread[0].given, unread[0].found) == 1:
            wrong = set(unread[0].given.split()).difference(unread[0].found.split())
            is_short = min(map(len, wrong), default=0) < weights.MIN_LETTERS_OF_SLIP
            name = "only_letter_of_word" if any(map(question.reader.is_word, wrong)) else "only_letter"
            yield ("only_letter_of_short_word" if is_short else name), 1.0


def _is_of_an_owner(question: Question, place: IndexedLocality) -> bool:
    """Return whether `de` alone may make a property that of an owner, of whom there may be several: Rancho de López."""
    stop_words = {
        frozenset(STOP_WORDS.intersection(name.split())) for name in (question.given.folded, fold(place.nombre))
    }
    return len(stop_words) > 1 and place.names[0].words[0] in _PROPERTIES and len(question.all_words - GENERICS) == 1


def _of_degree(question: Question, place: IndexedLocality, fault: Difference) -> Iterator[tuple[str, float]]:
    """Yield how rare, how common or how unlike the words of a difference are."""
    match fault.reason:
        case Reason.ADDED | Reason.INITIAL_ADDED:
            yield "added_rarity", question.reader.rarity(fault.given)
            yield "added_unknown", float(not question.reader.is_word(fault.given))
        case Reason.MISSING | Reason.INITIAL_MISSING:
            yield "missing_rarity", question.reader.rarity(fault.found)
        case Reason.LETTERS:
            yield "letters_cost", fault.penalty / 10
        case Reason.ABBREVIATION | Reason.BEGINNING:
            yield "abbreviation_of_a_word", float(question.reader.is_word(fault.given))
        case Reason.SPELLING:
            yield "spelling_cost", fault.penalty / 10
            # If both are words of the catalogue, fault is hardly a slip for the other.
            if question.reader.is_word(fault.given):
                yield "spelling_of_a_word", 1.0
                yield "spelling_of_a_common_word", weights.MAX_RARITY - question.reader.rarity(fault.given)
            yield "spelling_first_letter", float(fault.given[:1] != fault.found[:1])
        case reason if reason in _KINDS_ADDED and reason is not Reason.SETTLEMENT_ADDED:
            # The ejido or the farm that has the name of a town is another place.
            yield "kind_added_to_town", float(bool(place.flags & (SEAT | URBAN)))


def _of_words(question: Question, place: IndexedLocality, faults: Sequence[Difference]) -> Iterator[tuple[str, float]]:
    """Yield how much of the given name, and of the place's outside its brackets, agrees, by the rarity of the words."""
    reasons = {fault.reason for fault in faults}
    differ = {word for fault in faults if "extra" in fault.reason.marks for word in fault.given.split()}
    all_words = question.all_words
    words: Collection[str] = sorted(all_words) if Reason.BRACKET_ADDED_ALONE in reasons else question.words
    if not reasons.isdisjoint({Reason.LETTERS, Reason.BRACKET_ADDED_ALONE, Reason.NAME}):
        differ.update(set(question.words).difference(*(name.words for name in place.names)))
    shared = [word for word in words if word not in differ and word not in GENERICS]
    yield "shared_rarity", min(weights.MAX_SHARED_RARITY, sum(map(question.reader.rarity, shared)))
    yield "shared_words", float(min(weights.MAX_SHARED_WORDS, len(shared)))
    given = sum(question.reader.rarity(word) for word in words if word not in place.municipio_words)
    agreed = sum(question.reader.rarity(word) for word in shared if word not in place.municipio_words)
    yield "share_of_given", agreed / given if given else 1.0
    main = place.names[0].words
    if whole := sum(map(question.reader.rarity, main)):
        yield "share_of_place", sum(question.reader.rarity(word) for word in main if word in all_words) / whole


def _of_areas(question: Question, faults: Sequence[Difference]) -> Iterator[tuple[str, float]]:
    row = question.row
    municipio = next((fault for fault in faults if fault.code == "municipio" and not fault.reason.evidence), None)
    if municipio:
        yield "municipio_unlike", municipio.penalty / 10
    yield "municipio_not_given", float(not row.municipio)
    yield "estado_not_given", float(not row.estado)
    yield "no_area_given", float(not row.municipio and not row.estado)


def _of_point(question: Question, place: IndexedLocality, faults: Sequence[Difference]) -> Iterator[tuple[str, float]]:
    km = question.row.kilometres_to(place.latitud, place.longitud)
    if km is None:
        return
    if question.row.municipio and [fault.reason for fault in faults] == [Reason.FAR]:
        yield "far_but_named", 1.0  # a point is likelier wrong than both the name and the municipio
        return
    yield "km", math.log10(1 + km)
    yield next((name for bound, name in weights.KILOMETRES if km < bound), "km_over_8"), 1.0


def _of_place(question: Question, place: IndexedLocality, faults: Sequence[Difference]) -> Iterator[tuple[str, float]]:
    is_seat, is_urban = bool(place.flags & SEAT), bool(place.flags & URBAN)
    population = math.log10(1 + (place.poblacion or 0))
    yield "population", population
    yield "is_seat", float(is_seat)
    yield "is_urban", float(is_urban)
    yield "homonym", float(bool(place.flags & HOMONYM))
    yield "seat_among_homonyms", float(place.flags & (HOMONYM | SEAT) == HOMONYM | SEAT)
    yield "clave", math.log10(place.id % KEYS_OF_A_MUNICIPIO)
    if not question.row.municipio:
        yield "population_without_municipio", population
        yield "seat_without_municipio", float(is_seat)
        yield "urban_without_municipio", float(is_urban)
        yield "seat_named", float(is_seat_named(question.words, place))
        if question.row.latitud is None and is_called([fault for fault in faults if fault.reason.is_of_name]):
            yield "called_population", population
    if question.words and set(question.words) <= set(place.municipio_words):  # the seat often goes by that name
        yield "named_like_municipio_seat" if is_seat else "named_like_municipio_other", 1.0


def _of_key(question: Question, place: IndexedLocality) -> Iterator[tuple[str, float]]:
    """Yield whether a place has the key of the row, or one with a digit changed or two swapped."""
    if question.key is None:
        return
    if place.id == question.key:
        yield "key", 1.0
    elif all(former.id != question.key for former in place.former):
        yield "near_key", float(OSA.distance(f"{place.id:09d}", f"{question.key:09d}") == 1)


def _of_cost(faults: Sequence[Difference], lead: float) -> Iterator[tuple[str, float]]:
    cost = sum([fault.penalty for fault in faults if fault.reason is not Reason.KEY])
    yield "cost", cost / 10
    yield "cost_heavy", float(cost > weights.HEAVY_COST)
    yield "ahead", min(weights.MAX_LEAD, max(0.0, lead / 10))
    yield "behind", max(-weights.MAX_LEAD, min(0.0, lead / 10))
    yield "alone", float(lead > weights.LEAD)
