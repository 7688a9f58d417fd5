"""What speaks for and against a place that a row may mean, and what leaves doubt however likely the place is."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.names.layout import HOMONYM, SEAT, SHORT_OF_TOWN, SHORT_OF_TOWN_IN_STATE, URBAN
from localidades_api.names.places import IndexedLocality
from localidades_api.names.rows import MatchRow, NameFault
from localidades_api.names.text import canonical, take_apart
from localidades_api.names.vocabulary import ESTABLISHMENTS, GENERICS, SETTLEMENTS, WEIGHTY_GENERICS

OTHER_MUNICIPIO, UNKNOWN_MUNICIPIO = 22.0, 12.0  # the penalties of a municipio that is another, or that nobody knows


# -- Doubt, however likely a place is


def has_homonym(place: IndexedLocality, faults: Sequence[NameFault]) -> bool:
    """Tell whether another place of the municipio answers to what was given as well, compared or not."""
    other_names = {"former_name", "bracket", "seat", "everyday"}
    return bool(place.flags & HOMONYM) and other_names.isdisjoint(fault.code for fault in faults)


def is_seat_named(words: Sequence[str], place: IndexedLocality) -> bool:
    """Tell whether a place is the seat of a municipio whose whole name was given."""
    return bool(place.flags & SEAT) and tuple(words) == place.municipio_words


def contradicts(fault: NameFault) -> bool:
    """Tell whether a fault may mean another place, whatever else agrees.

    It may if a word was added to the name, as people's second surnames are, or a number or contrasting word is another.
    """
    return fault.code in {"key", "estado", "number", "contrast"} or (
        fault.code == "added" and fault.penalty > _MOST_OF_INITIAL
    )


def may_be_short(question: "Question", place: IndexedLocality) -> bool:
    """Tell whether the name given is what people call another place for short: a town, or the seats of two municipios.

    Nothing in the row tells then which is meant.
    """
    flag = SHORT_OF_TOWN if question.area_words else SHORT_OF_TOWN | SHORT_OF_TOWN_IN_STATE
    if place.flags & flag and fold(place.nombre) == question.folded:
        return True
    words = set(question.words)
    return bool(words) and sum(words <= set(area_words) for area_words in question.area_words) > 1


# -- What speaks for and against a place

_LIGHT = frozenset({"wording", "article", "order", "spacing"})
_OF_NAME = _LIGHT | {
    "spelling", "kind", "number", "contrast", "added", "missing", "bracket", "seat", "everyday", "former_name", "name",
}  # fmt: skip
_BRACKETS = {2.0: "left_out", 4.0: "establishment_left_out", 6.0: "alone", 3.0: "added", 8.0: "added_alone"}
_HEAVY = 20.0  # penalties of a place that differs a lot
_LEAD = 6.0  # penalties fewer than any other's
_MAX_LEAD = 3.0  # tens of points
_KNOWN = 2  # places: a word that so many names have is no slip
_MAX_RARITY, _MAX_WORDS = 8.0, 4
_MOST_OF_INITIAL = 3.0  # penalty of a word added that is a letter, or in the name of the municipio or estado


class Question(NamedTuple):
    """What all candidates of a row share: the words given, what they mean as areas, and how rare a word is.

    `rarity` is the decimal logarithm of how many places there are for one with a word: 0 for a word of all names, 5.5
    for one of a single name of a country. `is_word` tells whether a word is one of the catalogue's.
    """

    row: MatchRow
    folded: str
    words: tuple[str, ...]
    all_words: frozenset[str]  # of its readings, with what brackets hold
    area_words: Sequence[Sequence[str]]  # of the names of the municipios that may be meant
    rarity: Callable[[str], float]
    is_word: Callable[[str], bool]


def gather(question: Question, place: IndexedLocality, faults: Sequence[NameFault], lead: float) -> dict[str, float]:
    """Return the evidence for a place, by name; what is not there is 0. `lead` is over the best of the others."""
    found: dict[str, float] = {"any": 1.0}
    for name, value in (
        *_of_faults(question, faults),
        *_of_words(question, place, faults),
        *_of_area(question, place, faults),
        *_of_place(question, place),
    ):
        found[name] = found.get(name, 0.0) + value
    cost = sum(fault.penalty for fault in faults)
    found["cost"] = cost / 10
    found["cost_heavy"] = float(cost > _HEAVY)
    found["ahead"] = min(_MAX_LEAD, max(0.0, lead / 10))
    found["behind"] = max(-_MAX_LEAD, min(0.0, lead / 10))
    found["alone"] = float(lead > _LEAD)
    return found


def _of_faults(question: Question, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    codes = [fault.code for fault in faults if fault.code in _OF_NAME]
    if not codes:
        yield "same_name", 1.0
        return
    yield "differences", float(len(codes))
    if _LIGHT.issuperset(codes):
        yield "light", 1.0
    if codes == ["spelling"]:
        yield "spelling_only", 1.0
    if "missing" in codes:
        yield "missing", 1.0
    for fault in faults:
        yield from _of_fault(fault)
        yield from _of_word(question, fault)


def _of_fault(fault: NameFault) -> Iterator[tuple[str, float]]:
    """Yield the evidence of a name that is another, or is written otherwise."""
    if fault.code in {"article", "order", "everyday"}:
        yield fault.code, 1.0
    elif fault.code == "former_name":
        yield "former_name" if fault.penalty >= 1 else "former_name_literally", 1.0
    elif fault.code == "seat":
        yield "seat" if fault.penalty < 2 else "seat_with_namesake", 1.0  # noqa: PLR2004  # points
    elif fault.code == "bracket":
        yield f"bracket_{_BRACKETS.get(fault.penalty, 'left_out')}", 1.0


def _of_word(question: Question, fault: NameFault) -> Iterator[tuple[str, float]]:
    """Yield the evidence of a word that is another, was added or is missing."""
    side = "other" if fault.given and fault.found else "added" if fault.given else "missing"
    if fault.code == "spelling":
        yield from _of_spelling(question, fault)
    elif fault.code == "kind" and fault.penalty > 1:
        yield f"kind_{side}_{_kind(fault.given or fault.found)}", 1.0
    elif fault.code in {"number", "contrast"}:
        yield f"{fault.code}_{side}", 1.0
    elif fault.code == "added" and fault.penalty > 1:
        yield "added", 1.0
        yield "added_rarity", question.rarity(fault.given)
        yield "added_unknown", float(not question.is_word(fault.given))
    elif fault.code == "added":
        yield "added_of_area", 1.0
    elif fault.code == "missing":
        yield "missing_rarity", question.rarity(fault.found)


def _of_spelling(question: Question, fault: NameFault) -> Iterator[tuple[str, float]]:
    yield "spelling", 1.0
    yield "spelling_cost", fault.penalty / 10
    if question.is_word(fault.given):  # two words of the catalogue's: one is hardly a slip of the other
        yield "spelling_of_a_word", 1.0
        yield "spelling_of_a_common_word", 6.0 - question.rarity(fault.given)
    if fault.given[:1] != fault.found[:1]:
        yield "spelling_first_letter", 1.0


def _kind(word: str) -> str:
    if word in ESTABLISHMENTS:
        return "establishment"
    return "settlement" if word in SETTLEMENTS else "weighty" if word in WEIGHTY_GENERICS else "other"


def _of_words(question: Question, place: IndexedLocality, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    """Yield how much of the name given, and of the place's outside its brackets, agrees, by how rare the words are."""
    differ = {fault.given for fault in faults if fault.code in {"spelling", "number", "contrast", "kind", "added"}}
    shared = [word for word in question.words if word not in differ and word not in GENERICS]
    yield "shared_rarity", min(_MAX_RARITY, sum(map(question.rarity, shared)))
    yield "shared_words", float(min(_MAX_WORDS, len(shared)))
    given = sum(question.rarity(word) for word in question.words if word not in place.municipio_words)
    agreed = sum(question.rarity(word) for word in shared if word not in place.municipio_words)
    yield "share_of_given", agreed / given if given else 1.0
    main = canonical(take_apart(place.nombre).main)
    whole = sum(map(question.rarity, main))
    if whole:
        yield "share_of_place", sum(question.rarity(word) for word in main if word in question.all_words) / whole


def _of_area(question: Question, place: IndexedLocality, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    row = question.row
    penalties = [fault.penalty for fault in faults if fault.code == "municipio"]
    if OTHER_MUNICIPIO in penalties:
        yield "municipio_other", 1.0
    elif UNKNOWN_MUNICIPIO in penalties:
        yield "municipio_unknown", 1.0
    else:
        yield "municipio_unlike", sum(penalties) / 10
    if not row.municipio:
        yield "municipio_not_given", 1.0
    if not row.estado:
        yield "estado_not_given", 1.0
    if not row.municipio and not row.estado:
        yield "no_area_given", 1.0
    if any(fault.code == "ambito" for fault in faults):
        yield "ambito_other", 1.0
    km = row.kilometres_to(place.latitud, place.longitud)
    if km is not None:
        yield "km", math.log10(1 + km)
        yield "km_under_1" if km < 1 else "km_1_to_3" if km < 3 else "km_3_to_8" if km < 8 else "km_over_8", 1.0  # noqa: PLR2004


def _of_place(question: Question, place: IndexedLocality) -> Iterator[tuple[str, float]]:
    is_seat, is_urban = bool(place.flags & SEAT), bool(place.flags & URBAN)
    population = math.log10(1 + (place.poblacion or 0))
    yield "population", population
    yield "is_seat", float(is_seat)
    yield "is_urban", float(is_urban)
    yield "homonym", float(bool(place.flags & HOMONYM))
    if not question.row.municipio:
        yield "population_without_municipio", population
        yield "seat_without_municipio", float(is_seat)
        yield "urban_without_municipio", float(is_urban)
    if question.words and set(question.words) <= set(place.municipio_words):  # of which the seat is often meant
        yield "named_like_municipio_seat" if is_seat else "named_like_municipio_other", 1.0
