"""Lists the differences between a row and a place, each with its penalty: name, municipio, point and ambito."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.names.areas import Area
from localidades_api.names.layout import URBAN
from localidades_api.names.places import IndexedLocality, NameKind, PlaceName
from localidades_api.names.rows import FaultCode, MatchRow, NameFault
from localidades_api.names.text import canonical, open_word, repair, take_apart, variants, with_article
from localidades_api.names.vocabulary import (
    ARTICLES,
    CONTRASTING,
    ESTABLISHMENTS,
    GENERICS,
    SETTLEMENTS,
    WEIGHTY_GENERICS,
)

# Penalties, in points of a hundred; calibrated on names from public registers (docs/decisions/certainty.md).
_WORDING = 1.0
_ARTICLE = 2.0
_ORDER = 1.0
_KIND = 2.5
_SETTLEMENT = 1.5  # the village itself, against its ejido
_ESTABLISHMENT = 4.0  # a farm or a hotel that is called after the village
_WEIGHTY_KIND = 6.0
_SECTION = 0.5  # the word `Sección` beside its number
_INITIAL = 3.0  # a single letter
_OF_AREA = 1.0  # the name of the municipio or the estado after that of the place
_NUMBER_MISSING, _FIRST_MISSING, _NUMBER_ADDED, _NUMBER_OTHER = 14.0, 11.0, 18.0, 40.0
_CONTRAST, _CONTRAST_OTHER = 16.0, 35.0
_WORD, _NEXT_WORD, _WORD_SHARE = 6.0, 1.0, 22.0  # a word added or missing: more the more of the name it is
_ESTABLISHMENT_LEFT_OUT = 4.0  # brackets that say that it is a ranch, a farm, a hotel
_BRACKET_LEFT_OUT, _BRACKET_ALONE, _BRACKET_ADDED, _BRACKET_ADDED_ALONE = 2.0, 6.0, 3.0, 8.0
_KIND_PENALTIES = {
    **dict.fromkeys(ESTABLISHMENTS & GENERICS, _ESTABLISHMENT),
    **dict.fromkeys(WEIGHTY_GENERICS, _WEIGHTY_KIND),
    **dict.fromkeys(SETTLEMENTS, _SETTLEMENT),
}
_KINDS: dict[NameKind, tuple[FaultCode, float]] = {
    NameKind.SEAT: ("seat", 1.5),
    NameKind.SHARED_SEAT: ("seat", 4.0),
    NameKind.EVERYDAY: ("everyday", 2.0),
    NameKind.FORMER: ("former_name", 3.0),
}
_FORMER_LITERALLY = 0.5  # less than tells two places apart: another place may have that name today
_MAX_FAULTS_COST = 100.0
_MUNICIPIO_SHARE = 0.4  # of how much the municipio's name is unlike the given
_FORMER_MUNICIPIO, _LIKE_FORMER_MUNICIPIO = 0.5, 3.0  # the municipio that the place was in
_SAME_BUT_FORMER = 99.0  # likeness of a former name that is the same
# Kilometres from the point that was given, and what they cost.
_DISTANCES = ((2.0, 0.0), (5.0, 2.0), (15.0, 6.0), (40.0, 14.0), (math.inf, 25.0))
_OTHER_AMBITO = 0.9  # less than any margin: it orders homonyms and decides nothing, since registers often differ
_UNLIKE = 60.0  # points that a word costs if it is like no other
_ALIKE = 0.65  # share of letters that two words must have in common to be spellings of one word
_SPACING = 1.0

# Letters that sound alike; people write one for the other.
_SOUNDS = (
    ("qu", "k"), ("ch", "@"), ("ph", "f"), ("ll", "y"), ("ce", "se"), ("ci", "si"), ("z", "s"), ("v", "b"), ("h", ""),
    ("x", "j"), ("ge", "je"), ("gi", "ji"), ("hu", "u"), ("gu", "u"), ("w", "u"), ("c", "k"), ("tz", "s"), ("ñ", "n"),
)  # fmt: skip


class GivenName(NamedTuple):
    """A name as it was given: its readings are canonical words, and the fault that each begins with."""

    text: str
    folded: str
    spoken: str | None  # folded, the article that ended it at its beginning
    articles: frozenset[str]
    readings: tuple[tuple[tuple[str, ...], NameFault | None], ...]


def read_name(text: str) -> GivenName:
    """Take a name apart that was given."""
    text = repair(text).strip()
    main = take_apart(text).main
    moved = with_article(main)
    folded = fold(text)
    spoken = fold(moved) if moved else fold(main) if main != text and "(" not in text and "[" not in text else None
    found = variants(text)
    readings: list[tuple[tuple[str, ...], NameFault | None]] = [(found[0], None)]
    if len(found) > 1:
        readings[0] = found[0], NameFault("bracket", text, main, _BRACKET_ADDED)
        readings.append((found[1], None))
        readings += [(words, NameFault("bracket", text, " ".join(words), _BRACKET_ADDED_ALONE)) for words in found[2:4]]
    return GivenName(text, folded, spoken, _articles(spoken or folded), tuple(readings))


def _articles(folded: str) -> frozenset[str]:
    """Return the article that a name begins with, if any; words for the kind of a place may stand before it."""
    for word in folded.split():
        if word in ARTICLES:
            return frozenset({word})
        if not GENERICS.issuperset(open_word(word)):
            break
    return frozenset()


class NameDifference(NamedTuple):
    """What a comparison of two names cost, and why."""

    cost: float
    faults: tuple[NameFault, ...]


_SAME = NameDifference(0.0, ())


def compare(given: GivenName, place: IndexedLocality, least: float = _MAX_FAULTS_COST) -> NameDifference:
    """Return the faults of the place's name that differs least.

    Where each costs more than `least`, or has nothing of the given one, the cost is beyond 100 and no fault is named.
    """
    if given.folded == fold(place.nombre):
        return _SAME
    for nombre, _, _ in place.former:
        if given.folded == fold(nombre):
            return NameDifference(
                _FORMER_LITERALLY, (NameFault("former_name", nombre, place.nombre, _FORMER_LITERALLY),)
            )
    best = NameDifference(least + _MAX_FAULTS_COST, ())
    for name in place.names:
        for reading, first in given.readings:
            base = first.penalty if first else 0.0
            as_one = _written_as_one_word(given, reading, name.words, name.written or place.nombre)
            found = as_one or _compare_words(reading, name.words, place, min(best.cost, _MAX_FAULTS_COST) - base)
            if found is None:
                continue
            faults = [*([first] if first else ()), *found]
            faults += _of_kind(given, place, name, written_alike=not found)
            cost = sum(fault.penalty for fault in faults)
            if cost < best.cost:
                best = NameDifference(cost, tuple(faults))
    return best


def _written_as_one_word(
    given: GivenName, reading: tuple[str, ...], words: tuple[str, ...], written: str
) -> list[NameFault] | None:
    """Return the fault of a name given without its spaces: `Cuatrociénegas`, whose number stays in letters then."""
    if len(reading) == 1 and len(words) > 1 and given.folded == fold(written).replace(" ", ""):
        return [NameFault("spacing", given.folded, " ".join(words), _SPACING)]
    return None


def _of_kind(given: GivenName, place: IndexedLocality, name: PlaceName, *, written_alike: bool) -> Iterable[NameFault]:
    """Yield the faults of the name that was compared: which of the place's it is, and how it is written."""
    full = name.written or place.nombre
    folded = fold(full)
    if name.kind in _KINDS:
        code, penalty = _KINDS[name.kind]
        yield NameFault(code, full, place.nombre, penalty)
    if given.folded == folded:
        return
    bracket, folded = _of_brackets(given, full, folded, name.words)
    if bracket is not None:
        yield bracket
    if folded in {given.folded, given.spoken}:
        return
    articles = _articles(folded)
    if articles != given.articles:
        yield NameFault("article", " ".join(given.articles), " ".join(articles), _ARTICLE)
    elif written_alike:
        yield NameFault("wording", given.text, full, _WORDING)


def _of_brackets(given: GivenName, full: str, folded: str, words: tuple[str, ...]) -> tuple[NameFault | None, str]:
    """Return the fault of a part of a name with brackets, and that part, folded."""
    apart = take_apart(full)
    if not apart.inner:
        return None, folded
    if words == canonical(apart.main):
        single = any(part in ESTABLISHMENTS for inner in apart.inner for part in canonical(inner)[:1])
        penalty = _ESTABLISHMENT_LEFT_OUT if single else _BRACKET_LEFT_OUT
        return NameFault("bracket", given.text, full, penalty), fold(apart.main)
    if len(words) < len(canonical(full)):
        return NameFault("bracket", given.text, full, _BRACKET_ALONE), " ".join(map(fold, apart.inner))
    return None, folded


def _compare_words(
    given: tuple[str, ...], found: tuple[str, ...], place: IndexedLocality, least: float
) -> list[NameFault] | None:
    """Return the faults between canonical words; None if they cost more than `least`."""
    if given == found:
        return [] if least > 0 else None
    added, missing = _without_shared(given, found)
    if not added and not missing:
        return [NameFault("order", " ".join(given), " ".join(found), _ORDER)]
    faults: list[NameFault] = []
    if added and missing:
        if "".join(given) == "".join(found):
            return [NameFault("spacing", " ".join(given), " ".join(found), _SPACING)]
        faults += _pair(added, missing)
    if _has_nothing_of(given, added):
        return None
    letters = max(sum(map(len, found)), sum(map(len, given)), 1)
    cost = sum(fault.penalty for fault in faults)
    for fault in _left_over(added, missing, given, found, place, letters):
        faults.append(fault)
        cost += fault.penalty
        if cost >= least:
            return None
    return faults if cost < least else None


def _has_nothing_of(given: Sequence[str], added: Sequence[str]) -> bool:
    """Tell whether a name has no word of the given one, but for those that many names have."""
    weighty = [word for word in given if word not in GENERICS and not word.isdigit()] or given
    return all(word in added for word in weighty)


def _without_shared(given: Sequence[str], found: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that only the one has, and those that only the other has."""
    added, missing = [], list(found)
    for word in given:
        if word in missing:
            missing.remove(word)
        else:
            added.append(word)
    return added, missing


def _left_over(
    added: Sequence[str],
    missing: Sequence[str],
    given: Sequence[str],
    found: Sequence[str],
    place: IndexedLocality,
    letters: int,
) -> Iterable[NameFault]:
    """Yield the faults of words that have no counterpart."""
    if added and missing:
        yield from _conflicts(added, missing)
    numbered = any(word.isdigit() for word in given) or any(word.isdigit() for word in found)
    first = True
    for word in added:
        if word != given[0] and (word in place.municipio_words or word in place.state_words):
            yield NameFault("added", word, "", _OF_AREA)
        else:
            yield _single(word, letters, numbered=numbered, is_added=True, first=first)
            first = first and word in GENERICS
    first = True
    for word in missing:
        yield _single(word, letters, numbered=numbered, is_added=False, first=first)
        first = first and word in GENERICS


def _conflicts(added: Sequence[str], missing: Sequence[str]) -> Iterable[NameFault]:
    """Yield where both have a word that tells places apart, each another."""
    one, other = ([word for word in words if word.isdigit()] for words in (added, missing))
    if one and other:
        yield NameFault("number", one[0], other[0], _NUMBER_OTHER)
    one, other = ([word for word in words if word in CONTRASTING] for words in (added, missing))
    if one and other:
        yield NameFault("contrast", one[0], other[0], _CONTRAST_OTHER)


def _single(word: str, letters: int, *, numbered: bool, is_added: bool, first: bool) -> NameFault:
    sides = (word, "") if is_added else ("", word)
    if word.isdigit():
        missing = _FIRST_MISSING if word == "1" else _NUMBER_MISSING
        return NameFault("number", *sides, _NUMBER_ADDED if is_added else missing)
    if word in CONTRASTING:
        return NameFault("contrast", *sides, _CONTRAST)
    if word == "seccion" and numbered:
        return NameFault("kind", *sides, _SECTION)
    if word in GENERICS:
        return NameFault("kind", *sides, _KIND_PENALTIES.get(word, _KIND))
    if len(word) == 1:
        return NameFault("added" if is_added else "missing", *sides, _INITIAL)
    penalty = round((_WORD if first else _NEXT_WORD) + _WORD_SHARE * len(word) / letters, 2)
    return NameFault("added" if is_added else "missing", *sides, penalty)


# -- Spelling


def _pair(added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair words that are alike, the most alike first; take them out of the lists."""
    pairs = sorted(
        (
            (-_likeness(one, other), one, other)
            for one in added
            for other in missing
            if len(one) > 1 and len(other) > 1 and not (one.isdigit() or other.isdigit())
        ),
    )
    faults = []
    for unlike, one, other in pairs:
        if -unlike < _ALIKE or one not in added or other not in missing:
            continue
        if one in CONTRASTING and other in CONTRASTING:
            continue
        added.remove(one)
        missing.remove(other)
        faults.append(NameFault("spelling", one, other, round(max(1.0, (1 + unlike) * _UNLIKE), 2)))
    if added and missing:
        faults += _spaced_otherwise(added, missing)
    return faults


def _spaced_otherwise(added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair leftover words that have the same letters, spaced differently: `seyba playa`, Seybaplaya."""
    one, other = "".join(added), "".join(missing)
    likeness = _likeness(one, other)
    if (len(added) > 1 or len(missing) > 1) and likeness >= 0.8:  # noqa: PLR2004  # as a word with one letter in five wrong
        fault = NameFault("spacing", " ".join(added), " ".join(missing), round(_SPACING + (1 - likeness) * _UNLIKE, 2))
        added.clear()
        missing.clear()
        return [fault]
    return []


def _likeness(one: str, other: str) -> float:
    """Return how alike two words are, from 0 to 1; what sounds the same is nearly the same."""
    likeness: float = OSA.normalized_similarity(one, other)
    if one[0] != other[0]:
        likeness -= 0.08
    if likeness >= 0.5 and _sound(one) == _sound(other):  # noqa: PLR2004  # half of the letters at least
        return max(likeness, 0.96)
    if likeness >= _ALIKE and one.rstrip("s") == other.rstrip("s"):
        return max(likeness, 0.95)
    return likeness


def _sound(word: str) -> str:
    """Return how a word sounds, roughly."""
    for letters, for_ in _SOUNDS:
        word = word.replace(letters, for_)
    return word


# -- Area, point and ambito


def area_fault(row: MatchRow, area: Area, municipios: Mapping[int, str]) -> NameFault | None:
    """Return the fault of a municipio whose name is not quite the one given."""
    if area.likeness >= 100:  # noqa: PLR2004  # the same name
        return None
    if area.former:
        penalty = _FORMER_MUNICIPIO if area.likeness >= _SAME_BUT_FORMER else _LIKE_FORMER_MUNICIPIO
        return NameFault("municipio", row.municipio or "", "", penalty)
    penalty = round((100 - area.likeness) * _MUNICIPIO_SHARE, 2)
    return NameFault("municipio", row.municipio or "", municipios.get(area.id, ""), penalty)


def distance_fault(row: MatchRow, place: IndexedLocality) -> NameFault | None:
    """Return the fault of a place that is away from the point given."""
    km = row.kilometres_to(place.latitud, place.longitud)
    if km is None:
        return None
    penalty = next(cost for bound, cost in _DISTANCES if km <= bound)
    return NameFault("distance", f"{km:.1f} km", "", penalty) if penalty else None


def ambito_fault(row: MatchRow, place: IndexedLocality) -> NameFault | None:
    """Return the fault of a place that is urban where rural was given, or the other way round."""
    found = "U" if place.flags & URBAN else "R"
    return NameFault("ambito", row.ambito, found, _OTHER_AMBITO) if row.ambito and row.ambito != found else None
