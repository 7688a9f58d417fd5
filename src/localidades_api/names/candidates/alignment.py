"""Aligns the words of a row's name with those of a place's, so that each word of both has a reason.

A name has several readings: outside its brackets, with them, and inside each. Of all readings of the row and all names
of the place, the pair with the least penalties counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from localidades_api.names import weights
from localidades_api.names.files.layout import SEAT, URBAN
from localidades_api.names.places import IndexedLocality, NameKind, PlaceName
from localidades_api.names.reading.dates import undo_date
from localidades_api.names.reading.text import (
    MAX_WORDS,
    canonical,
    canonical_name,
    fold,
    open_word,
    repair,
    take_apart,
    variants,
    with_article,
)
from localidades_api.names.reading.vocabulary import (
    ARTICLES,
    BUSINESSES,
    CONTRASTING,
    ESTABLISHMENTS,
    FARMS,
    GENERICS,
    LAND,
    LANDMARKS,
    SETTLEMENTS,
)
from localidades_api.names.reasons import Difference, Reason, differ

_KINDS: Mapping[str, tuple[Reason, Reason]] = {  # the reasons of a kind that only the row has, and only the place
    **dict.fromkeys(SETTLEMENTS, (Reason.SETTLEMENT_ADDED, Reason.SETTLEMENT_MISSING)),
    **dict.fromkeys(FARMS, (Reason.FARM_ADDED, Reason.FARM_MISSING)),
    **dict.fromkeys(LAND, (Reason.LAND_ADDED, Reason.LAND_MISSING)),
    **dict.fromkeys(BUSINESSES, (Reason.BUSINESS_ADDED, Reason.BUSINESS_MISSING)),
    **dict.fromkeys(LANDMARKS, (Reason.LANDMARK_ADDED, Reason.LANDMARK_MISSING)),
}
_OTHER_KIND = Reason.KIND_ADDED, Reason.KIND_MISSING
_KINDS_ADDED = frozenset({_OTHER_KIND[0], *(added for added, _ in _KINDS.values())})
_OF_OTHER_NAMES: Mapping[NameKind, Reason] = {
    NameKind.SEAT: Reason.SEAT,
    NameKind.SHARED_SEAT: Reason.SEAT_WITH_NAMESAKE,
    NameKind.EVERYDAY: Reason.EVERYDAY,
    NameKind.FORMER: Reason.FORMER_NAME,
}
_CACHED_SOUNDS = 4_000
_CACHED_NAMES = 256  # each is read once more if nothing is called so literally
# Letters that sound alike; people write one for the other.
_SOUNDS = (
    ("qu", "k"), ("ch", "@"), ("ph", "f"), ("ll", "y"), ("ce", "se"), ("ci", "si"), ("z", "s"), ("v", "b"), ("h", ""),
    ("x", "j"), ("y", "i"), ("ge", "je"), ("gi", "ji"), ("hu", "u"), ("gu", "u"), ("w", "u"), ("c", "k"), ("tz", "s"),
)  # fmt: skip
_WITH_PERIOD = re.compile(r"\b(\w++)\.")
_DIGITS = re.compile("[0-9]+")
_SQUARE_BRACKETS = re.compile(r"\[([^\[\]]*)")
_WITHOUT_VOWELS = re.compile("[a-z][^aeiou0-9]+[aeo]?")  # glz, gpe, prsdnt
_DIMINUTIVE = re.compile("(.*?)(?:c?it|ill)[ao]s?")


class Reading(NamedTuple):
    """One way to read a name: its canonical words, and the reason that it begins with, if any."""

    words: tuple[str, ...]
    first: Difference | None = None


class GivenName(NamedTuple):
    """A name from a row, and its readings."""

    text: str
    damage: Difference | None  # letters of MS-DOS, or a date of a spreadsheet, that were undone
    folded: str
    letters: str  # folded, outside its brackets, without spaces
    digits: list[str]  # the numbers in these letters, as the spaces part them
    initials: tuple[str, ...]  # its words of one letter, folded
    shortened: frozenset[str]  # its words that are cut short, as a period behind them or missing vowels show
    spoken: str | None  # folded, with a trailing article moved to the front: "Paz, La" is "la paz"
    articles: frozenset[str]
    bracketed: tuple[str, ...]  # the canonical words in its brackets
    readings: tuple[Reading, ...]


class Comparison(NamedTuple):
    """The differences between two names, and the sum of their penalties."""

    cost: float
    differences: tuple[Difference, ...]

    @classmethod
    def of(cls, differences: Sequence[Difference]) -> "Comparison":
        """Add the penalties up."""
        return cls(sum([fault.penalty for fault in differences]), tuple(differences))

    @property
    def has_same_name(self) -> bool:
        """Whether the names are the same."""
        return not any(fault.reason.is_of_name for fault in self.differences)

    def with_more(self, *others: Difference | None) -> "Comparison":
        """Return it with further differences, if any."""
        more = [fault for fault in others if fault]
        return Comparison.of((*self.differences, *more)) if more else self


@lru_cache(_CACHED_NAMES)
def read_name(text: str) -> GivenName:
    """Take the name of a row apart."""
    written = text.strip()
    repaired = repair(written).strip()
    text = undo_date(repaired)
    main, inner = take_apart(text)
    moved = with_article(main)
    folded = fold(text)
    folded_main = folded if main is text else fold(main)
    spoken = fold(" ".join((moved or main, *inner))) if moved or main != text else None
    words = folded.split()[:MAX_WORDS]
    shortened = {word for word in words if _WITHOUT_VOWELS.fullmatch(word)}
    if "." in text:
        shortened.update(map(fold, _WITH_PERIOD.findall(text)))
    bracketed = tuple(word for part in inner for word in canonical(part))
    return GivenName(
        text,
        None if text == written or len(repaired) < len(written) else differ(Reason.WORDING, written, text),
        folded,
        folded_main.replace(" ", ""),
        _DIGITS.findall(folded_main),
        tuple(word for word in words if len(word) == 1),
        frozenset(shortened),
        spoken,
        _articles(spoken or folded),
        bracketed,
        tuple(_readings(text, main, inner, bracketed)),
    )


def _readings(text: str, main: str, inner: Sequence[str], bracketed: Sequence[str]) -> Iterator[Reading]:
    """Yield the readings of a name: outside its brackets, with them, and the first two brackets alone."""
    found = variants(text)
    if len(found) == 1:
        yield Reading(found[0])
        return
    reason = Reason.BRACKET_ADDED
    if _has_establishment(text, inner):
        reason = Reason.ESTABLISHMENT_BRACKETED
    elif all(word in CONTRASTING or word in GENERICS or word.isdigit() for word in bracketed) and _qualifiers(
        bracketed
    ):
        reason = Reason.QUALIFIER_BRACKETED
    yield Reading(found[0], differ(reason, text, main))
    yield Reading(found[1])
    for part in found[2:4]:
        is_longer = set(found[0]) <= set(part)  # `Chiconcillo (Santiago Chiconcillo)`
        alone = Reason.BRACKET_ADDED if is_longer else Reason.BRACKET_ADDED_ALONE
        yield Reading(part, differ(alone, text, " ".join(part)))


def _has_establishment(text: str, inner: Iterable[str]) -> bool:
    """Return whether a bracket of a name says that it is one of an establishment or a single property.

    INEGI uses square brackets for these and for kinds of places: `[Rancho]`, `[Bombeo de Agua]`, `[Ejido]`.
    """
    if any(words[0] in ESTABLISHMENTS for words in map(canonical, inner) if words):
        return True
    others = (canonical(part) for part in _SQUARE_BRACKETS.findall(text))
    return any(not GENERICS.issuperset(words) and _qualifiers(words) != set(words) for words in others)


def _qualifiers(words: Iterable[str]) -> set[str]:
    """Return the numbers and contrasting words of a name, which tell it from its neighbours'."""
    return {word for word in words if word in CONTRASTING or word.isdigit()}


def _articles(folded: str) -> frozenset[str]:
    for word in folded.split():
        if word in ARTICLES:
            return frozenset({word})
        if not GENERICS.issuperset(open_word(word)):
            break
    return frozenset()


def align(given: GivenName, place: IndexedLocality, least: float = weights.MAX_COST) -> Comparison:
    """Return the differences to the place's name that differs least.

    If each costs more than `least`, or shares nothing with the given name, the cost is over 100, without differences.
    """
    undone = [given.damage] if given.damage else []
    if (literal := _compare_literally(given, place)) is not None:
        return Comparison.of([*undone, *literal])
    best = Comparison(least + weights.MAX_COST, ())
    readings = _readings_for(given, place) if given.bracketed else given.readings
    for name in place.names:
        for words, first in readings:
            most = min(best.cost, weights.MAX_COST) - (first.penalty if first else 0.0)
            found: list[Difference] | None = [] if words == name.words else None
            if len(words) == 1 < len(name.words):
                found = _as_one_word(given, name.words, name.written or place.nombre)
            if found is None:
                found = Alignment(given, words, name.words, place).differences(most)
            if found is not None:
                spelt = _compare_spelling(given, place, name, same_words=not found)
                compared = Comparison.of([*undone, *([first] if first else ()), *found, *spelt])
                if compared.cost < best.cost:
                    best = compared
    return best


def _compare_literally(given: GivenName, place: IndexedLocality) -> list[Difference] | None:
    """Return the differences of a name that is the place's, today or in an earlier release; None for any other."""
    if given.folded == fold(place.nombre):
        return []
    former = next((name.nombre for name in place.former if given.folded == fold(name.nombre)), None)
    return None if former is None else [differ(Reason.FORMER_NAME_LITERALLY, former, place.nombre)]


def _readings_for(given: GivenName, place: IndexedLocality) -> Sequence[Reading]:
    """Return the readings of a name; a number or contrast in its brackets counts unless the place has it, too."""
    lacking = _qualifiers(given.bracketed)
    if not lacking or lacking.issubset(word for name in place.names for word in name.words):
        return given.readings
    return [
        reading._replace(first=reading.first._replace(reason=Reason.QUALIFIER_BRACKETED))
        if reading.first and reading.first.reason is Reason.BRACKET_ADDED
        else reading
        for reading in given.readings
    ]


def align_letters(given: GivenName, place: IndexedLocality) -> Comparison | None:
    """Return the difference to the place's name whose letters are most alike, whatever their spaces.

    None if none is much alike, or if they have other numbers or contrasting words.
    """
    before = [fault for fault in (given.damage, given.readings[0].first) if fault]
    best: Comparison | None = None
    for full in dict.fromkeys((place.nombre, *(name.written for name in place.names if name.written))):
        apart = take_apart(full)
        for part in (apart.main, *apart.inner):
            folded = fold(part)
            likeness = _likeness(given.letters, folded.replace(" ", "")) if folded else 0.0
            if likeness < weights.MIN_WHOLE_LIKENESS or _contradicts(given, part, is_spaced=likeness == 1):
                continue
            reason = Reason.SPACING if likeness == 1 else Reason.LETTERS
            found = [*before, differ(reason, given.folded, folded, (1 - likeness) * weights.SPELLING_PENALTY)]
            if apart.inner:
                found.append(_of_bracket(given, full, apart.inner, is_alone=part is not apart.main))
            if full != place.nombre:
                name = next(known for known in place.names if known.written == full)
                found.append(differ(_OF_OTHER_NAMES[name.kind], full, place.nombre))
            compared = Comparison.of(found)
            if best is None or compared.cost < best.cost:
                best = compared
    return best


def _contradicts(given: GivenName, part: str, *, is_spaced: bool) -> bool:
    """Return whether a name has other numbers, contrasting words or a diminutive; `is_spaced` if only spaces differ."""
    if is_spaced:
        return given.digits != _DIGITS.findall(fold(part))
    ours, theirs = given.readings[0].words, canonical(part)
    if _numbers_and_contrasts(ours) != _numbers_and_contrasts(theirs):
        return True
    return bool(ours and theirs) and _differ_in_size(ours[-1], theirs[-1])


def _numbers_and_contrasts(words: Sequence[str]) -> set[str]:
    return {*_DIGITS.findall(" ".join(words)), *CONTRASTING.intersection(words)}


def _as_one_word(given: GivenName, words: tuple[str, ...], written: str) -> list[Difference] | None:
    """Return the difference of a name without its spaces, such as `Cuatrociénegas`; a number stays in letters."""
    folded = fold(written)
    if given.folded == folded.replace(" ", "") and _has_same_digits([given.folded], [folded]):
        return [differ(Reason.SPACING, given.folded, " ".join(words))]
    return None


def _compare_spelling(
    given: GivenName, place: IndexedLocality, name: PlaceName, *, same_words: bool
) -> Iterable[Difference]:
    """Yield which of the place's names was compared, and how it is written."""
    full = name.written or place.nombre
    folded = fold(full)
    if name.kind in _OF_OTHER_NAMES:
        yield differ(_OF_OTHER_NAMES[name.kind], full, place.nombre)
    if given.folded == folded:
        return
    apart = take_apart(full)
    if apart.inner and name.words == canonical_name(apart.main):
        yield _of_bracket(given, full, apart.inner, is_alone=False)
        folded = fold(apart.main)
    elif apart.inner and len(name.words) < len(canonical(full)):
        yield _of_bracket(given, full, apart.inner, is_alone=True)
        folded = " ".join(map(fold, apart.inner))
    if folded in {given.folded, given.spoken}:
        return
    articles = _articles(folded)
    if articles != given.articles:
        yield differ(Reason.ARTICLE, " ".join(given.articles), " ".join(articles))
    elif same_words:
        yield differ(Reason.WORDING, given.text, full)


def _of_bracket(given: GivenName, full: str, inner: Sequence[str], *, is_alone: bool) -> Difference:
    """Return the difference of a name of which the brackets were left out, or alone given."""
    if is_alone:
        return differ(Reason.BRACKET_ALONE, given.text, full)
    if any(part in ESTABLISHMENTS for text in inner for part in canonical(text)[:1]):
        return differ(Reason.ESTABLISHMENT_LEFT_OUT, given.text, full)
    return differ(Reason.SECOND_NAME_LEFT_OUT if "(" in full else Reason.BRACKET_LEFT_OUT, given.text, full)


def _has_same_digits(given: Iterable[str], found: Iterable[str]) -> bool:
    """Return whether two texts have the same numbers in digits; a space between two digits makes two of one."""
    return _DIGITS.findall(" ".join(given)) == _DIGITS.findall(" ".join(found))


class Alignment:
    """Pairs the canonical words of a reading with those of a name; `added` and `missing` are those left over."""

    def __init__(self, name: GivenName, given: tuple[str, ...], found: tuple[str, ...], place: IndexedLocality) -> None:
        self._name, self._given, self._found, self._place = name, given, found, place
        self._pairs: list[Difference] = []
        self._added: list[str] = []
        self._missing = list(found)
        for word in given:
            if word in self._missing:
                self._missing.remove(word)
            else:
                self._added.append(word)

    def differences(self, most: float) -> list[Difference] | None:
        """Return the differences; None if they cost `most` or more, or if the names share nothing."""
        given, found = self._given, self._found
        self._pair_initials()
        if not self._added and not self._missing and not self._pairs:
            return [differ(Reason.ORDER, " ".join(given), " ".join(found))]
        if len(given) != len(found) and "".join(given) == "".join(found) and _has_same_digits(given, found):
            return [differ(Reason.SPACING, " ".join(given), " ".join(found))]
        if self._added and self._missing:
            self._pair_alike()
            self._pair_joined()
            self._pair_abbreviated()
        if self._shares_nothing():
            return None
        cost = sum([fault.penalty for fault in self._pairs])
        for fault in self._unpaired():
            self._pairs.append(fault)
            cost += fault.penalty
            if cost >= most:
                return None
        return self._pairs if cost < most else None

    def _pair(self, reason: Reason, word: str, counterpart: str, more: float = 0.0) -> None:
        self._added.remove(word)
        self._missing.remove(counterpart)
        self._pairs.append(differ(reason, word, counterpart, more))

    def _shares_nothing(self) -> bool:
        """Return whether the name has no word of the given one, except for those that many names have."""
        weighty = [word for word in self._given if word not in GENERICS and not word.isdigit()] or self._given
        return all(self._added.count(word) >= weighty.count(word) for word in weighty)

    def _pair_initials(self) -> None:
        """Pair initials with the words that begin so, such as those of `V. Carranza`."""
        for letter in self._name.initials if self._missing else ():
            read = next((form for form in (letter, *open_word(letter)) if form in self._added), None)  # `V` may be five
            word = next((missing for missing in self._missing if missing[0] == letter), None)
            if word and (read or letter not in self._given):
                if read is None:
                    self._added.append(read := letter)
                self._added[self._added.index(read)] = letter
                self._pair(Reason.ABBREVIATION, letter, word)

    def _pair_alike(self) -> None:
        """Pair words that are alike, the most alike first."""
        given, own = (
            [word for word in words if len(word) > 1 and not word.isdigit()] for words in (self._added, self._missing)
        )
        pairs = sorted(
            (-likeness, word, counterpart)
            for word in given
            for counterpart in own
            if (likeness := _likeness(word, counterpart)) >= weights.MIN_WORD_LIKENESS
            and _has_same_digits([word], [counterpart])
        )
        for unlike, word, counterpart in pairs:
            are_contrasts = word in CONTRASTING and counterpart in CONTRASTING
            if (
                word in self._added
                and counterpart in self._missing
                and not are_contrasts
                and not _differ_in_size(word, counterpart)
            ):
                self._pair(Reason.SPELLING, word, counterpart, max(0.0, (1 + unlike) * weights.SPELLING_PENALTY - 1))

    def _pair_joined(self) -> None:
        """Pair the words left over if they have the same letters, differently spaced: `seyba playa` and Seybaplaya."""
        if not self._added or not self._missing or len(self._added) == len(self._missing) == 1:
            return
        if not CONTRASTING.isdisjoint((*self._added, *self._missing)):
            return
        likeness = _likeness("".join(self._added), "".join(self._missing))
        if likeness >= weights.MIN_SPACING_LIKENESS and _has_same_digits(self._added, self._missing):
            given, own = " ".join(self._added), " ".join(self._missing)
            self._added, self._missing = [given], [own]
            self._pair(Reason.SPACING, given, own, (1 - likeness) * weights.SPELLING_PENALTY)

    def _pair_abbreviated(self) -> None:
        for word in tuple(self._added):
            if len(word) > 1 and word.isalpha():
                is_short = word in self._name.shortened
                for other in self._missing:
                    if other.startswith(word) or (is_short and _has_letters_of(word, other)):
                        self._pair(Reason.ABBREVIATION if is_short else Reason.BEGINNING, word, other)
                        break

    def _unpaired(self) -> Iterator[Difference]:
        """Yield the differences of words without a counterpart."""
        added, missing = self._added, self._missing
        if added and missing:
            for reason, words in (
                (Reason.NUMBER_OTHER, [[word for word in words if word.isdigit()] for words in (added, missing)]),
                (
                    Reason.CONTRAST_OTHER,
                    [[word for word in words if word in CONTRASTING] for words in (added, missing)],
                ),
            ):
                if all(words):
                    yield differ(reason, words[0][0], words[1][0])
        areas = [*self._areas_behind()] if added and GENERICS.issuperset(missing) else []
        yield from self._left_over([word for word in added if word not in areas] if areas else added, is_added=True)
        for word in reversed(areas):
            yield differ(Reason.AREA_ADDED, word)
        yield from self._left_over(missing, is_added=False)

    def _areas_behind(self) -> Iterator[str]:
        """Yield the words of the place's areas that follow its name."""
        for word in reversed(self._given[1:]):
            if word not in self._added or not (word in self._place.municipio_words or word in self._place.state_words):
                return
            yield word

    def _left_over(self, words: Sequence[str], *, is_added: bool) -> Iterator[Difference]:
        if not words:
            return
        has_number = any(map(str.isdigit, (*self._given, *self._found)))
        letters = max(sum(map(len, self._found)), sum(map(len, self._given)), 1)
        base = weights.FIRST_WORD_PENALTY
        for word in words:
            reasons, more = self._reasons(word, has_number=has_number), 0.0
            if reasons == (Reason.ADDED, Reason.MISSING):
                more = base + weights.WORD_SHARE_PENALTY * len(word) / letters - weights.FIRST_WORD_PENALTY
            if is_added and reasons[0] in _KINDS_ADDED and word in self._name.bracketed:
                first = self._name.readings[0].first
                reasons = (first.reason if first else Reason.BRACKET_ADDED), reasons[1]
            if word not in GENERICS:
                base = weights.NEXT_WORD_PENALTY
            yield differ(reasons[0], word, "", more) if is_added else differ(reasons[1], "", word, more)

    def _reasons(self, word: str, *, has_number: bool) -> tuple[Reason, Reason]:
        """Return the reasons of a word that only the row has, and that only the place has."""
        if word.isdigit():
            return Reason.NUMBER_ADDED, Reason.FIRST_NUMBER_MISSING if word == "1" else Reason.NUMBER_MISSING
        if word in CONTRASTING:
            return Reason.CONTRAST_ADDED, Reason.CONTRAST_MISSING
        if word == "seccion" and has_number:
            return Reason.SECTION, Reason.SECTION
        if len(word) == 1 and not (word == "h" and self._place.flags & (SEAT | URBAN)):  # heroica
            return Reason.INITIAL_ADDED, Reason.INITIAL_MISSING
        if word in GENERICS:
            return _KINDS.get(word, _OTHER_KIND)
        return Reason.ADDED, Reason.MISSING


def _has_letters_of(one: str, other: str) -> bool:
    """Return whether a word has the first letter of another one, and its others from it in their order."""
    rest = iter(other)
    return one[0] == other[0] and all(letter in rest for letter in one)


def _differ_in_size(one: str, other: str) -> bool:
    """Return whether one word is the diminutive of the other, which is another place: El Zapote, El Zapotito."""
    if one == other or len(one) == len(other):
        return False
    longer, shorter = sorted((one, other), key=len, reverse=True)
    found = _DIMINUTIVE.fullmatch(longer)
    return found is not None and _stem(found[1]) == _stem(shorter)


def _stem(word: str) -> str:
    return word.rstrip("s").rstrip("aeo")


def _likeness(one: str, other: str) -> float:
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
    for letters, replacement in _SOUNDS:
        word = word.replace(letters, replacement)
    return word
