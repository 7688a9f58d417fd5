"""Gathers the evidence for a place that a row may refer to, and finds reasons for doubt."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names import weights
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.layout import HOMONYM, SEAT, SHORT_OF_TOWN, SHORT_OF_TOWN_IN_STATE, URBAN
from localidades_api.names.places import IndexedLocality
from localidades_api.names.rows import MatchRow
from localidades_api.names.vocabulary import ESTABLISHMENTS, GENERICS, SETTLEMENTS, STOP_WORDS, WEIGHTY_GENERICS

# -- Doubt, however likely a place is

_OTHER_NAMES = frozenset({"former_name", "bracket", "seat", "everyday"})  # codes
_CONTRADICTIONS = frozenset(
    {
        Difference.KEY, Difference.ESTADO, Difference.MUNICIPIO_UNKNOWN, Difference.MUNICIPIO_ADDED, Difference.ADDED,
        Difference.INITIAL_ADDED, Difference.AREA_ADDED, Difference.NUMBER_ADDED, Difference.NUMBER_MISSING,
        Difference.FIRST_NUMBER_MISSING, Difference.NUMBER_OTHER, Difference.CONTRAST_ADDED,
        Difference.CONTRAST_MISSING, Difference.CONTRAST_OTHER, Difference.BRACKET_ESTABLISHMENT_ADDED,
        Difference.BRACKET_ADDED_ALONE,
    }
)  # fmt: skip
# Differences that are none once abbreviations and numbers are read.
_READ = frozenset({Difference.WORDING, Difference.SECTION})
# Kinds that say nothing about a place.
_BARE_KINDS = frozenset({"localidad", "comunidad", "poblado", "pueblo", "congregacion", "rancheria"})
_PROPERTIES = ESTABLISHMENTS | {"familia"}  # the first words of the names of several places in one municipio
_SAME_MUNICIPIO = frozenset({Difference.MUNICIPIO_UNLIKE, Difference.ESTADO_UNLIKE, Difference.AMBITO})


def has_homonym(place: IndexedLocality, faults: Sequence[NameFault]) -> bool:
    """Return whether another place of the municipio has the same name, even if it was not compared.

    A seat comes before its namesakes: how likely it is decides.
    """
    return place.flags & (HOMONYM | SEAT) == HOMONYM and _OTHER_NAMES.isdisjoint(fault.code for fault in faults)


def is_seat_named(words: Sequence[str], place: IndexedLocality) -> bool:
    """Return whether a place is the seat of the municipio that has this name."""
    return bool(place.flags & SEAT) and tuple(words) == place.municipio_words


def is_called(faults: Sequence[NameFault]) -> bool:
    """Return whether people call a place so: by its name, an everyday name, or with the word Ciudad before it."""
    return all(
        fault.difference in {Difference.WORDING, Difference.EVERYDAY}
        or (fault.difference == Difference.KIND_ADDED and fault.given == "ciudad")
        for fault in faults
    )


def contradicts(fault: NameFault) -> bool:
    """Return whether a fault may be due to another place, whatever else agrees.

    So it is with a word that the place's name lacks, such as a second surname, with a different number or contrasting
    word, with an establishment in brackets, and if only the row's bracket has the name.
    """
    return fault.difference in _CONTRADICTIONS


def is_of_area(fault: NameFault) -> bool:
    """Return whether a fault is about the area, the key or the point of a row, and not about its name."""
    return fault.difference in _NOT_OF_NAME


def is_same_once_read(
    question: "Question", place: IndexedLocality, faults: Sequence[NameFault], lead: float, likely: float
) -> bool:
    """Return whether a place alone in its municipio has the name once abbreviations and numbers are read.

    If no other name is near, and the place is `likely` by its evidence, an article or a second name in brackets may be
    left out, or a letter wrong. `lead` is as for `gather`.
    """
    ours = [fault for fault in faults if fault.difference not in _SAME_MUNICIPIO]
    if not question.row.municipio or not ours or GENERICS.issuperset(question.words):
        return False
    unread = [fault for fault in ours if fault.difference not in _READ]
    if not unread:
        return lead >= weights.LEAD_ONCE_READ and not _is_of_an_owner(question, place)
    if lead <= weights.LEAD or likely < weights.LIKELY_WITH_A_SLIP:
        return False
    if len(unread) == 1 and (_is_slip(question, place, unread[0]) or _is_second_name(place, unread[0])):
        return True
    return all(_is_reading(place, fault) for fault in unread)


def _is_of_an_owner(question: "Question", place: IndexedLocality) -> bool:
    """Return whether `de` alone may make a property that of an owner, of whom there may be several: Rancho de López."""
    stop_words = (STOP_WORDS.intersection(name.split()) for name in (question.folded, fold(place.nombre)))
    return _is_property(place) and len(question.all_words - GENERICS) == 1 and len(set(stop_words)) > 1


def _is_property(place: IndexedLocality) -> bool:
    """Return whether a place is named as that of a family or an establishment."""
    return not _PROPERTIES.isdisjoint(place.names[0].words[:1])


def _is_slip(question: "Question", place: IndexedLocality, fault: NameFault) -> bool:
    """Return whether a fault is one letter wrong, in a word that the catalogue does not have, or in the seat's name."""
    if fault.difference not in {Difference.SPELLING, Difference.LETTERS} or OSA.distance(fault.given, fault.found) > 1:
        return False
    wrong = set(fault.given.split()).difference(fault.found.split())
    return len(wrong) == 1 and (bool(place.flags & SEAT) or not any(map(question.is_word, wrong)))


def _is_second_name(place: IndexedLocality, fault: NameFault) -> bool:
    """Return whether a fault is that a second name in brackets was left out; several properties may have the first."""
    return fault.difference is Difference.BRACKET_LEFT_OUT and "(" in fault.found and not _is_property(place)


def _is_reading(place: IndexedLocality, fault: NameFault) -> bool:
    """Return whether a fault is none once a name is read; a kind before the name of a town may be another place's."""
    match fault.difference:
        case Difference.ARTICLE:
            return not fault.given
        case Difference.ABBREVIATION:
            return fault.penalty <= weights.ABBREVIATION_PENALTY
        case Difference.KIND_ADDED:
            return fault.given in _BARE_KINDS and not place.flags & (SEAT | URBAN)
    return False


def may_be_short(question: "Question", place: IndexedLocality) -> bool:
    """Return whether people use the name for another place, for short: a town, or the seats of two municipios.

    Nothing in the row then says which of them it is.
    """
    flag = SHORT_OF_TOWN if question.area_words else SHORT_OF_TOWN | SHORT_OF_TOWN_IN_STATE
    if place.flags & flag and fold(place.nombre) == question.folded:
        return True
    words = set(question.words)
    return bool(words) and sum(words <= set(area_words) for area_words in question.area_words) > 1


# -- Evidence

_LIGHT = frozenset({Difference.WORDING, Difference.ARTICLE, Difference.ORDER, Difference.SPACING})
_NOT_OF_NAME = frozenset(
    {
        Difference.FORMER_KEY, Difference.WITHDRAWN_KEY, Difference.UNKNOWN_KEY, Difference.KEY, Difference.ESTADO,
        Difference.ESTADO_UNLIKE, Difference.MUNICIPIO_UNLIKE, Difference.MUNICIPIO_FORMER,
        Difference.MUNICIPIO_LIKE_FORMER, Difference.MUNICIPIO_ADDED,
        Difference.MUNICIPIO_UNKNOWN, Difference.MUNICIPIO_OTHER, Difference.DISTANCE, Difference.AMBITO,
    }
)  # fmt: skip
# Differences that are evidence as they are, and its name.
_OWN_EVIDENCE: dict[Difference, str] = {
    **{
        one: one.value
        for one in (
            Difference.ARTICLE, Difference.ORDER, Difference.EVERYDAY, Difference.FORMER_NAME,
            Difference.FORMER_NAME_LITERALLY, Difference.SEAT, Difference.SEAT_WITH_NAMESAKE,
            Difference.BRACKET_LEFT_OUT, Difference.BRACKET_ESTABLISHMENT_LEFT_OUT, Difference.BRACKET_ALONE,
            Difference.BRACKET_ADDED, Difference.BRACKET_ESTABLISHMENT_ADDED, Difference.BRACKET_ADDED_ALONE,
            Difference.NUMBER_ADDED,
            Difference.NUMBER_MISSING, Difference.NUMBER_OTHER, Difference.CONTRAST_ADDED,
            Difference.CONTRAST_MISSING, Difference.CONTRAST_OTHER, Difference.AREA_ADDED,
        )
    },
    Difference.FIRST_NUMBER_MISSING: Difference.NUMBER_MISSING.value,
}  # fmt: skip
_KINDS = frozenset({Difference.KIND_ADDED, Difference.KIND_MISSING})
_ADDED = frozenset({Difference.ADDED, Difference.INITIAL_ADDED})
_MISSING = frozenset({Difference.MISSING, Difference.INITIAL_MISSING})
# Differences whose given word does not agree with the place's name.
_DISAGREEING = frozenset(
    {
        Difference.SPELLING, Difference.ABBREVIATION, Difference.ADDED, Difference.INITIAL_ADDED,
        Difference.AREA_ADDED, Difference.KIND_ADDED,
        Difference.SECTION, Difference.NUMBER_ADDED, Difference.NUMBER_OTHER, Difference.CONTRAST_ADDED,
        Difference.CONTRAST_OTHER,
    }
)  # fmt: skip
# Differences that don't say which words of the given name the place's name lacks.
_OF_OTHER_WORDS = frozenset({Difference.LETTERS, Difference.BRACKET_ADDED_ALONE})
_MUNICIPIO = frozenset(
    {
        Difference.MUNICIPIO_UNLIKE, Difference.MUNICIPIO_FORMER, Difference.MUNICIPIO_LIKE_FORMER,
        Difference.MUNICIPIO_UNKNOWN, Difference.MUNICIPIO_OTHER, Difference.MUNICIPIO_ADDED,
    }
)  # fmt: skip


class Question(NamedTuple):
    """The context that all candidates of a row share: its words, the areas that it may name, and the rarity of words.

    `rarity` is the decimal logarithm of the number of places for each place with a word: 0 for a word of all names,
    5.5 for one of a single name in the country. `is_word` returns whether the catalogue has a word.
    """

    row: MatchRow
    folded: str
    words: tuple[str, ...]
    all_words: frozenset[str]  # of all readings, with the words in brackets
    area_words: Sequence[Sequence[str]]  # of the names of the municipios that the row may name
    rarity: Callable[[str], float]
    is_word: Callable[[str], bool]


def gather(question: Question, place: IndexedLocality, faults: Sequence[NameFault], lead: float) -> dict[str, float]:
    """Return the evidence for a place by name, without zeros; `lead` is in penalties, over the best of the others."""
    found: dict[str, float] = {"any": 1.0}
    for name, value in _of_faults(question, place, faults):
        found[name] = found.get(name, 0.0) + value
    found.update(_of_words(question, place, faults))
    found.update(_of_area(question, faults))
    found.update(_of_point(question, place))
    found.update(_of_place(question, place))
    cost = sum([fault.penalty for fault in faults])
    found["cost"] = cost / 10
    found["cost_heavy"] = float(cost > weights.HEAVY_COST)
    found["ahead"] = min(weights.MAX_LEAD, max(0.0, lead / 10))
    found["behind"] = max(-weights.MAX_LEAD, min(0.0, lead / 10))
    found["alone"] = float(lead > weights.LEAD)
    return found


def _of_faults(question: Question, place: IndexedLocality, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    differences = [fault.difference for fault in faults if fault.difference not in _NOT_OF_NAME]
    if not differences:
        yield "same_name", 1.0
        return
    yield "differences", float(len(differences))
    if _LIGHT.issuperset(differences):
        yield "light", 1.0
    if differences == [Difference.SPELLING]:
        yield "spelling_only", 1.0
    if not _MISSING.isdisjoint(differences):
        yield "missing", 1.0
    for fault in faults:
        yield from _of_fault(question, place, fault)


def _of_fault(question: Question, place: IndexedLocality, fault: NameFault) -> Iterator[tuple[str, float]]:
    difference = fault.difference
    if name := _OWN_EVIDENCE.get(difference):
        yield name, 1.0
    elif difference in _ADDED:
        yield "added", 1.0
        yield "added_rarity", question.rarity(fault.given)
        yield "added_unknown", float(not question.is_word(fault.given))
    elif difference in _MISSING:
        yield "missing_rarity", question.rarity(fault.found)
    elif difference in _KINDS:
        yield from _of_kind(place, fault)
    elif difference is Difference.LETTERS:
        yield "letters", 1.0
        yield "letters_cost", fault.penalty / 10
    elif difference is Difference.ABBREVIATION:
        yield "abbreviation", 1.0
        yield "abbreviation_of_a_word", float(question.is_word(fault.given))
    elif difference is Difference.SPELLING:
        yield from _of_spelling(question, fault)


def _of_kind(place: IndexedLocality, fault: NameFault) -> Iterator[tuple[str, float]]:
    sort = _sort_of_kind(fault.given or fault.found)
    yield f"{fault.difference}_{sort}", 1.0
    # The ejido or the farm that has the name of a town is another place.
    if fault.difference is Difference.KIND_ADDED and sort != "settlement" and place.flags & (SEAT | URBAN):
        yield "kind_added_to_town", 1.0


def _of_spelling(question: Question, fault: NameFault) -> Iterator[tuple[str, float]]:
    yield "spelling", 1.0
    yield "spelling_cost", fault.penalty / 10
    if question.is_word(fault.given):  # if both are words of the catalogue, one is hardly a slip for the other
        yield "spelling_of_a_word", 1.0
        yield "spelling_of_a_common_word", weights.MAX_RARITY - question.rarity(fault.given)
    if fault.given[:1] != fault.found[:1]:
        yield "spelling_first_letter", 1.0


def _sort_of_kind(word: str) -> str:
    if word in ESTABLISHMENTS:
        return "establishment"
    return "settlement" if word in SETTLEMENTS else "weighty" if word in WEIGHTY_GENERICS else "other"


def _of_words(question: Question, place: IndexedLocality, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    """Yield how much of the given name, and of the place's outside its brackets, agrees, by the rarity of the words."""
    differ = {word for fault in faults if fault.difference in _DISAGREEING for word in fault.given.split()}
    words: Collection[str] = question.words
    if any(fault.difference is Difference.BRACKET_ADDED_ALONE for fault in faults):
        words = sorted(question.all_words)
    if any(fault.difference in _OF_OTHER_WORDS for fault in faults):
        differ.update(set(question.words).difference(*(name.words for name in place.names)))
    shared = [word for word in words if word not in differ and word not in GENERICS]
    yield "shared_rarity", min(weights.MAX_SHARED_RARITY, sum(map(question.rarity, shared)))
    yield "shared_words", float(min(weights.MAX_SHARED_WORDS, len(shared)))
    given = sum(question.rarity(word) for word in words if word not in place.municipio_words)
    agreed = sum(question.rarity(word) for word in shared if word not in place.municipio_words)
    yield "share_of_given", agreed / given if given else 1.0
    main = place.names[0].words
    whole = sum(map(question.rarity, main))
    if whole:
        yield "share_of_place", sum(question.rarity(word) for word in main if word in question.all_words) / whole


def _of_area(question: Question, faults: Sequence[NameFault]) -> Iterator[tuple[str, float]]:
    row = question.row
    municipio = next((fault for fault in faults if fault.difference in _MUNICIPIO), None)
    if municipio is None:
        yield "municipio_unlike", 0.0
    elif municipio.difference is Difference.MUNICIPIO_OTHER:
        yield "municipio_other", 1.0
    elif municipio.difference is Difference.MUNICIPIO_UNKNOWN:
        yield "municipio_unknown", 1.0
    else:
        yield "municipio_unlike", municipio.penalty / 10
    if not row.municipio:
        yield "municipio_not_given", 1.0
    if not row.estado:
        yield "estado_not_given", 1.0
    if not row.municipio and not row.estado:
        yield "no_area_given", 1.0
    if any(fault.difference is Difference.AMBITO for fault in faults):
        yield "ambito_other", 1.0


def _of_point(question: Question, place: IndexedLocality) -> Iterator[tuple[str, float]]:
    km = question.row.kilometres_to(place.latitud, place.longitud)
    if km is not None:
        yield "km", math.log10(1 + km)
        yield next((name for bound, name in weights.KILOMETRES if km < bound), "km_over_8"), 1.0


def _of_place(question: Question, place: IndexedLocality) -> Iterator[tuple[str, float]]:
    is_seat, is_urban = bool(place.flags & SEAT), bool(place.flags & URBAN)
    population = math.log10(1 + (place.poblacion or 0))
    yield "population", population
    yield "is_seat", float(is_seat)
    yield "is_urban", float(is_urban)
    yield "homonym", float(bool(place.flags & HOMONYM))
    yield "clave", math.log10(place.id % KEYS_OF_A_MUNICIPIO)
    if not question.row.municipio:
        yield "population_without_municipio", population
        yield "seat_without_municipio", float(is_seat)
        yield "urban_without_municipio", float(is_urban)
    if question.words and set(question.words) <= set(place.municipio_words):  # the seat often goes by that name
        yield "named_like_municipio_seat" if is_seat else "named_like_municipio_other", 1.0
