"""Matches a row to the key of its place and lists the differences."""

import math
import re
from bisect import insort
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, MutableSequence, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from localidades_api.catalogue.keys import (
    KEYS_OF_A_MUNICIPIO,
    KEYS_OF_A_STATE,
    KINDS,
    read_written_key,
    state_of,
)
from localidades_api.names import certainty, weights
from localidades_api.names.addresses import COLONIAS, is_colonia, read_address
from localidades_api.names.areas import Area, AreaBook
from localidades_api.names.differences import (
    GivenName,
    NameDifference,
    ambito_fault,
    area_fault,
    compare,
    compare_letters,
    distance_fault,
    estado_fault,
    fault_of,
    read_name,
)
from localidades_api.names.evidence import (
    Question,
    contradicts,
    gather,
    has_homonym,
    is_called,
    is_of_area,
    is_same_once_read,
    is_seat_named,
    may_be_short,
)
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.layout import (
    EVERYWHERE,
    JOINED,
    KEY,
    PART_OF_MUNICIPIO,
    SEAT,
    SHORT_OF_TOWN,
    URBAN,
    WITHDRAWN,
)
from localidades_api.names.places import IndexedLocality
from localidades_api.names.query import read
from localidades_api.names.reader import IndexReader
from localidades_api.names.rows import Candidate, MatchResult, MatchRow, Outcome, read_key
from localidades_api.names.text import core, fold, is_filler
from localidades_api.names.weights import PENALTIES

MAX_CANDIDATES = 5
# A clave, or the whole key, before a name: `0001 Bacalar`. No name of the catalogue begins so.
_KEY_BEFORE_NAME = re.compile(r"(?:([0-9]{4})|([0-9]{9}))[\s.:)-]+([^\W\d].*)", re.DOTALL)
_PROPOSED = 8  # names of a municipio that each measure of similarity proposes for a comparison word by word
_JUDGED = 12  # the most candidates of a row whose probabilities are compared
_HOMONYMS = 24  # places of one name that are compared
_LEAST_SHARE = 1e-4  # the least probability of "none of them", which odds are divided by
_CONTRADICTIONS_OF_KEY = frozenset(
    {Difference.ESTADO, Difference.MUNICIPIO_OTHER, Difference.MUNICIPIO_UNKNOWN, Difference.KEY}
)
_CACHED_WORDS = 50_000
_CACHED_RARITIES = 5_000


class ComparedPlace(NamedTuple):
    """A place that a row may mean, and how its name differs from that of the row."""

    place: IndexedLocality
    difference: NameDifference


class Matcher:
    """Finds the places of rows in the files of an index."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self._count = lru_cache(_CACHED_WORDS)(index.words.count)
        self._rarity = lru_cache(_CACHED_RARITIES)(self._measure_rarity)

    def match(self, row: MatchRow, sure: float = weights.SURE) -> MatchResult:
        """Return the place of a row, certain from a probability of `sure`.

        A name alone may be a whole line. A street and the like before a place are set aside, and leave it in doubt.
        """
        row = _without_fillers(row)
        result = self._match_line(row, sure)
        if result.id is not None or not row.nombre or row.cvegeo or row.clave or is_filler(row.nombre):
            return result
        name, street = read_address(row.nombre)
        if name == row.nombre or not (name or row.municipio):
            return result
        found = self._match_line(row._replace(nombre=name or row.municipio), sure)
        share = weights.IN_TOWN if street else 1.0
        if found.best is None or (result.best is not None and result.best.score > found.best.score):
            return result
        fault = fault_of(Difference.ADDRESS, street or row.nombre)
        candidates = tuple(
            one._replace(score=_score(share * one.score / 100), faults=(fault, *one.faults)) for one in found.candidates
        )
        outcome: Outcome = "ambiguous" if street or found.id is None else "sure"
        return MatchResult(outcome, candidates, found.withdrawn)

    def _match_line(self, row: MatchRow, sure: float) -> MatchResult:
        if _is_written_in_digits(row):
            row = row._replace(nombre=None, clave=row.nombre)
        if row.municipio and not row.estado and self._is_estado(row.municipio):
            row = row._replace(municipio=None, estado=row.municipio)
        if not (row.municipio or row.cvegeo or row.clave):
            *by_area, [row] = _read_line(self._index.areas, row)
            for readings in by_area:
                if is_filler(readings[0].nombre):
                    return self._match(readings[0], sure)
                # Another reading must not make certain what one with areas leaves in doubt.
                found = [one for reading in readings if (one := self._match(reading, sure)).outcome != "none"]
                if found:
                    return found[0] if len(found) == 1 else _weigh(found, sure)
        return self._match(row, sure)

    def _is_estado(self, text: str) -> bool:
        """Return whether a text in the column of municipios is the name of an estado, and of no municipio."""
        folded = fold(text)
        if folded.isdigit() or self._index.areas.named_state(folded) is None:
            return False
        return all(area.likeness < weights.SAME_NAME for area in self._index.areas.find_municipios(text, None))

    def _match(self, row: MatchRow, sure: float) -> MatchResult:
        """Match one reading of a row; a name that only says that no place is given needs a place that is called so."""
        result = self._match_reading(row, sure)
        if is_filler(row.nombre):
            return _only_literal(result, has_point=row.latitud is not None)
        if result.outcome == "exact" or not row.municipio or not is_colonia(row.nombre):
            return result
        return self._with_town(row, result)

    def _with_town(self, row: MatchRow, result: MatchResult) -> MatchResult:
        """Return the result for a colonia with the largest town of the municipio, unless a place is called so.

        In a city, a village with the name of a colonia is hardly more likely.
        """
        faults = result.best.faults if result.best else ()
        is_village = any(one.difference is Difference.KIND_ADDED and one.given in COLONIAS for one in faults)
        areas = self._areas(row, self._index.areas.find_state(row.estado) if row.estado else None)
        rows = self._index.layout.block(areas[0].id)[1] if len(areas) == 1 else ()
        town = self._index.place(min(rows)) if rows else None
        if town is None or not town.flags & URBAN or town.id in {one.id for one in result.candidates}:
            return result
        is_village = is_village and (town.poblacion or 0) >= weights.CITY
        if result.id is not None and not is_village:
            return result
        kept = 1 - weights.BESIDE_VILLAGE if is_village else 1.0
        others = [one._replace(score=_score(one.score / 100 * kept)) for one in result.candidates]
        left = 1 - sum(one.score for one in others) / 100
        fault = fault_of(Difference.ADDRESS, row.nombre or "")
        candidate = self._candidate(town, (fault,), left * weights.IN_TOWN)
        ranked = sorted([candidate, *others], key=lambda one: -one.score)
        return result._replace(outcome="ambiguous", candidates=tuple(ranked[:MAX_CANDIDATES]))

    def _match_reading(self, row: MatchRow, sure: float) -> MatchResult:
        """Match one reading of a row."""
        if not (row.cvegeo or row.clave) and (found := _KEY_BEFORE_NAME.fullmatch((row.nombre or "").strip())):
            row = row._replace(clave=found[1], cvegeo=found[2], nombre=found[3])
        key = read_key(row.cvegeo)
        estado_id = self._index.areas.find_state(row.estado) if row.estado else None
        areas = self._areas(row, estado_id)
        if key is not None:
            return self._match_by_key(row, key, estado_id, areas, sure)
        clave = read_key(row.clave)
        if not clave:
            return self._match_by_name(row, estado_id, areas, sure)
        if clave >= KEYS_OF_A_MUNICIPIO:
            if not estado_id:
                return self._match_by_name(row, estado_id, areas, sure)
            key = estado_id * KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE + clave
            return self._match_by_key(row, key, estado_id, areas, sure)
        keys = [(area.id * KEYS_OF_A_MUNICIPIO + clave, area) for area in areas]
        if len(keys) > 1:  # municipios of one name: that of the place with both the name and the clave
            keys = [(key, area) for key, area in keys if row.nombre and self._is_called(key, read_name(row.nombre))]
        if len(keys) == 1:
            key, area = keys[0]
            return self._match_by_key(row, key, estado_id, areas, sure, of_municipio=area)
        return self._match_by_name(row, estado_id, areas, sure, clave if areas and not keys else None)

    def _is_called(self, key: int, given: GivenName) -> bool:
        """Return whether the place that has a key today has a name, or one much like it."""
        places = map(self._index.place, self._index.layout.find(KEY, str(key), 4))
        return any(place.id == key and compare(given, place).cost < weights.MAX_COST_OF_WORDS for place in places)

    def _match_by_name(
        self,
        row: MatchRow,
        estado_id: int | None,
        areas: Sequence[Area],
        sure: float,
        other_clave: int | None = None,
    ) -> MatchResult:
        """Match a row by its name; `other_clave` is that of a place with another name."""
        if not row.nombre:
            return MatchResult("none")
        is_bare = row.latitud is None and row.ambito is None and not estado_fault(self._index.areas, row.estado)
        other = self._key_of_other_municipio(row, estado_id, {area.id for area in areas})
        if other_clave is not None:
            other = fault_of(Difference.KEY, f"{other_clave:04d}")
        is_literal = is_bare and len(areas) == 1 and areas[0].likeness == weights.SAME_NAME and other is None
        if is_literal and (found := self._match_literally(fold(row.nombre), areas[0].id, sure)):
            return found
        given = read_name(self._without_areas(row, estado_id))
        if (
            is_literal
            and given.spoken
            and not given.damage
            and (found := self._match_literally(given.spoken, areas[0].id, sure))
        ):
            return found
        question = self._question(row, given, areas)
        compared = self._compare_by_name(row, given, estado_id, areas)
        named = [ComparedPlace(place, _with_faults(difference, [other])) for place, difference in compared]
        return self._decide(question, named, self._find_withdrawn(row.nombre, areas), sure)

    def candidates(self, row: MatchRow) -> tuple[list[int], list[dict[str, float]]]:
        """Return the keys of the candidates for a row with a name and the evidence for each, to fit certainty."""
        estado_id = self._index.areas.find_state(row.estado) if row.estado else None
        areas = self._areas(row, estado_id)
        given = read_name(self._without_areas(row, estado_id))
        found = self._compare_by_name(row, given, estado_id, areas)
        return [place.id for place, _ in found], self._evidence(self._question(row, given, areas), found)

    def _without_areas(self, row: MatchRow, estado_id: int | None) -> str:
        """Return the name of a row without its municipio and estado, where they follow it again."""
        text = row.nombre or ""
        areas = {fold(area) for area in (row.municipio, row.estado) if area}
        while areas:
            name, last = split_last(text)
            if not name or (
                fold(last) not in areas and (estado_id is None or self._index.areas.find_state(last) != estado_id)
            ):
                break
            text = name
        return text

    def _areas(self, row: MatchRow, estado_id: int | None) -> Sequence[Area]:
        """Return the municipios that a row may name; its `cve_mun` counts unless it contradicts the name."""
        areas = self._index.areas.find_municipios(row.municipio, estado_id) if row.municipio else ()
        if row.cve_mun is None or (len(areas) == 1 and areas[0].likeness == weights.SAME_NAME):
            return areas
        key = self._index.areas.find_by_key(row.cve_mun, estado_id)
        if key is None:
            return areas
        return [area for area in areas if area.id == key] or areas or [Area(key, weights.SAME_NAME)]

    def _key_of_other_municipio(
        self, row: MatchRow, estado_id: int | None, municipios: Container[int]
    ) -> NameFault | None:
        """Return the fault of a `cve_mun` that is the key of a municipio, but of none of these."""
        if row.cve_mun is None:
            return None
        find = self._index.areas.find_by_key
        key = find(row.cve_mun, estado_id) or find(row.cve_mun, None)
        if key is None or key in municipios:
            return None
        return fault_of(Difference.KEY, row.cve_mun)

    def _question(self, row: MatchRow, given: GivenName, areas: Sequence[Area]) -> Question:
        words = given.readings[0][0]
        every = frozenset(word for reading, _ in given.readings for word in reading)
        area_words = [self._index.areas.words.get(area.id, ()) for area in areas]
        return Question(row, given.folded, words, every, area_words, self._rarity, self._is_word)

    def _measure_rarity(self, word: str) -> float:
        return math.log10(weights.PLACES / (self._count(word) + 1))

    def _is_word(self, word: str) -> bool:
        return self._count(word) >= weights.MIN_PLACES_OF_WORD

    def _match_literally(self, folded: str, municipio_id: int, sure: float) -> MatchResult | None:
        """Return the result if every place found by this name is called so in the catalogue; None otherwise."""
        layout = self._index.layout
        rows = layout.find(municipio_id, folded, _HOMONYMS)
        found = []
        for row in rows:
            id_, nombre, flags = layout.name(row)
            if fold(nombre) != folded or id_ // KEYS_OF_A_MUNICIPIO != municipio_id:
                return None
            if flags & (SHORT_OF_TOWN | PART_OF_MUNICIPIO) or (flags & SEAT and len(rows) > 1):
                return None  # people may mean a town, or the seat, by a part of its name, and the seat by its name
            found.append((id_, self._index.label_of(id_, nombre, flags), row))
        if not found:
            return None
        score = _score(weights.LITERAL / len(found))
        candidates = tuple(Candidate(id_, label, score, (), row) for id_, label, row in found)
        gone = self._find_withdrawn_in(folded, municipio_id)
        doubtful = gone is not None or len(found) > 1
        outcome = certainty.outcome(weights.LITERAL, is_doubtful=doubtful, is_literal=True, sure=sure)
        return MatchResult(outcome, candidates[:MAX_CANDIDATES], gone)

    def _find_withdrawn(self, nombre: str, areas: Sequence[Area]) -> int | None:
        """Return the key of a withdrawn place of the municipio with exactly this name, if any."""
        folded = fold(nombre)
        return next((gone for area in areas if (gone := self._find_withdrawn_in(folded, area.id)) is not None), None)

    def _find_withdrawn_in(self, folded: str, municipio_id: int) -> int | None:
        layout = self._index.layout
        rows = layout.find(WITHDRAWN, f"{municipio_id}/{folded}", 1)
        return layout.record(rows[0])[0] if rows else None

    # -- By name

    def _compare_by_name(
        self, row: MatchRow, given: GivenName, estado_id: int | None, areas: Sequence[Area]
    ) -> list[ComparedPlace]:
        found: dict[int, NameDifference] = {}
        if not given.folded:
            return []
        for area in areas:
            self._compare_all(
                self._propose_within(given, area.id),
                row,
                given,
                found,
                area_fault(row, area, self._index.areas.municipios),
            )
        if areas and (not found or min(difference.cost for difference in found.values()) > weights.MAX_COST_OF_WORDS):
            for area in areas:
                self._compare_letters(area, row, given, found)
        if not found or 100 - min(difference.cost for difference in found.values()) < weights.MIN_SCORE_IN_MUNICIPIO:
            difference = Difference.MUNICIPIO_OTHER if areas else Difference.MUNICIPIO_UNKNOWN
            fault = fault_of(difference, row.municipio) if row.municipio else None
            self._compare_all(self._propose_anywhere(given, estado_id), row, given, found, fault)
        if fault := estado_fault(self._index.areas, row.estado):
            found = {at: _with_faults(difference, [fault]) for at, difference in found.items()}
        ranked = sorted(found.items(), key=lambda item: (item[1].cost, item[0]))
        named = [ComparedPlace(self._index.place(at), difference) for at, difference in ranked]
        return _choose_judged(named, None if row.municipio else given.readings[0][0])

    def _compare_letters(self, area: Area, row: MatchRow, given: GivenName, found: dict[int, NameDifference]) -> None:
        """Compare names of a municipio letter by letter, and keep what fits better than by its words."""
        fault = area_fault(row, area, self._index.areas.municipios)
        for at in self._index.block(area.id).most_alike(given.letters, _PROPOSED):
            place = self._index.place(at)
            difference = compare_letters(given, place)
            if difference is None:
                continue
            difference = _with_faults(difference, (fault, distance_fault(row, place), ambito_fault(row, place)))
            if difference.cost < weights.MAX_CANDIDATE_COST and (at not in found or difference.cost < found[at].cost):
                found[at] = difference

    def _compare_all(
        self,
        rows: Iterable[int],
        row: MatchRow,
        given: GivenName,
        found: dict[int, NameDifference],
        area: NameFault | None,
    ) -> None:
        costs: list[float] = []
        for at in rows:
            if at in found:
                continue
            place = self._index.place(at)
            least = costs[MAX_CANDIDATES] if len(costs) > MAX_CANDIDATES else weights.MAX_COST
            difference = compare(given, place, least)
            insort(costs, difference.cost)
            difference = _with_faults(difference, (area, distance_fault(row, place), ambito_fault(row, place)))
            if difference.cost < weights.MAX_CANDIDATE_COST:
                found[at] = difference

    def _propose_within(self, given: GivenName, municipio_id: int) -> list[int]:
        """Return the places of a municipio with the most similar names."""
        homonyms = self._index.layout.find(municipio_id, given.folded, _HOMONYMS)
        if any(fold(self._index.layout.name(row)[1]) == given.folded for row in homonyms):
            return homonyms
        block = self._index.block(municipio_id)
        found = dict.fromkeys(homonyms)
        for number, (words, _) in enumerate(given.readings[:3]):
            found |= block.most_similar(words, core(words), _PROPOSED if number == 0 else _PROPOSED // 2)
        return list(found)

    def _propose_anywhere(self, given: GivenName, estado_id: int | None) -> list[int]:
        """Return places of an estado, or of the country, with the given name or its words."""
        find, words = self._index.layout.find, self._index.words
        scope = estado_id or EVERYWHERE
        found = dict.fromkeys(find(scope, given.folded, _HOMONYMS))
        for reading, _ in given.readings[:3]:
            found |= dict.fromkeys(find(scope, " ".join(reading), _HOMONYMS))
        if not found and len(given.readings[0][0]) == 1:
            joined = find(JOINED, given.folded, _HOMONYMS)
            found = dict.fromkeys(
                row
                for row in joined
                if estado_id in {None, self._index.place(row).id // (KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE)}
            )
        if not found:
            terms = [f"e{estado_id}"] if estado_id else []
            typed = read(" ".join(given.readings[0][0]) + " ")
            for propose in (words.nearly, words.without_kinds, words.most_words):
                query = None if found else propose(typed, terms)
                if query is not None:
                    found = dict.fromkeys(words.propose(query, _HOMONYMS))
        return list(found)

    # -- By key

    def _match_by_key(
        self,
        row: MatchRow,
        key: int,
        estado_id: int | None,
        areas: Sequence[Area],
        sure: float,
        of_municipio: Area | None = None,
    ) -> MatchResult:
        """Match a row with a key; `of_municipio` is the area that a clave was read in.

        If the name is another place's, the place with the key comes first, and nothing is certain.
        """
        rows = self._index.layout.find(KEY, str(key), 4)
        places = sorted((self._index.place(at) for at in rows), key=lambda place: (place.id != key, place.row))
        given = read_name(self._without_areas(row, estado_id)) if row.nombre else None
        municipio = area_fault(row, of_municipio, self._index.areas.municipios) if of_municipio else None
        found = []
        for place in places:
            of_name = self._difference_of_key(row, key, given, place, municipio)
            contradictions = self._contradictions(row, place, estado_id, areas)
            found.append(ComparedPlace(place, _with_faults(of_name, contradictions)))
        found.sort(key=lambda compared: compared.difference.cost)
        is_contradicted = bool(found) and _is_contradicted(found[0].difference)
        if given is None:
            if is_contradicted:
                return self._decide_between(key, found, [], [], sure)
            return self._decide_by_key(found, sure) if found else self._without_place(key)
        if found and not is_contradicted and _cost_of_name(found[0].difference) < weights.MIN_COST_OF_OTHER_NAME:
            return self._decide_by_key(found, sure)
        if not row.municipio and not areas and places:
            areas = (Area(places[0].id // KEYS_OF_A_MUNICIPIO, weights.SAME_NAME),)  # the municipio of the key
        question = self._question(row, given, areas)
        named = [
            compared
            for compared in self._compare_by_name(row, given, estado_id, areas)
            if not found or compared.place.id != found[0].place.id
        ]
        if found:
            likely = certainty.probabilities(self._evidence(question, named))
            return self._decide_between(key, found, named, likely, sure)
        result = self._without_place(key)
        difference = Difference.UNKNOWN_KEY if result.withdrawn is None else Difference.WITHDRAWN_KEY
        ranked = [ComparedPlace(place, _with_key(of_name, difference, key)) for place, of_name in named]
        return self._decide(question, ranked, result.withdrawn, sure)

    def _contradictions(
        self, row: MatchRow, place: IndexedLocality, estado_id: int | None, areas: Collection[Area]
    ) -> Iterator[NameFault]:
        """Yield the faults of areas in a row that a place with its key is not in, and never was."""
        book = self._index.areas
        municipios = {place.id // KEYS_OF_A_MUNICIPIO, *(former.id // KEYS_OF_A_MUNICIPIO for former in place.former)}
        estados = {state_of(id_) for id_ in municipios}
        if row.estado and estado_id not in estados:
            found = book.estados[place.id // (KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE)]
            yield fault_of(Difference.ESTADO, row.estado, found)
            named = {area.id for id_ in estados for area in book.find_municipios(row.municipio or "", id_)}
        else:
            named = {area.id for area in areas}
        if row.municipio and municipios.isdisjoint(named):
            find, name = self._index.layout.find, fold(row.municipio)
            # A name that no municipio has may be that of a town in it: `Cancún` for Benito Juárez.
            if areas or not any(find(id_, name, 1) for id_ in municipios):
                difference = Difference.MUNICIPIO_OTHER if areas else Difference.MUNICIPIO_UNKNOWN
                yield fault_of(difference, row.municipio)
        if other := self._key_of_other_municipio(row, estado_id, municipios):
            yield other

    def _without_place(self, key: int) -> MatchResult:
        """Return the result for a key alone that no place has."""
        gone = key if self._index.layout.find(WITHDRAWN, str(key), 1) else None
        return MatchResult("none", withdrawn=gone)

    def _decide_by_key(self, found: Sequence[ComparedPlace], sure: float) -> MatchResult:
        """Return the result for the key of a place, present or former, whose name is like the given one."""
        likely = certainty.probabilities_by_key([difference.cost for _, difference in found])
        outcome = certainty.outcome(likely[0], is_doubtful=False, is_literal=not found[0].difference.faults, sure=sure)
        return MatchResult(outcome, self._candidates(zip(likely, found, strict=True)))

    def _decide_between(
        self,
        key: int,
        found: Sequence[ComparedPlace],
        named: Sequence[ComparedPlace],
        likely: Sequence[float],
        sure: float,
    ) -> MatchResult:
        """Return the result for the places with the key of a row and those with its name, of given probabilities.

        Nothing is certain if the areas of the row are not those of the key.
        """
        cost = _cost_of_name(found[0].difference)
        lead = min((difference.cost for _, difference in named), default=weights.LEAD_WITHOUT_RIVAL) - cost
        is_contradicted = _is_contradicted(found[0].difference)
        if is_contradicted:
            lead = min(lead, 0.0) - PENALTIES[Difference.MUNICIPIO_OTHER]
        is_another = cost > weights.MAX_COST_OF_KEY or lead < -weights.MAX_COST_OF_WORSE_KEY
        if lead >= 0 and not is_another:
            return self._decide_by_key(found, sure)
        best, rest = certainty.share_with_key(likely, lead, is_another=is_another, is_contradicted=is_contradicted)
        others = [ComparedPlace(place, _with_key(of_name, Difference.KEY, key)) for place, of_name in named]
        ranked = [(best, found[0]), *sorted(zip(rest, others, strict=True), key=lambda item: -item[0])]
        if is_another and is_contradicted:  # neither its name nor its areas are those of the row
            ranked.sort(key=lambda item: -item[0])
        outcome = certainty.outcome(
            ranked[0][0], is_doubtful=is_another or is_contradicted, is_literal=False, sure=sure
        )
        return MatchResult(outcome, self._candidates(ranked))

    @staticmethod
    def _difference_of_key(
        row: MatchRow, key: int, given: GivenName | None, place: IndexedLocality, municipio: NameFault | None
    ) -> NameDifference:
        """Return the faults of a place that has or had the given key."""
        difference = compare(given, place) if given else NameDifference(0.0, ())
        faults = list(difference.faults)
        if given and difference.cost > weights.MAX_COST:
            faults.append(fault_of(Difference.NAME, given.text, place.nombre))
        if place.id != key:
            faults.append(fault_of(Difference.FORMER_KEY, f"{key:09d}", f"{place.id:09d}"))
        faults += [fault for fault in (municipio, distance_fault(row, place), ambito_fault(row, place)) if fault]
        return NameDifference(sum(fault.penalty for fault in faults), tuple(faults))

    # -- The outcome

    @staticmethod
    def _evidence(question: Question, found: Sequence[ComparedPlace]) -> list[dict[str, float]]:
        costs = [difference.cost for _, difference in found]
        rivals = [min(costs[:at] + costs[at + 1 :], default=weights.LEAD_WITHOUT_RIVAL) for at in range(len(costs))]
        return [
            gather(question, place, difference.faults, rival - difference.cost)
            for rival, (place, difference) in zip(rivals, found, strict=True)
        ]

    def _decide(
        self,
        question: Question,
        found: Sequence[ComparedPlace],
        gone: int | None,
        sure: float,
    ) -> MatchResult:
        """Return the result for candidates by name."""
        likely = certainty.probabilities(self._evidence(question, found))
        _raise_same_once_read(question, found, likely)
        row = question.row
        _swap_seat_with_namesake(found, likely)
        has_moved = False
        if found and not (row.municipio or row.ambito or row.latitud is not None):  # only a name, and perhaps an estado
            has_moved = _swap_seat_to_front(question, found, likely) or _swap_town_to_front(question, found, likely)
        ranked = sorted(zip(likely, found, strict=True), key=lambda item: (-item[0], not item[1].place.flags & SEAT))
        if not ranked:
            return MatchResult("none", withdrawn=gone)
        share, (place, difference) = ranked[0]
        km = row.kilometres_to(place.latitud, place.longitud)
        # A place that was not compared may have the name.
        other_may_be_meant = has_homonym(place, difference.faults) if km is None else km > weights.MAX_KILOMETRES
        contradicted = any(map(contradicts, difference.faults))
        doubtful = gone is not None or has_moved or other_may_be_meant or contradicted or may_be_short(question, place)
        outcome = certainty.outcome(share, is_doubtful=doubtful, is_literal=not difference.faults, sure=sure)
        return MatchResult(outcome, self._candidates(ranked), gone)

    def _candidates(self, ranked: Iterable[tuple[float, ComparedPlace]]) -> tuple[Candidate, ...]:
        """Return the first places, each with its probability, as a result shows them."""
        return tuple(
            self._candidate(place, difference.faults, share)
            for share, (place, difference) in islice(ranked, MAX_CANDIDATES)
        )

    def _candidate(self, place: IndexedLocality, faults: tuple[NameFault, ...], share: float) -> Candidate:
        municipio = self._index.areas.municipios[place.id // KEYS_OF_A_MUNICIPIO]
        faults = tuple(
            fault._replace(found=municipio) if fault.code == "municipio" and not fault.found else fault
            for fault in faults
        )
        return Candidate(place.id, self._index.label(place), _score(share), faults, place.row)


def _is_written_in_digits(row: MatchRow) -> bool:
    """Return whether a row has digits for its name and its municipio, which are claves then."""
    nombre = (row.nombre or "").strip()
    if row.cvegeo or row.clave or not nombre.isdecimal() or len(nombre) > KINDS["localidad"].clave_digits:
        return False
    municipio, estado = ((text or "").strip() for text in (row.municipio, row.estado))
    is_whole = len(municipio) > KINDS["municipio"].clave_digits or estado.isdecimal()
    return municipio.isdecimal() and is_whole and len(municipio) <= KINDS["municipio"].digits


def _choose_judged(ranked: Sequence[ComparedPlace], municipio: Sequence[str] | None) -> list[ComparedPlace]:
    """Return the places with the least penalties, one more than a result shows.

    Those with hardly more penalties are judged too, but no more places of one name; and the seat of the `municipio`
    with these words, however many places have its name.
    """
    judged = list(ranked[: MAX_CANDIDATES + 1])
    names = Counter(compared.place.nombre for compared in judged)
    most = judged[0].difference.cost + weights.CLOSE_COST if judged else 0.0
    at = len(judged)
    while at < min(len(ranked), _JUDGED) and ranked[at].difference.cost <= most:
        if not names[ranked[at].place.nombre]:
            judged.append(ranked[at])
        at += 1
    if municipio is not None:
        seat = next((later for later in ranked[at:] if is_seat_named(municipio, later.place)), None)
        judged[-1:] = [seat] if seat else judged[-1:]
    return judged


def _raise_same_once_read(question: Question, found: Sequence[ComparedPlace], likely: MutableSequence[float]) -> None:
    """Raise the probability of the likeliest place to what it is at least if its name is the same once read.

    Another place that is hardly less likely leaves it as it is.
    """
    best = max(range(len(likely)), key=likely.__getitem__, default=0)
    if not likely or likely[best] >= weights.ONCE_READ:
        return
    if any(weights.ODDS_ONCE_READ * one > likely[best] for at, one in enumerate(likely) if at != best):
        return
    place, difference = found[best]
    rivals = [other.difference.cost for at, other in enumerate(found) if at != best]
    lead = min(rivals, default=weights.LEAD_WITHOUT_RIVAL) - difference.cost
    if is_same_once_read(question, place, difference.faults, lead, likely[best]):
        rest = (1 - weights.ONCE_READ) / (1 - likely[best])
        likely[:] = [weights.ONCE_READ if at == best else one * rest for at, one in enumerate(likely)]


def _swap_seat_with_namesake(found: Sequence[ComparedPlace], likely: MutableSequence[float]) -> None:
    """Swap a seat with a place of its name that seems likelier."""
    best = max(range(len(likely)), key=likely.__getitem__, default=0)
    for at, (place, difference) in enumerate(found):
        of_one_municipio = place.id // KEYS_OF_A_MUNICIPIO == found[best].place.id // KEYS_OF_A_MUNICIPIO
        if place.flags & SEAT and of_one_municipio and found[best].difference == difference:
            _swap_to_front(likely, at)


def _swap_seat_to_front(question: Question, found: Sequence[ComparedPlace], likely: MutableSequence[float]) -> bool:
    """Swap the seat whose municipio has the given name with the likeliest place; return whether that was necessary.

    A row with only the name of a municipio, and perhaps its estado, is more likely about its seat than about a hamlet.
    """
    seats = [at for at, (place, _) in enumerate(found) if is_seat_named(question.words, place)]
    if len(seats) != 1 or likely[seats[0]] == max(likely):
        return False
    _swap_to_front(likely, seats[0])
    return True


def _swap_town_to_front(question: Question, found: Sequence[ComparedPlace], likely: MutableSequence[float]) -> bool:
    """Swap the town that people call so with the likeliest place, if it is much larger; return whether it was swapped.

    Ciudad Juárez is the name of two villages, and what people call Juárez in Chihuahua.
    """
    likeliest = found[likely.index(max(likely))].place
    if is_seat_named(question.words, likeliest):
        return False
    called = [at for at, (_, difference) in enumerate(found) if is_called(difference.faults)]
    town = max(called, key=lambda at: found[at].place.poblacion or 0, default=None)
    least = (likeliest.poblacion or 0) * weights.PROMINENT_RATIO
    if town is None or (found[town].place.poblacion or 0) <= least:
        return False
    _swap_to_front(likely, town)
    return True


def _swap_to_front(likely: MutableSequence[float], at: int) -> None:
    """Swap a probability with the highest."""
    best = likely.index(max(likely))
    likely[at], likely[best] = likely[best], likely[at]


def _with_key(difference: NameDifference, of_key: Difference, key: int) -> NameDifference:
    """Return the difference of a place by name with a fault for the key of the row."""
    return _with_faults(difference, [fault_of(of_key, f"{key:09d}")])


def _is_contradicted(difference: NameDifference) -> bool:
    """Return whether the areas of a row are not those of the place with its key."""
    return any(fault.difference in _CONTRADICTIONS_OF_KEY for fault in difference.faults)


def _cost_of_name(difference: NameDifference) -> float:
    """Return the penalties of a place with a key, without those of a former key and of areas that contradict it."""
    others = {Difference.FORMER_KEY, *_CONTRADICTIONS_OF_KEY}
    return sum(fault.penalty for fault in difference.faults if fault.difference not in others)


def _with_faults(difference: NameDifference, others: Iterable[NameFault | None]) -> NameDifference:
    """Return a difference with further faults, if any."""
    extra = [fault for fault in others if fault]
    if not extra:
        return difference
    return NameDifference(difference.cost + sum(fault.penalty for fault in extra), (*difference.faults, *extra))


def _score(share: float) -> float:
    """Return a probability as a score."""
    return round(100 * max(0.0, share), 2)


def split_last(text: str) -> tuple[str, str]:
    """Return a name without the part behind its last comma or in its last bracket, and that part."""
    at = max(text.rfind(","), text.rfind("("), 0)
    return text[:at].rstrip("(, \t\r\n"), text[at + 1 :]


def _without_fillers(row: MatchRow) -> MatchRow:
    """Return a row without areas that only say that none is given, and without such a name beside a key."""
    if is_filler(row.municipio):
        row = row._replace(municipio=None)
    if is_filler(row.estado):
        row = row._replace(estado=None)
    if (row.cvegeo or (row.clave and row.municipio)) and is_filler(row.nombre):
        row = row._replace(nombre=None)
    return row


def _only_literal(result: MatchResult, *, has_point: bool) -> MatchResult:
    """Return the result for a name that says that no place is given: the places that are called so.

    Only the point of the row makes one of them certain.
    """
    found = tuple(one for one in result.candidates if all(is_of_area(fault) for fault in one.faults))
    if not found or result.outcome == "none":
        return MatchResult("none", found, result.withdrawn)
    is_first = found[0] == result.best  # rather than a place with a former name like this, or a similar one
    outcome = result.outcome if has_point and is_first else "ambiguous"
    return MatchResult(outcome, found, result.withdrawn)


def _weigh(results: Sequence[MatchResult], sure: float) -> MatchResult:
    """Return the result of a line that can be read in several ways: their candidates compete by their odds."""
    odds: dict[int, float] = {}
    candidates: dict[int, Candidate] = {}
    outcomes: dict[int, Outcome] = {}
    for result in results:
        none = max(1 - sum(one.score for one in result.candidates) / 100, _LEAST_SHARE)
        for one in result.candidates:
            if (share := one.score / 100 / none) > odds.get(one.id, 0.0):
                odds[one.id], candidates[one.id], outcomes[one.id] = share, one, result.outcome
    whole = 1 + sum(odds.values())
    ranked = sorted(odds, key=lambda id_: -odds[id_])
    shown = tuple(candidates[id_]._replace(score=_score(odds[id_] / whole)) for id_ in ranked[:MAX_CANDIDATES])
    first = outcomes[ranked[0]] if odds[ranked[0]] / whole >= sure else "ambiguous"
    return MatchResult(first, shown, results[0].withdrawn)


def _read_line(areas: AreaBook, row: MatchRow) -> Iterator[list[MatchRow]]:
    """Yield the readings of a row without a municipio, those with the most areas first, the row itself last.

    The areas may follow the name, or the name may be a key. Readings in one list are equally good.
    """
    text = row.nombre or ""
    digits = read_written_key(text)
    if digits.isdecimal() and len(digits) in {8, 9} and not row.estado:
        yield [row._replace(nombre=None, cvegeo=digits)]
        yield [row]
        return
    *before, last = areas.split_line(text) or [text]
    name = ", ".join(before)
    if not name:
        yield [row._replace(nombre=last if not row.estado else row.nombre)]
        return
    if len(before) > 1 and not row.estado and areas.find_state(last) is not None:
        yield [row._replace(nombre=", ".join(before[:-1]), municipio=before[-1], estado=last)]
    if readings := list(_read_parts(areas, row, before, last)):
        yield readings
    yield [row if row.estado else row._replace(nombre=f"{name}, {last}")]


def _read_parts(areas: AreaBook, row: MatchRow, before: Sequence[str], last: str) -> Iterator[MatchRow]:
    """Yield the readings of a line with one area behind the name, or with its estado before it."""
    name = ", ".join(before)
    if row.estado:
        estado_id = areas.find_state(row.estado)
        municipios = areas.find_municipios(last, estado_id) if areas.find_state(last) != estado_id else ()
        if any(area.likeness >= weights.SAME_UNTITLED_NAME for area in municipios):
            yield row._replace(nombre=name, municipio=last)
        return
    is_estado = areas.find_state(last) is not None
    if is_estado:
        yield row._replace(nombre=name, estado=last)
    if any(one.likeness >= weights.SAME_NAME or not is_estado for one in areas.find_municipios(last, None)):
        yield row._replace(nombre=name, municipio=last)
    if areas.named_state(fold(before[0])) is not None:
        yield row._replace(nombre=last, municipio=", ".join(before[1:]) or None, estado=before[0])
