"""Lists the differences between a row and a place, each with its penalty: name, municipio, point and ambito."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.names import weights
from localidades_api.names.areas import Area, AreaBook, untitled
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.layout import URBAN
from localidades_api.names.places import IndexedLocality, NameKind, PlaceName
from localidades_api.names.rows import MatchRow
from localidades_api.names.text import (
    MAX_WORDS,
    canonical,
    fold,
    open_word,
    repair,
    take_apart,
    undo_date,
    variants,
    with_article,
)
from localidades_api.names.vocabulary import (
    ARTICLES,
    CONTRASTING,
    ESTABLISHMENTS,
    GENERICS,
    SETTLEMENTS,
    WEIGHTY_GENERICS,
)
from localidades_api.names.weights import PENALTIES

_KIND_PENALTIES = {
    **dict.fromkeys(ESTABLISHMENTS & GENERICS, weights.ESTABLISHMENT_PENALTY),
    **dict.fromkeys(WEIGHTY_GENERICS, weights.WEIGHTY_KIND_PENALTY),
    **dict.fromkeys(SETTLEMENTS, weights.SETTLEMENT_PENALTY),
}
_OF_OTHER_NAMES: Mapping[NameKind, Difference] = {
    NameKind.SEAT: Difference.SEAT,
    NameKind.SHARED_SEAT: Difference.SEAT_WITH_NAMESAKE,
    NameKind.EVERYDAY: Difference.EVERYDAY,
    NameKind.FORMER: Difference.FORMER_NAME,
}
_CACHED_SOUNDS = 4_000
# Letters that sound alike; people write one for the other.
_SOUNDS = (
    ("qu", "k"), ("ch", "@"), ("ph", "f"), ("ll", "y"), ("ce", "se"), ("ci", "si"), ("z", "s"), ("v", "b"), ("h", ""),
    ("x", "j"), ("y", "i"), ("ge", "je"), ("gi", "ji"), ("hu", "u"), ("gu", "u"), ("w", "u"), ("c", "k"), ("tz", "s"),
)  # fmt: skip
_WITH_PERIOD = re.compile(r"\b(\w++)\.")
_DIGITS = re.compile("[0-9]+")
_SQUARE_BRACKETS = re.compile(r"\[([^\[\]]*)")
_WITHOUT_VOWELS = re.compile("[a-z][^aeiou0-9]+[aeo]?")  # glz, gpe, prsdnt


class GivenName(NamedTuple):
    """A name from a row, and its readings: canonical words, and the fault that a reading begins with."""

    text: str
    damage: NameFault | None  # letters of MS-DOS, or a date of a spreadsheet, that were undone
    folded: str
    letters: str  # folded, outside its brackets, without spaces
    digits: list[str]  # the numbers in these letters, as the spaces part them
    initials: tuple[str, ...]  # its words of one letter, folded
    shortened: frozenset[str]  # its words that are cut short, as a period behind them or missing vowels show
    spoken: str | None  # folded, with a trailing article moved to the front: "Paz, La" is "la paz"
    articles: frozenset[str]
    readings: tuple[tuple[tuple[str, ...], NameFault | None], ...]


def read_name(text: str) -> GivenName:
    """Take the name of a row apart."""
    written = text.strip()
    repaired = repair(written).strip()
    text = undo_date(repaired)
    main, inner = take_apart(text)
    moved = with_article(main)
    folded = fold(text)
    folded_main = folded if main is text else fold(main)
    spoken = fold(moved) if moved else folded_main if main != text and not inner else None
    found = variants(text)
    readings: list[tuple[tuple[str, ...], NameFault | None]] = [(found[0], None)]
    if len(found) > 1:
        added = Difference.BRACKET_ESTABLISHMENT_ADDED if _has_establishment(text, inner) else Difference.BRACKET_ADDED
        readings[0] = found[0], fault_of(added, text, main)
        readings.append((found[1], None))
        for part in found[2:4]:
            is_longer = set(found[0]) <= set(part)  # `Chiconcillo (Santiago Chiconcillo)`
            alone = Difference.BRACKET_ADDED if is_longer else Difference.BRACKET_ADDED_ALONE
            readings.append((part, fault_of(alone, text, " ".join(part))))
    words = folded.split()[:MAX_WORDS]
    shortened = {word for word in words if _WITHOUT_VOWELS.fullmatch(word)}
    if "." in text:
        shortened.update(map(fold, _WITH_PERIOD.findall(text)))
    return GivenName(
        text,
        None if text == written or len(repaired) < len(written) else fault_of(Difference.WORDING, written, text),
        folded,
        folded_main.replace(" ", ""),
        _DIGITS.findall(folded_main),
        tuple(word for word in words if len(word) == 1),
        frozenset(shortened),
        spoken,
        _articles(spoken or folded),
        tuple(readings),
    )


def _has_establishment(text: str, inner: Iterable[str]) -> bool:
    """Return whether a bracket of a name says that it is one of an establishment or a single property.

    INEGI uses square brackets for these and for kinds of places: `[Rancho]`, `[Bombeo de Agua]`, `[Ejido]`.
    """
    if any(words[0] in ESTABLISHMENTS for words in map(canonical, inner) if words):
        return True
    return not all(GENERICS.issuperset(canonical(part)) for part in _SQUARE_BRACKETS.findall(text))


def fault_of(difference: Difference, given: str, found: str = "") -> NameFault:
    """Return a difference that always has the same penalty."""
    return NameFault(difference, given, found, PENALTIES[difference])


def _articles(folded: str) -> frozenset[str]:
    """Return the article that a name begins with, if any, also behind words for the kind of a place."""
    for word in folded.split():
        if word in ARTICLES:
            return frozenset({word})
        if not GENERICS.issuperset(open_word(word)):
            break
    return frozenset()


class NameDifference(NamedTuple):
    """The differences between two names, and the sum of their penalties."""

    cost: float
    faults: tuple[NameFault, ...]


_SAME = NameDifference(0.0, ())


def compare(given: GivenName, place: IndexedLocality, least: float = weights.MAX_COST) -> NameDifference:
    """Return the faults of the place's name that differs least.

    If each costs more than `least`, or shares nothing with the given name, the cost is over 100, without faults.
    """
    undone = (given.damage,) if given.damage else ()
    if given.folded == fold(place.nombre):
        return NameDifference(given.damage.penalty, undone) if given.damage else _SAME
    for nombre, _, _ in place.former:
        if given.folded == fold(nombre):
            fault = fault_of(Difference.FORMER_NAME_LITERALLY, nombre, place.nombre)
            return NameDifference(sum(one.penalty for one in (*undone, fault)), (*undone, fault))
    best = NameDifference(least + weights.MAX_COST, ())
    for name in place.names:
        for reading, first in given.readings:
            base = first.penalty if first else 0.0
            as_one = _written_as_one_word(given, reading, name.words, name.written or place.nombre)
            found = as_one or _compare_words(given, reading, name.words, place, min(best.cost, weights.MAX_COST) - base)
            if found is None:
                continue
            faults = [*undone, *([first] if first else ()), *found]
            faults += _faults_of_spelling(given, place, name, same_words=not found)
            cost = sum([fault.penalty for fault in faults])
            if cost < best.cost:
                best = NameDifference(cost, tuple(faults))
    return best


def compare_letters(given: GivenName, place: IndexedLocality) -> NameDifference | None:
    """Return the difference to the place's name whose letters are most alike, whatever their spaces.

    None if none is much alike, or if they have other numbers or contrasting words.
    """
    before = [fault for fault in (given.damage, given.readings[0][1]) if fault]
    best: NameDifference | None = None
    for full in dict.fromkeys((place.nombre, *(name.written for name in place.names if name.written))):
        apart = take_apart(full)
        for part in (apart.main, *apart.inner):
            folded = fold(part)
            likeness = _likeness(given.letters, folded.replace(" ", "")) if folded else 0.0
            if likeness < weights.MIN_WHOLE_LIKENESS:
                continue
            if _contradicts(given, part, is_spaced=likeness == 1):
                continue
            penalty = round(PENALTIES[Difference.SPACING] + (1 - likeness) * weights.SPELLING_PENALTY, 2)
            difference = Difference.SPACING if likeness == 1 else Difference.LETTERS
            faults = [*before, NameFault(difference, given.folded, folded, penalty)]
            if apart.inner:
                kind = Difference.BRACKET_LEFT_OUT if part is apart.main else Difference.BRACKET_ALONE
                faults.append(fault_of(kind, given.text, full))
            if full != place.nombre:
                name = next(one for one in place.names if one.written == full)
                faults.append(fault_of(_OF_OTHER_NAMES[name.kind], full, place.nombre))
            cost = sum(fault.penalty for fault in faults)
            if best is None or cost < best.cost:
                best = NameDifference(cost, tuple(faults))
    return best


def _contradicts(given: GivenName, part: str, *, is_spaced: bool) -> bool:
    """Return whether a name has other numbers or contrasting words; `is_spaced` if only spaces differ."""
    if is_spaced:
        return given.digits != _DIGITS.findall(fold(part))
    return _distinguishing(given.readings[0][0]) != _distinguishing(canonical(part))


def _distinguishing(words: Iterable[str]) -> set[str]:
    """Return the numbers and contrasting words of a name."""
    return {*_DIGITS.findall(" ".join(words)), *CONTRASTING.intersection(words)}


def _written_as_one_word(
    given: GivenName, reading: tuple[str, ...], words: tuple[str, ...], written: str
) -> list[NameFault] | None:
    """Return the fault of a name without its spaces, such as `Cuatrociénegas`, in which a number stays in letters."""
    if len(reading) != 1 or len(words) == 1:
        return None
    folded = fold(written)
    if given.folded == folded.replace(" ", "") and _has_same_digits([given.folded], [folded]):
        return [fault_of(Difference.SPACING, given.folded, " ".join(words))]
    return None


def _faults_of_spelling(
    given: GivenName, place: IndexedLocality, name: PlaceName, *, same_words: bool
) -> Iterable[NameFault]:
    """Yield the faults of the name that was compared: which of the place's names it is, and how it is written."""
    full = name.written or place.nombre
    folded = fold(full)
    if name.kind in _OF_OTHER_NAMES:
        yield fault_of(_OF_OTHER_NAMES[name.kind], full, place.nombre)
    if given.folded == folded:
        return
    bracket, folded = _compare_brackets(given, full, folded, name.words)
    if bracket is not None:
        yield bracket
    if folded in {given.folded, given.spoken}:
        return
    articles = _articles(folded)
    if articles != given.articles:
        yield fault_of(Difference.ARTICLE, " ".join(given.articles), " ".join(articles))
    elif same_words:
        yield fault_of(Difference.WORDING, given.text, full)


def _compare_brackets(given: GivenName, full: str, folded: str, words: tuple[str, ...]) -> tuple[NameFault | None, str]:
    """Return the fault of comparing only a part of a name with brackets, and that part, folded."""
    apart = take_apart(full)
    if not apart.inner:
        return None, folded
    if words == canonical(apart.main):
        is_establishment = any(part in ESTABLISHMENTS for inner in apart.inner for part in canonical(inner)[:1])
        difference = Difference.BRACKET_ESTABLISHMENT_LEFT_OUT if is_establishment else Difference.BRACKET_LEFT_OUT
        return fault_of(difference, given.text, full), fold(apart.main)
    if len(words) < len(canonical(full)):
        return fault_of(Difference.BRACKET_ALONE, given.text, full), " ".join(map(fold, apart.inner))
    return None, folded


def _compare_words(
    name: GivenName, given: tuple[str, ...], found: tuple[str, ...], place: IndexedLocality, least: float
) -> list[NameFault] | None:
    """Return the faults between the canonical words of a reading and a place; None if they cost more than `least`."""
    if given == found:
        return [] if least > 0 else None
    added, missing = _without_shared(given, found)
    faults = _pair_initials(name.initials, added, missing) if missing and name.initials else []
    if not added and not missing and not faults:
        return [fault_of(Difference.ORDER, " ".join(given), " ".join(found))]
    if added and missing:
        if "".join(given) == "".join(found) and _has_same_digits(given, found):
            return [fault_of(Difference.SPACING, " ".join(given), " ".join(found))]
        faults += _pair(added, missing, name.shortened)
    if _shares_nothing(given, added):
        return None
    letters = max(sum(map(len, found)), sum(map(len, given)), 1)
    cost = sum([fault.penalty for fault in faults])
    for fault in _faults_of_unpaired(added, missing, given, found, place, letters):
        faults.append(fault)
        cost += fault.penalty
        if cost >= least:
            return None
    return faults if cost < least else None


def _has_same_digits(given: Iterable[str], found: Iterable[str]) -> bool:
    """Return whether two texts have the same numbers in digits; a space between two digits makes two of one."""
    return _DIGITS.findall(" ".join(given)) == _DIGITS.findall(" ".join(found))


def _shares_nothing(given: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether a name has no word of the given one, except for those that many names have."""
    weighty = [word for word in given if word not in GENERICS and not word.isdigit()] or given
    return all(added.count(word) >= weighty.count(word) for word in weighty)


def _without_shared(given: Sequence[str], found: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that only the first has, and those that only the second has."""
    added, missing = [], list(found)
    for word in given:
        if word in missing:
            missing.remove(word)
        else:
            added.append(word)
    return added, missing


def _faults_of_unpaired(
    added: Sequence[str],
    missing: Sequence[str],
    given: Sequence[str],
    found: Sequence[str],
    place: IndexedLocality,
    letters: int,
) -> Iterable[NameFault]:
    """Yield the faults of words without a counterpart."""
    if added and missing:
        yield from _conflicts(added, missing)
    has_number = any(map(str.isdigit, (*given, *found)))
    first = True
    areas = set(_areas_behind(added, given, place)) if GENERICS.issuperset(missing) else set()
    for word in added:
        if word in areas:
            yield fault_of(Difference.AREA_ADDED, word)
        else:
            yield _fault_of_unpaired(word, letters, is_added=True, has_number=has_number, first=first)
            first = first and word in GENERICS
    first = True
    for word in missing:
        yield _fault_of_unpaired(word, letters, is_added=False, has_number=has_number, first=first)
        first = first and word in GENERICS


def _areas_behind(added: Sequence[str], given: Sequence[str], place: IndexedLocality) -> Iterable[str]:
    """Yield the words of the place's areas that follow its name."""
    for word in reversed(given[1:]):
        if word not in added or not (word in place.municipio_words or word in place.state_words):
            return
        yield word


def _conflicts(added: Sequence[str], missing: Sequence[str]) -> Iterable[NameFault]:
    """Yield a fault if the names have different numbers, and one if they have different contrasting words."""
    one, other = ([word for word in words if word.isdigit()] for words in (added, missing))
    if one and other:
        yield fault_of(Difference.NUMBER_OTHER, one[0], other[0])
    one, other = ([word for word in words if word in CONTRASTING] for words in (added, missing))
    if one and other:
        yield fault_of(Difference.CONTRAST_OTHER, one[0], other[0])


def _fault_of_unpaired(word: str, letters: int, *, is_added: bool, has_number: bool, first: bool) -> NameFault:
    """Return the fault of a word that only one of the names has: the given one if it `is_added`."""
    words = (word, "") if is_added else ("", word)
    if word.isdigit():
        missing = Difference.FIRST_NUMBER_MISSING if word == "1" else Difference.NUMBER_MISSING
        return fault_of(Difference.NUMBER_ADDED if is_added else missing, *words)
    if word in CONTRASTING:
        return fault_of(Difference.CONTRAST_ADDED if is_added else Difference.CONTRAST_MISSING, *words)
    if word == "seccion" and has_number:
        return fault_of(Difference.SECTION, *words)
    if word in GENERICS:
        difference = Difference.KIND_ADDED if is_added else Difference.KIND_MISSING
        return NameFault(difference, *words, _KIND_PENALTIES.get(word, weights.KIND_PENALTY))
    if len(word) == 1:
        return fault_of(Difference.INITIAL_ADDED if is_added else Difference.INITIAL_MISSING, *words)
    base = weights.FIRST_WORD_PENALTY if first else weights.NEXT_WORD_PENALTY
    penalty = round(base + weights.WORD_SHARE_PENALTY * len(word) / letters, 2)
    return NameFault(Difference.ADDED if is_added else Difference.MISSING, *words, penalty)


# -- Spelling


def _pair_initials(initials: Iterable[str], added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair initials with the words that begin so, such as those of `V. Carranza`; take them out of the lists."""
    faults = []
    for letter in initials:
        word = next((one for one in missing if one[0] == letter and one not in GENERICS), None)
        if word:
            missing.remove(word)
            for opened in open_word(letter):  # `V` may have been read as a number
                if opened in added:
                    added.remove(opened)
            faults.append(NameFault(Difference.ABBREVIATION, letter, word, weights.ABBREVIATION_PENALTY))
    return faults


def _pair(added: list[str], missing: list[str], shortened: Collection[str]) -> list[NameFault]:
    """Pair words that are alike, the most alike first; take them out of the lists."""
    ones, others = ([word for word in words if len(word) > 1 and not word.isdigit()] for words in (added, missing))
    pairs = sorted(
        [
            (-likeness, one, other)
            for one in ones
            for other in others
            if (likeness := _likeness(one, other)) >= weights.MIN_WORD_LIKENESS and _has_same_digits([one], [other])
        ]
    )
    faults = []
    for unlike, one, other in pairs:
        if one not in added or other not in missing:
            continue
        if one in CONTRASTING and other in CONTRASTING:
            continue
        added.remove(one)
        missing.remove(other)
        penalty = max(weights.MIN_SPELLING_PENALTY, (1 + unlike) * weights.SPELLING_PENALTY)
        faults.append(NameFault(Difference.SPELLING, one, other, round(penalty, 2)))
    if added and missing:
        faults += _pair_joined(added, missing)
    if added and missing:
        faults += _pair_abbreviated(added, missing, shortened)
    return faults


def _pair_abbreviated(added: list[str], missing: list[str], shortened: Collection[str]) -> list[NameFault]:
    """Pair words that are cut short with those that have their letters."""
    faults = []
    for one in tuple(added):
        if len(one) > 1 and one.isalpha():
            is_short = one in shortened
            other = next((word for word in missing if _is_short_for(one, word, only_beginning=not is_short)), None)
            if other:
                added.remove(one)
                missing.remove(other)
                penalty = weights.ABBREVIATION_PENALTY if is_short else weights.BEGINNING_PENALTY
                faults.append(NameFault(Difference.ABBREVIATION, one, other, penalty))
    return faults


def _is_short_for(one: str, other: str, *, only_beginning: bool) -> bool:
    """Return whether a word has the first letter of another one, and its others from it in their order."""
    if other.startswith(one):
        return True
    if only_beginning or one[0] != other[0]:
        return False
    rest = iter(other)
    return all(letter in rest for letter in one)


def _pair_joined(added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair the words left over if they have the same letters, differently spaced: `seyba playa` and Seybaplaya."""
    if len(added) == len(missing) == 1:
        return []
    likeness = _likeness("".join(added), "".join(missing))
    if likeness >= weights.MIN_SPACING_LIKENESS and _has_same_digits(added, missing):
        penalty = PENALTIES[Difference.SPACING] + (1 - likeness) * weights.SPELLING_PENALTY
        fault = NameFault(Difference.SPACING, " ".join(added), " ".join(missing), round(penalty, 2))
        added.clear()
        missing.clear()
        return [fault]
    return []


def _likeness(one: str, other: str) -> float:
    """Return how alike two words are, from 0 to 1; words that sound the same are nearly the same."""
    likeness: float = OSA.normalized_similarity(one, other)
    if one[0] != other[0]:
        likeness -= weights.OTHER_FIRST_LETTER
    if likeness >= weights.MIN_SOUND_LIKENESS and _sound(one) == _sound(other):
        return max(likeness, weights.SAME_SOUND_LIKENESS)
    if likeness >= weights.MIN_WORD_LIKENESS and one.rstrip("s") == other.rstrip("s"):
        return max(likeness, weights.SAME_SINGULAR_LIKENESS)
    return likeness


@lru_cache(_CACHED_SOUNDS)
def _sound(word: str) -> str:
    """Return roughly how a word sounds."""
    for letters, replacement in _SOUNDS:
        word = word.replace(letters, replacement)
    return word


# -- Area, point and ambito


def area_fault(row: MatchRow, area: Area, municipios: Mapping[int, str]) -> NameFault | None:
    """Return the fault of a municipio whose name is not quite that of the row."""
    if area.likeness >= weights.SAME_NAME:
        return None
    if area.former:
        is_same = area.likeness >= weights.SAME_FORMER_LIKENESS
        difference = Difference.MUNICIPIO_FORMER if is_same else Difference.MUNICIPIO_LIKE_FORMER
        return fault_of(difference, row.municipio or "")
    nombre = municipios.get(area.id, "")
    given, found = (set(untitled(canonical(text))) for text in (repair(row.municipio or ""), nombre))
    if given > found and max(map(len, given - found)) > 2:  # noqa: PLR2004  # not `ed` for `de`
        return fault_of(Difference.MUNICIPIO_ADDED, row.municipio or "", nombre)
    penalty = round((weights.SAME_NAME - area.likeness) * weights.MUNICIPIO_PENALTY, 2)
    return NameFault(Difference.MUNICIPIO_UNLIKE, row.municipio or "", nombre, penalty)


def estado_fault(book: AreaBook, estado: str | None) -> NameFault | None:
    """Return the fault of an estado that is misspelt or unknown."""
    if not estado:
        return None
    estado_id = book.find_state(estado)
    if estado_id is None:
        return fault_of(Difference.ESTADO, estado)
    if book.is_misspelt_state(estado):
        return fault_of(Difference.ESTADO_UNLIKE, estado, book.estados[estado_id])
    return None


def distance_fault(row: MatchRow, place: IndexedLocality) -> NameFault | None:
    """Return the fault of a place that is away from the row's point."""
    km = row.kilometres_to(place.latitud, place.longitud)
    if km is None:
        return None
    penalty = next(cost for bound, cost in weights.DISTANCE_PENALTIES if km <= bound)
    return NameFault(Difference.DISTANCE, f"{km:.1f} km", "", penalty) if penalty else None


def ambito_fault(row: MatchRow, place: IndexedLocality) -> NameFault | None:
    """Return the fault of a place that is urban although the row says rural, or the other way round."""
    found = "U" if place.flags & URBAN else "R"
    return fault_of(Difference.AMBITO, row.ambito, found) if row.ambito and row.ambito != found else None
