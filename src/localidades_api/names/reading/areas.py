"""Finds estados and municipios by the names that people use."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.names import weights
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reading.text import canonical, canonical_words, core, forms_of_state, repair, state_names
from localidades_api.names.reading.vocabulary import ARTICLES, COUNTRY, ESTADOS, STATE_CODES, TITLES

_Names: TypeAlias = dict[tuple[int, bool], str]  # by key, and whether the name is a former one

# Formal words before and behind the folded name of an estado: `Estado Libre y Soberano de Jalisco`, `Jal. Mex.`
_FORMAL_STATE = re.compile(
    r"(?:(?:estado|edo|est|entidad(?: federativa)?)(?: libre y soberano)?(?: de)? )?"
    rf"(.+?)(?: (?:{'|'.join(sorted(COUNTRY))}))?"
)
_SEPARATOR = re.compile(r"[/;|]|\s[-\N{EN DASH}\N{EM DASH}]\s")  # beside the comma
# No name has five digits.
_POSTAL_CODE = re.compile(r"(?<![^\s,.(])(?:c\.? ?p\.?:? ?)?[0-9]{5}(?![^\s,.)])", re.IGNORECASE)
_AROUND_LINE = " \t\n,.;"
_CACHED_TEXTS = 4096
_MOST_AREAS = 6


class Area(NamedTuple):
    """An estado or municipio with a name like a text, and how alike they are, from 0 to 100."""

    id: int
    likeness: float
    former: bool = False  # the name is that of an earlier release


def untitled(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a municipio's name without the titles before it; all of them if nothing would be left."""
    first = next((at for at, word in enumerate(words) if word not in TITLES), 0)
    return words[first:]


def state_of_code(folded: str) -> int | None:
    """Return the key of the estado with a code such as `MX-JAL`, `JAL` or `JC`."""
    return STATE_CODES.get(folded.removeprefix("mx "))


_STATE_NAMES = frozenset(name for estado in ESTADOS.values() for name in estado.names) | STATE_CODES.keys()


def is_state_name(text: str) -> bool:
    """Return whether a text is a name, abbreviation or code of an estado, in whatever release."""
    folded = fold(text[:MAX_TEXT])
    formal = _FORMAL_STATE.fullmatch(folded)
    names = {folded, " ".join(canonical_words(folded)), formal[1] if formal else folded}
    return not _STATE_NAMES.isdisjoint(names)


class AreaBook:
    """The estados and municipios of a release, and the former names of municipios.

    `count` returns how many places have a word in one of their names.
    """

    def __init__(
        self,
        estados: Mapping[int, str],
        municipios: Mapping[int, str],
        former: Mapping[int, str],
        count: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._count = count
        self.estados = estados
        self.municipios = municipios
        self.words = {id_: canonical(name) for id_, name in municipios.items()}
        self.state_words = {
            id_: frozenset(word for form in forms_of_state(id_, name) for word in form) for id_, name in estados.items()
        }
        self._states = {name: id_ for id_, estado in estados.items() for name in state_names(id_, estado)}
        self._joined_states = {name.replace(" ", ""): id_ for name, id_ in reversed(self._states.items())}
        # The `l` of `nuevo l` is also an article, and an abbreviation has too few letters to allow a wrong one.
        spoken = {name: id_ for name, id_ in reversed(self._states.items()) if min(map(len, name.split())) > 1}
        self._states_by_words = {" ".join(canonical_words(name)): id_ for name, id_ in spoken.items()}
        self._spelt_states = {
            joined: id_
            for name, id_ in spoken.items()
            if len(joined := name.replace(" ", "")) >= weights.MIN_LETTERS_OF_ESTADO
        }
        self._by_words: dict[str, list[int]] = defaultdict(list)
        self._exact: dict[tuple[int, str], list[int]] = defaultdict(list)  # today's names, by estado
        self._untitled: dict[int, dict[str, list[int]]] = defaultdict(dict)  # the same names without their titles
        self._of_state: dict[int, _Names] = defaultdict(dict)
        self._joined: dict[int, _Names] = defaultdict(dict)  # names without their spaces
        for is_former, names in ((False, municipios), (True, former)):
            for id_, name in names.items():
                self._add(id_, name, is_former=is_former)
        for name, id_ in [*self._states.items(), *((f"estado {name}", id_) for name, id_ in self._states.items())]:
            words = " ".join(canonical_words(name))
            if id_ not in self._by_words[words]:
                self._by_words[words].append(id_)
        # Caches of this book, of bounded size.
        self.find_state = lru_cache(_CACHED_TEXTS)(self._find_state)
        self.is_misspelt_state = lru_cache(_CACHED_TEXTS)(self._is_misspelt_state)
        self.find_municipios = lru_cache(_CACHED_TEXTS)(self._find_municipios)
        self.scopes = lru_cache(_CACHED_TEXTS)(self._scopes)
        self.longer = lru_cache(_CACHED_TEXTS)(self._longer)

    def _add(self, id_: int, name: str, *, is_former: bool) -> None:
        words = canonical(name)
        if not is_former:
            for form in {words, core(words)}:
                self._by_words[" ".join(form)].append(id_)
            self._exact[id_ // KEYS_OF_A_STATE, " ".join(words)].append(id_)
            self._untitled[id_ // KEYS_OF_A_STATE].setdefault(" ".join(untitled(words)), []).append(id_)
        self._of_state[id_ // KEYS_OF_A_STATE][id_, is_former] = " ".join(words)
        self._joined[id_ // KEYS_OF_A_STATE][id_, is_former] = fold(name).replace(" ", "")

    def _find_state(self, text: str) -> int | None:
        """Return the key of the estado with a name, code or key; letters may be wrong, no word missing or added.

        None if there is none, or if a municipio has exactly this name.
        """
        folded = fold(repair(text))
        if (estado_id := self.named_state(folded)) is not None:
            return estado_id
        # `Pueblo` and `Colina` are words with another meaning.
        if " " not in folded and self._count(folded) >= weights.MIN_PLACES_OF_OTHER_WORD:
            return None
        joined = folded.replace(" ", "")
        most = weights.MAX_WRONG_LETTERS_OF_ESTADO
        like = process.extract(joined, list(self._spelt_states), scorer=OSA.distance, score_cutoff=most, limit=3)
        for name, wrong, _ in like:
            if wrong * weights.LETTERS_OF_ESTADO_PER_WRONG_ONE <= min(len(name), len(joined)):
                return None if self._is_municipio(folded) else self._spelt_states[name]
        return None

    def _is_misspelt_state(self, text: str) -> bool:
        return self.named_state(fold(repair(text))) is None and self.find_state(text) is not None

    def _is_municipio(self, folded: str, estado_id: int | None = None) -> bool:
        """Return whether a municipio, of an estado if one is given, has exactly a folded name."""
        words = " ".join(canonical_words(folded))
        return any((id_, words) in self._exact for id_ in ([estado_id] if estado_id else self.estados))

    def named_state(self, folded: str) -> int | None:
        """Return the key of the estado with a folded name, code or key; None if there is none."""
        if folded.isdigit() and len(folded) <= 2:  # noqa: PLR2004  # the digits of an estado's key
            return int(folded) if int(folded) in self.estados else None
        estado_id = self._named_state(folded)
        if estado_id is None and (formal := _FORMAL_STATE.fullmatch(folded)) and formal[1] != folded:
            estado_id = self._named_state(formal[1])
        return estado_id

    def _named_state(self, folded: str) -> int | None:
        if folded in self._states:
            return self._states[folded]
        if (estado_id := state_of_code(folded)) in self.estados:
            return estado_id
        if (estado_id := self._joined_states.get(folded.replace(" ", ""))) is not None:
            return estado_id
        if folded.partition(" ")[0] in ARTICLES:  # `El Hidalgo` is a place
            return None
        return self._states_by_words.get(" ".join(canonical_words(folded)))  # `Querétaro Arteaga`

    def _find_municipios(self, text: str, estado_id: int | None) -> tuple[Area, ...]:
        """Return the municipios with names like a text, the most similar first, within an estado if one is given."""
        folded = fold(repair(text))
        if not folded:
            return ()
        if folded.isdigit():
            return self._municipio_by_clave(int(folded), estado_id)
        given = canonical_words(folded)
        words = " ".join(given)
        estados = self._of_state if estado_id is None else [estado_id]
        if exact := [
            Area(id_, weights.SAME_NAME) for estado in estados for id_ in self._exact.get((estado, words), ())
        ]:
            return tuple(exact[:_MOST_AREAS])
        bare = untitled(given)
        if same := [
            Area(id_, weights.SAME_UNTITLED_NAME)
            for estado in estados
            for id_ in self._untitled[estado].get(" ".join(bare), ())
        ]:
            find = self.longer if estado_id is None else self._around
            longer = [id_ for estado in estados for id_ in find(bare, estado)]
            return tuple([*same, *(Area(id_, weights.MAX_SHARED_WORDS_LIKENESS) for id_ in longer)][:_MOST_AREAS])
        cut = [id_ for estado in estados for id_ in self._begun(words, estado)]
        close = self._similar(folded, words, estados)
        known = {area.id for area in close}
        return (*close, *(Area(id_, weights.MAX_SHARED_WORDS_LIKENESS) for id_ in cut if id_ not in known))[
            :_MOST_AREAS
        ]

    def _similar(self, folded: str, words: str, estados: Collection[int]) -> list[Area]:
        areas: dict[int, Area] = {}
        for estado in estados:
            _add_alike(areas, words, self._of_state.get(estado, {}), _likeness, weights.MIN_NAME_LIKENESS)
        if _best(areas) < weights.MIN_JOINED_LIKENESS:
            joined = folded.replace(" ", "")
            for estado in estados:
                _add_alike(areas, joined, self._joined.get(estado, {}), _joined_likeness, weights.MIN_JOINED_LIKENESS)
        close = [area for area in areas.values() if area.likeness >= _best(areas) - weights.MAX_BEHIND]
        return sorted(close, key=lambda area: (-area.likeness, area.id))[:_MOST_AREAS]

    def _municipio_by_clave(self, clave: int, estado_id: int | None) -> tuple[Area, ...]:
        for id_ in (clave, (estado_id or 0) * KEYS_OF_A_STATE + clave):
            if id_ in self.municipios and estado_id in {None, id_ // KEYS_OF_A_STATE}:
                return (Area(id_, weights.SAME_NAME),)
        return ()

    def find_by_key(self, key: str | None, estado_id: int | None) -> int | None:
        """Return the key of the municipio with a key of five digits, or of three within its estado; None for no key."""
        found = self.find_municipios(key, estado_id) if key and key.isdecimal() else ()
        return found[0].id if found else None

    def split_line(self, text: str, estado_id: int | None = None) -> list[str]:
        """Return the parts of a line: a name and the areas behind it, without the country and a postal code.

        Commas part them, and whatever else stands before an area: `Zapopan - Jalisco`, `Zapopan (Jal.)`; before a
        municipio, that of the estado if it is known.
        """
        text = ", ".join(
            part for piece in _POSTAL_CODE.sub(" ", text).split(",") if (part := piece.strip(_AROUND_LINE))
        )
        line, _, last = text.rpartition(",")
        text = line if fold(last) in COUNTRY and self.find_state(last) is None else text
        name, _, inner = text.rstrip().rpartition("(")
        if name and "(" not in name and inner.endswith(")"):
            is_area = self._is_municipio(fold(inner[:-1]), estado_id) if estado_id else False
            if is_area or self.find_state(inner[:-1].rpartition(",")[2]) is not None:
                text = f"{name.rstrip()}, {inner[:-1]}"
        for found in reversed(list(_SEPARATOR.finditer(text))):
            behind = text[found.end() :].partition(",")[0].strip()
            if self.find_state(behind) is None and not self._is_municipio(fold(behind), estado_id):
                break
            text = f"{text[: found.start()]},{text[found.end() :]}"
        return [part for piece in self.without_country(text).split(",") if (part := piece.strip(_AROUND_LINE))]

    def without_country(self, text: str) -> str:
        """Return a text without the country, even unfinished, behind an estado: `Tijuana, Baja California, México`."""
        line, _, last = text.rpartition(",")
        name, _, estado = line.rpartition(",")
        folded = fold(last)
        is_country = bool(folded) and any(country.startswith(folded) for country in COUNTRY)
        return line if name.strip() and is_country and self.find_state(estado) is not None else text

    def split_state(self, text: str) -> tuple[str, str | None]:
        """Return the name of a municipio and that of its estado behind a comma, in brackets or behind a space."""
        *before, last = self.split_line(text) or [text]
        if before and self.find_state(last) is not None:
            return ", ".join(before), last
        words = text.split()
        for at in range(1, len(words)):
            name, last = " ".join(words[:at]), " ".join(words[at:])
            estado_id = self.named_state(fold(last))
            if estado_id and not last.isdigit() and self._exact.get((estado_id, " ".join(canonical(name)))):
                return name, last
        return text, None

    def label(self, id_: int) -> str:
        """Return the label of an estado or municipio; a clave in brackets distinguishes homonyms within an estado."""
        if id_ in self.estados:
            return self.estados[id_]
        nombre, estado_id = self.municipios[id_], id_ // KEYS_OF_A_STATE
        if len(self._exact[estado_id, " ".join(self.words[id_])]) > 1:
            nombre = f"{nombre} ({id_ % KEYS_OF_A_STATE:03d})"
        return f"{nombre}, {self.estados[estado_id]}"

    def _longer(self, words: tuple[str, ...], estado_id: int) -> list[int]:
        """Return the municipios of an estado whose names have more words behind these, titles aside."""
        beginning = " ".join(words) + " "
        return [id_ for name, ids in self._untitled[estado_id].items() if name.startswith(beginning) for id_ in ids]

    def _around(self, words: tuple[str, ...], estado_id: int) -> list[int]:
        """Return the municipios of an estado whose names have more words before or behind these, titles aside."""
        inner = f" {' '.join(words)} "
        return [id_ for name, ids in self._untitled[estado_id].items() if inner in f" {name} " != inner for id_ in ids]

    def _begun(self, words: str, estado_id: int) -> list[int]:
        if len(words) < weights.MIN_LETTERS_OF_CUT_NAME:
            return []
        return [id_ for name, ids in self._untitled[estado_id].items() if name.startswith(words) for id_ in ids]

    def _scopes(self, words: tuple[str, ...]) -> tuple[int, ...]:
        """Return the areas with exactly these words: estados, municipios, or municipios beside their estado."""
        areas = list(self._by_words.get(" ".join(words), ()))
        for split in range(1, len(words)):
            for municipio, estado in ((words[:split], words[split:]), (words[split:], words[:split])):
                states = [id_ for id_ in self._by_words.get(" ".join(estado), ()) if id_ < KEYS_OF_A_STATE]
                if states:
                    areas += [
                        id_ for id_ in self._by_words.get(" ".join(municipio), ()) if id_ // KEYS_OF_A_STATE in states
                    ]
        return tuple(dict.fromkeys(areas))


def _likeness(typed: str, name: str, **_: object) -> float:
    """Return how alike two names of municipios are: honours and persons are often left out, letters often wrong."""
    if typed == name:
        return weights.SAME_NAME
    beginning = " ".join(untitled(tuple(name.split(" ")))[: typed.count(" ") + 1])
    shared = max(fuzz.token_set_ratio(typed, name), fuzz.ratio(typed, beginning)) - weights.SHARED_WORDS_LOSS
    return max(min(fuzz.ratio(typed, name), weights.NEARLY_SAME_NAME), min(shared, weights.MAX_SHARED_WORDS_LIKENESS))


def _joined_likeness(typed: str, name: str, **_: object) -> float:
    """Return how alike two names without spaces are, which are never quite the same."""
    return min(fuzz.ratio(typed, name), weights.NEARLY_SAME_NAME)


def _add_alike(areas: dict[int, Area], typed: str, names: _Names, scorer: Callable[..., float], least: float) -> None:
    for _, score, (id_, is_former) in process.extract(typed, names, scorer=scorer, score_cutoff=least, limit=6):
        likeness = score - is_former  # a present name comes before another municipio's former one
        if id_ not in areas or areas[id_].likeness < likeness:
            areas[id_] = Area(id_, likeness, is_former)


def _best(found: Mapping[int, Area]) -> float:
    return max((area.likeness for area in found.values()), default=0.0)
