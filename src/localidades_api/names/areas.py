"""Finds estados and municipios by the names that people use, and matches a name to the key of one."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.names import weights
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.rows import Candidate, MatchResult
from localidades_api.names.text import canonical, canonical_words, core, repair
from localidades_api.names.vocabulary import ESTADOS, STATE_CODES
from localidades_api.names.weights import PENALTIES

_Names: TypeAlias = dict[tuple[int, bool], str]  # by key, and whether an earlier release had it

_CACHED_TEXTS = 4096
_MOST_AREAS = 6


class Area(NamedTuple):
    """An estado or a municipio that a text may name, and how much its name is like the text, from 0 to 100."""

    id: int
    likeness: float
    former: bool = False  # the name is that which an earlier release had for it


def state_names(estado_id: int, estado: str) -> list[str]:
    """Return the folded names of an estado: the official one, and those that people use."""
    return list(dict.fromkeys([fold(estado), *(ESTADOS[estado_id].names if estado_id in ESTADOS else ())]))


def forms_of_state(estado_id: int, estado: str) -> list[tuple[str, ...]]:
    """Return the names of an estado as canonical words."""
    return [canonical_words(name) for name in state_names(estado_id, estado)]


def state_of_code(folded: str) -> int | None:
    """Return the key of the estado that has a code, such as `MX-JAL`, `JAL` or `JC`."""
    return STATE_CODES.get(folded.removeprefix("mx "))


class AreaBook:
    """The estados and municipios of a release, and the municipios that earlier releases had."""

    def __init__(self, estados: Mapping[int, str], municipios: Mapping[int, str], former: Mapping[int, str]) -> None:
        self.estados = estados
        self.municipios = municipios
        self.words = {id_: canonical(name) for id_, name in municipios.items()}
        self.state_words = {
            id_: frozenset(word for form in forms_of_state(id_, name) for word in form) for id_, name in estados.items()
        }
        self._states = {name: id_ for id_, estado in estados.items() for name in state_names(id_, estado)}
        self._by_words: dict[str, list[int]] = defaultdict(list)
        self._exact: dict[tuple[int, str], list[int]] = defaultdict(list)  # today's names, by estado
        self._of_state: dict[int, _Names] = defaultdict(dict)
        self._joined: dict[int, _Names] = defaultdict(dict)  # names without their spaces
        for is_former, names in ((False, municipios), (True, former)):
            for id_, name in names.items():
                self._add(id_, name, is_former=is_former)
        for name, id_ in [*self._states.items(), *((f"estado {name}", id_) for name, id_ in self._states.items())]:
            words = " ".join(canonical_words(name))
            if id_ not in self._by_words[words]:
                self._by_words[words].append(id_)
        self._labels = {id_: fold(estado) for id_, estado in estados.items()} | {
            id_: fold(f"{name}, {estados[id_ // KEYS_OF_A_STATE]}") for id_, name in municipios.items()
        }
        # Bounded, and of this book only.
        self.find_state = lru_cache(_CACHED_TEXTS)(self._find_state)
        self.find_municipios = lru_cache(_CACHED_TEXTS)(self._find_municipios)
        self.scopes = lru_cache(_CACHED_TEXTS)(self._scopes)

    def _add(self, id_: int, name: str, *, is_former: bool) -> None:
        words = canonical(name)
        if not is_former:
            for form in {words, core(words)}:
                self._by_words[" ".join(form)].append(id_)
            self._exact[id_ // KEYS_OF_A_STATE, " ".join(words)].append(id_)
        self._of_state[id_ // KEYS_OF_A_STATE][id_, is_former] = " ".join(words)
        self._joined[id_ // KEYS_OF_A_STATE][id_, is_former] = fold(name).replace(" ", "")

    def _find_state(self, text: str) -> int | None:
        """Return the key of the estado that a text names; None if it names none."""
        folded = fold(repair(text))
        if folded.isdigit() and len(folded) <= 2:  # noqa: PLR2004  # the digits of an estado's key
            return int(folded) if int(folded) in self.estados else None
        if folded in self._states:
            return self._states[folded]
        if (found := state_of_code(folded)) in self.estados:
            return found
        joined = folded.replace(" ", "")
        for name, id_ in self._states.items():
            if name.replace(" ", "") == joined:
                return id_
        like = process.extractOne(folded, list(self._states), scorer=fuzz.ratio, score_cutoff=weights.MIN_NAME_LIKENESS)
        return self._states[like[0]] if like and len(folded) > 3 else None  # noqa: PLR2004  # of three letters any may be wrong

    def _find_municipios(self, text: str, estado_id: int | None) -> tuple[Area, ...]:
        """Return the municipios that a text may name, the likeliest first; within an estado if one is given."""
        folded = fold(repair(text))
        if not folded:
            return ()
        if folded.isdigit():
            return self._municipio_by_clave(int(folded), estado_id)
        words = " ".join(canonical_words(folded))
        estados = self._of_state if estado_id is None else [estado_id]
        if exact := [
            Area(id_, weights.SAME_NAME) for estado in estados for id_ in self._exact.get((estado, words), ())
        ]:
            return tuple(exact[:_MOST_AREAS])
        found: dict[int, Area] = {}
        for estado in estados:
            _add_alike(found, words, self._of_state.get(estado, {}), _likeness, weights.MIN_NAME_LIKENESS)
        if _best(found) < weights.MIN_JOINED_LIKENESS:
            joined = folded.replace(" ", "")
            for estado in estados:
                _add_alike(found, joined, self._joined.get(estado, {}), _joined_likeness, weights.MIN_JOINED_LIKENESS)
        close = [area for area in found.values() if area.likeness >= _best(found) - weights.MAX_BEHIND]
        return tuple(sorted(close, key=lambda area: (-area.likeness, area.id))[:_MOST_AREAS])

    def _municipio_by_clave(self, clave: int, estado_id: int | None) -> tuple[Area, ...]:
        for id_ in (clave, (estado_id or 0) * KEYS_OF_A_STATE + clave):
            if id_ in self.municipios and estado_id in {None, id_ // KEYS_OF_A_STATE}:
                return (Area(id_, weights.SAME_NAME),)
        return ()

    def _scopes(self, words: tuple[str, ...]) -> tuple[int, ...]:
        """Return the areas that words name exactly: estados, municipios, or municipios of an estado named as well."""
        found = list(self._by_words.get(" ".join(words), ()))
        for split in range(1, len(words)):
            for municipio, estado in ((words[:split], words[split:]), (words[split:], words[:split])):
                states = [id_ for id_ in self._by_words.get(" ".join(estado), ()) if id_ < KEYS_OF_A_STATE]
                if states:
                    found += [
                        id_ for id_ in self._by_words.get(" ".join(municipio), ()) if id_ // KEYS_OF_A_STATE in states
                    ]
        return tuple(dict.fromkeys(found))

    def suggest(self, text: str) -> list[Area]:
        """Return the estados and municipios that a text may name, begin, or nearly name, the likeliest first.

        The estado of a municipio may stand before or after it.
        """
        words = canonical_words(fold(repair(text)))
        found = [Area(id_, weights.SAME_NAME) for id_ in self._scopes(words)] if words else []
        for part, estados in self._readings(words):
            joined = " ".join(part)
            for name, ids in self._by_words.items():
                if likeness := _beginning(joined, name):
                    found += [Area(id_, likeness) for id_ in ids if not estados or id_ // KEYS_OF_A_STATE in estados]
        if folded := fold(text):
            labelled = [id_ for id_, label in self._labels.items() if label.startswith(folded)]
            found += [Area(id_, weights.BEGINNING_LIKENESS) for id_ in labelled]
        best: dict[int, Area] = {}
        for area in sorted(found, key=lambda area: (-area.likeness, area.id)):
            best.setdefault(area.id, area)
        return list(best.values())

    def _readings(self, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], list[int]]]:
        """Return what may be the name of an area, and the estados that the rest of the words names."""
        readings: list[tuple[tuple[str, ...], list[int]]] = [(words, [])] if words else []
        for split in range(1, len(words)):
            for part, rest in ((words[:split], words[split:]), (words[split:], words[:split])):
                if estados := [id_ for id_ in self._by_words.get(" ".join(rest), ()) if id_ < KEYS_OF_A_STATE]:
                    readings.append((part, estados))
        return readings


def _likeness(typed: str, name: str, **_: object) -> float:
    """Compare two municipios' names: honours and persons are often left out, letters often wrong."""
    if typed == name:
        return weights.SAME_NAME
    shared = fuzz.token_set_ratio(typed, name) - weights.SHARED_WORDS_LOSS
    return max(min(fuzz.ratio(typed, name), weights.NEARLY_SAME_NAME), min(shared, weights.MAX_SHARED_WORDS_LIKENESS))


def _joined_likeness(typed: str, name: str, **_: object) -> float:
    """Compare two names without their spaces, which is not quite the name."""
    return min(fuzz.ratio(typed, name), weights.NEARLY_SAME_NAME)


def _add_alike(found: dict[int, Area], typed: str, names: _Names, scorer: Callable[..., float], least: float) -> None:
    """Add the municipios with a name that is like what was typed."""
    for _, score, (id_, is_former) in process.extract(typed, names, scorer=scorer, score_cutoff=least, limit=6):
        likeness = score - is_former  # today's name of a municipio comes before another's old one
        if id_ not in found or found[id_].likeness < likeness:
            found[id_] = Area(id_, likeness, is_former)


def _best(found: Mapping[int, Area]) -> float:
    return max((area.likeness for area in found.values()), default=0.0)


def _beginning(typed: str, name: str) -> float:
    if name.startswith(typed):
        return weights.BEGINNING_LIKENESS
    if f" {typed}" in name:
        return weights.WORD_BEGINNING_LIKENESS
    distance = OSA.distance(typed, name, score_cutoff=2)
    return weights.MISSPELT_LIKENESS - distance if distance <= min(2, len(typed) // 4) else 0.0


# -- Matching


def match_state(book: AreaBook, text: str) -> MatchResult:
    """Return the estado that a text names, by any of its names, its abbreviation, its code or its key."""
    text = text[:MAX_TEXT]
    found = book.find_state(text)
    if found is None:
        return _decide([])
    nombre, folded = book.estados[found], fold(repair(text))
    names = {name.replace(" ", "") for name in state_names(found, nombre)}
    is_same = folded.isdigit() or folded.replace(" ", "") in names or state_of_code(folded) == found
    faults = () if is_same else (NameFault(Difference.SPELLING, text, nombre, weights.MISSPELT_ESTADO_PENALTY),)
    return _decide([_candidate(found, nombre, faults)])


def match_municipality(book: AreaBook, text: str, estado: str | None = None) -> MatchResult:
    """Return the municipio that a text names; its estado may be given, or follow a comma."""
    text = text[:MAX_TEXT]
    name, _, last = (part.strip() for part in text.rpartition(","))
    if estado is None and name and book.find_state(last) is not None:
        text, estado = name, last
    estado_id = book.find_state(estado[:MAX_TEXT]) if estado else None
    unknown = (
        (NameFault(Difference.ESTADO, estado, "", PENALTIES[Difference.ESTADO]),)
        if estado and estado_id is None
        else ()
    )
    areas = [area for area in book.find_municipios(text, estado_id) if area.id in book.municipios]
    return _decide([_municipality(book, area, text, unknown) for area in areas])


def _municipality(book: AreaBook, area: Area, text: str, unknown: tuple[NameFault, ...]) -> Candidate:
    nombre = book.municipios[area.id]
    faults = unknown
    if area.former:
        faults += (
            NameFault(
                Difference.FORMER_NAME,
                text,
                nombre,
                weights.FORMER_AREA_PENALTY + round(max(0.0, weights.SAME_NAME - 1 - area.likeness), 2),
            ),
        )
    elif area.likeness < weights.SAME_NAME:
        faults += (NameFault(Difference.SPELLING, text, nombre, round(weights.SAME_NAME - area.likeness, 2)),)
    return _candidate(area.id, f"{nombre}, {book.estados[area.id // KEYS_OF_A_STATE]}", faults)


def _candidate(id_: int, label: str, faults: tuple[NameFault, ...]) -> Candidate:
    return Candidate(id_, label, round(max(0.0, 100 - sum(fault.penalty for fault in faults)), 2), faults)


def _decide(candidates: list[Candidate]) -> MatchResult:
    """Return the result: certain where nothing differs, or only that the name is a former one, and no other is near."""
    if not candidates:
        return MatchResult("none", None, 0.0, ())
    candidates.sort(key=lambda one: (-one.score, one.id))
    best = candidates[0]
    margin = round(best.score - (candidates[1].score if len(candidates) > 1 else 0.0), 2)
    if margin < weights.CERTAIN_AREA_MARGIN or best.score < weights.SAME_NAME - weights.FORMER_AREA_PENALTY:
        return MatchResult("ambiguous", best, margin, tuple(candidates))
    return MatchResult("sure" if best.faults else "exact", best, margin, tuple(candidates))
