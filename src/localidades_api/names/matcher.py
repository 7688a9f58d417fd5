"""Matches a row to the key of its place.

A row goes through five stages: it is read (`lines`), places are proposed and aligned with it (`proposals`,
`alignment`), what speaks for each is gathered (`evidence`) and weighed (`certainty`), and the first is certain if its
probability reaches the bound and no reason leaves a doubt (docs/decisions/certainty.md).
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE
from localidades_api.names import weights
from localidades_api.names.candidates.alignment import Comparison, GivenName, read_name
from localidades_api.names.candidates.proposals import ComparedPlace, Proposer
from localidades_api.names.certainty import probability
from localidades_api.names.certainty.evidence import Question, gather, leads
from localidades_api.names.files.layout import (
    HOMONYM,
    PART_OF_MUNICIPIO,
    SEAT,
    SHORT_OF_TOWN,
    SHORT_OF_TOWN_IN_STATE,
    URBAN,
    WITHDRAWN,
)
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.places import IndexedLocality
from localidades_api.names.reading.addresses import is_colonia, read_address
from localidades_api.names.reading.areas import Area
from localidades_api.names.reading.lines import name_without_areas, read_row, with_key_apart, without_fillers
from localidades_api.names.reading.text import fold, is_filler, open_word
from localidades_api.names.reading.vocabulary import ARTICLES, GENERICS
from localidades_api.names.reasons import Difference, Reason, differ
from localidades_api.names.rows import MAX_CANDIDATES, Candidate, MatchResult, MatchRow, Outcome, read_key

_HOMONYMS = 24  # places of one name that are compared
# Codes of names that are not the place's own: another place that has the name is no homonym of it.
_OTHER_NAMES = frozenset({"former_name", "bracket", "seat", "everyday"})


class Matcher:
    """Finds the places of rows in the files of an index."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index
        self._proposer = Proposer(index)

    def match(self, row: MatchRow, sure: float = weights.SURE) -> MatchResult:
        """Return the place of a row, certain from a probability of `sure`.

        A name alone may be a whole line. A street and the like before a place are set aside, and leave it in doubt.
        """
        row = without_fillers(row)
        result = self._match_line(row, sure)
        if result.id is not None or not row.nombre or row.cvegeo or row.clave or is_filler(row.nombre):
            return result
        name, street = read_address(row.nombre)
        if name == row.nombre or not (name or row.municipio):
            return result
        in_town = self._match_line(row._replace(nombre=name or row.municipio), sure)
        share = weights.IN_TOWN if street else 1.0
        if in_town.best is None or (result.best is not None and result.best.score > in_town.best.score):
            return result
        aside = differ(Reason.ADDRESS, street or row.nombre)
        candidates = tuple(
            candidate._replace(
                score=probability.score(share * candidate.score / 100), faults=(aside, *candidate.faults)
            )
            for candidate in in_town.candidates
        )
        outcome: Outcome = "ambiguous" if street or in_town.id is None else "sure"
        return MatchResult(outcome, candidates, in_town.withdrawn)

    def _match_line(self, row: MatchRow, sure: float) -> MatchResult:
        with_areas, plain = read_row(self._index.areas, row)
        for readings in with_areas:
            if is_filler(readings[0].nombre):
                return self._match_reading(readings[0], sure)
            # Another reading must not make certain what one with areas leaves in doubt.
            results = [
                result for reading in readings if (result := self._match_reading(reading, sure)).outcome != "none"
            ]
            if results:
                return results[0] if len(results) == 1 else probability.weigh_readings(results, sure)
        return self._match_reading(plain, sure)

    def _match_reading(self, row: MatchRow, sure: float) -> MatchResult:
        """Match one reading of a row; a name that only says that no place is given needs a place that is called so."""
        result = self._decide(row, sure)
        if is_filler(row.nombre):
            return _only_literal(result, has_point=row.latitud is not None)
        if result.id is None and row.municipio and is_colonia(row.nombre):
            return self._with_town(row, result)
        return result

    def _with_town(self, row: MatchRow, result: MatchResult) -> MatchResult:
        """Return the result for a colonia that is no place with the largest town of its municipio."""
        areas = self._areas(row, self._index.areas.find_state(row.estado) if row.estado else None)
        rows = self._index.layout.block(areas[0].id)[1] if len(areas) == 1 else ()
        town = self._index.place(min(rows)) if rows else None
        if town is None or not town.flags & URBAN or town.id in {candidate.id for candidate in result.candidates}:
            return result
        left = 1 - sum(candidate.score for candidate in result.candidates) / 100
        of_town = Comparison.of([differ(Reason.ADDRESS, row.nombre or "")])
        candidate = self._candidate(ComparedPlace(town, of_town), left * weights.IN_TOWN)
        ranked = sorted([candidate, *result.candidates], key=lambda one: -one.score)
        return result._replace(outcome="ambiguous", candidates=tuple(ranked[:MAX_CANDIDATES]))

    # -- Read

    def _areas(self, row: MatchRow, estado_id: int | None) -> Sequence[Area]:
        """Return the municipios that a row may name; its `cve_mun` counts unless it contradicts the name."""
        areas = self._index.areas.find_municipios(row.municipio, estado_id) if row.municipio else ()
        if row.cve_mun is None or (len(areas) == 1 and areas[0].likeness == weights.SAME_NAME):
            return areas
        key = self._index.areas.find_by_key(row.cve_mun, estado_id)
        if key is None:
            return areas
        return [area for area in areas if area.id == key] or areas or [Area(key, weights.SAME_NAME)]

    def _read_key(
        self, row: MatchRow, given: GivenName | None, estado_id: int | None, areas: Sequence[Area]
    ) -> tuple[int | None, Sequence[Area]]:
        """Return the key of a row, and the municipios that it may name; a clave is that of a place in one of them."""
        if (key := read_key(row.cvegeo)) is not None:
            return key, areas
        clave = read_key(row.clave)
        if not clave:
            return None, areas
        if clave >= KEYS_OF_A_MUNICIPIO:
            return (estado_id * KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE + clave if estado_id else None), areas
        keys = [(area.id * KEYS_OF_A_MUNICIPIO + clave, area) for area in areas]
        if len(keys) > 1:  # municipios of one name: that of the place with both the name and the clave
            keys = [(key, area) for key, area in keys if given and self._is_called(key, given)]
        if len(keys) == 1:
            return keys[0][0], [keys[0][1]]
        return None, areas

    def _is_called(self, key: int, given: GivenName) -> bool:
        """Return whether the place that has a key today has a name, or one much like it."""
        found = self._proposer.by_key(MatchRow(), given, key, None, ())
        return any(place.id == key and comparison.cost < weights.MAX_COST_OF_WORDS for place, comparison in found)

    # -- Propose and align

    def candidates(self, row: MatchRow) -> tuple[list[int], list[dict[str, float]]]:
        """Return the keys of the candidates for a row with a name and the evidence for each, to fit certainty."""
        question, found, _ = self._propose(with_key_apart(row))
        return [place.id for place, _ in found], _evidence(question, found)

    def _propose(self, row: MatchRow) -> tuple[Question, list[ComparedPlace], int | None]:
        """Return what is asked, the places that may be meant, and the key of a withdrawn place of the name or key."""
        book = self._index.areas
        estado_id = book.find_state(row.estado) if row.estado else None
        areas = self._areas(row, estado_id)
        given = read_name(name_without_areas(book, row, estado_id)) if row.nombre else None
        key, areas = self._read_key(row, given, estado_id, areas)
        keyed = self._proposer.by_key(row, given, key, estado_id, areas) if key is not None else []
        question = Question.of(self._index, row, given, areas, key)
        gone = None
        if key is not None and not keyed:
            gone = key if self._index.layout.find(WITHDRAWN, str(key), 1) else None
        if given is None or (keyed and _agrees(keyed[0].comparison)):
            return question, keyed, gone
        if keyed and not row.municipio and not areas:
            municipio = Area(keyed[0].place.id // KEYS_OF_A_MUNICIPIO, weights.SAME_NAME)  # that of the key
            areas, question = (municipio,), Question.of(self._index, row, given, (municipio,), key)
        named = self._proposer.by_name(row, given, estado_id, areas)
        other: Difference | None
        if key is not None:
            reason = Reason.KEY if keyed else Reason.UNKNOWN_KEY if gone is None else Reason.WITHDRAWN_KEY
            other = differ(reason, f"{key:09d}")
        elif (clave := read_key(row.clave)) and areas:
            other = differ(Reason.KEY, f"{clave:04d}")
        else:
            other = self._proposer.key_of_other_municipio(row, estado_id, {area.id for area in areas})
        known = {place.id for place, _ in keyed}
        others = [ComparedPlace(place, compared.with_more(other)) for place, compared in named if place.id not in known]
        withdrawn = (self._find_withdrawn(fold(row.nombre or ""), area.id) for area in areas)
        gone = gone if gone is not None else next((place for place in withdrawn if place is not None), None)
        return question, [*keyed, *others], gone

    def _find_withdrawn(self, folded: str, municipio_id: int) -> int | None:
        layout = self._index.layout
        rows = layout.find(WITHDRAWN, f"{municipio_id}/{folded}", 1)
        return layout.record(rows[0])[0] if rows else None

    # -- Decide

    def _decide(self, row: MatchRow, sure: float) -> MatchResult:
        if not (row.nombre or row.cvegeo or row.clave):
            return MatchResult("none")
        if found := self._match_literally(row, sure):
            return found
        question, compared, gone = self._propose(row)
        if not compared:
            return MatchResult("none", withdrawn=gone)
        if question.key is not None and (row.nombre is None or _agrees(compared[0].comparison)):
            likely = probability.probabilities_by_key([comparison.cost for _, comparison in compared])
            gone = None
        else:
            likely = probability.probabilities(_evidence(question, compared))
        ranked = sorted(zip(likely, compared, strict=True), key=lambda item: (-item[0], not item[1].place.flags & SEAT))
        share, first = ranked[0]
        doubts = [*self._doubts(question, first, compared)]
        # A place with the key, or with the name in its municipio, is told, however unlikely it is.
        is_told = any(
            question.has_key(place) or (row.municipio and comparison.has_same_name) for place, comparison in compared
        )
        outcome = probability.outcome(
            max(share, weights.UNLIKELY if is_told else 0.0),
            is_doubtful=gone is not None or bool(doubts),
            is_literal=not first.comparison.differences,
            sure=sure,
        )
        told = [doubt for doubt in doubts if doubt not in first.comparison.differences]
        ranked[0] = share, first._replace(comparison=first.comparison.with_more(*told))
        shown = tuple(self._candidate(one, share) for share, one in islice(ranked, MAX_CANDIDATES))
        return MatchResult(outcome, shown, gone)

    def _match_literally(self, row: MatchRow, sure: float) -> MatchResult | None:
        """Return the result for a name of the row's municipio, if every place found by it is called so."""
        book = self._index.areas
        if not row.nombre or row.cvegeo or row.clave or row.latitud is not None or row.ambito is not None:
            return None
        estado_id = book.find_state(row.estado) if row.estado else None
        areas = self._areas(row, estado_id)
        if len(areas) != 1 or areas[0].likeness != weights.SAME_NAME:
            return None
        if (row.estado and (estado_id is None or book.is_misspelt_state(row.estado))) or (
            self._proposer.key_of_other_municipio(row, estado_id, {areas[0].id})
        ):
            return None
        for folded in self._literal_names(row, estado_id):
            if found := self._find_literally(folded, areas[0].id, sure):
                return found
        return None

    def _literal_names(self, row: MatchRow, estado_id: int | None) -> Iterator[str]:
        """Yield the folded name of a row, then without its areas behind it, and with its article in front."""
        yield fold(row.nombre or "")
        name = name_without_areas(self._index.areas, row, estado_id)
        given = read_name(name)
        if not given.damage:
            if name != row.nombre:
                yield given.folded
            if given.spoken:
                yield given.spoken

    def _find_literally(self, folded: str, municipio_id: int, sure: float) -> MatchResult | None:
        layout = self._index.layout
        rows = layout.find(municipio_id, folded, _HOMONYMS)
        places = []
        for row in rows:
            id_, nombre, flags = layout.name(row)
            if fold(nombre) != folded or id_ // KEYS_OF_A_MUNICIPIO != municipio_id:
                return None
            if flags & (SHORT_OF_TOWN | PART_OF_MUNICIPIO) or (flags & SEAT and len(rows) > 1):
                return None  # people may mean a town, or the seat, by a part of its name, and the seat by its name
            places.append((id_, self._index.label_of(id_, nombre, flags), row))
        if not places:
            return None
        score = probability.score(weights.LITERAL / len(places))
        doubts = (differ(Reason.HOMONYM, folded),) if len(places) > 1 else ()
        candidates = tuple(Candidate(id_, label, score, doubts, row) for id_, label, row in places)
        gone = self._find_withdrawn(folded, municipio_id)
        is_doubtful = gone is not None or len(places) > 1
        outcome = probability.outcome(weights.LITERAL, is_doubtful=is_doubtful, is_literal=True, sure=sure)
        return MatchResult(outcome, candidates[:MAX_CANDIDATES], gone)

    def _doubts(
        self, question: Question, first: ComparedPlace, compared: Sequence[ComparedPlace]
    ) -> Iterator[Difference]:
        """Yield why another place than the likeliest may be meant, even one that was not compared."""
        row, place, differences = question.row, first.place, first.comparison.differences
        if question.has_key(place):
            yield from (difference for difference in differences if difference.reason.is_doubt_of_key)
            if first.comparison.cost > weights.LEAD and any(comparison.has_same_name for _, comparison in compared):
                yield differ(Reason.OTHER_PLACE, row.nombre or "")
            return
        yield from (difference for difference in differences if difference.reason.is_doubt)
        is_homonym = place.flags & (HOMONYM | SEAT) == HOMONYM and _OTHER_NAMES.isdisjoint(
            difference.code for difference in differences
        )
        if is_homonym and row.kilometres_to(place.latitud, place.longitud) is None:
            yield differ(Reason.HOMONYM, place.nombre)
        if self._may_be_short(question, place, differences):
            yield differ(Reason.SHORT_NAME, row.nombre or "")
        kinds = {difference.given for difference in differences if difference.reason.evidence.startswith("kind_added")}
        find, municipio_id = self._index.layout.find, place.id // KEYS_OF_A_MUNICIPIO
        for article, word in pairwise(question.given.folded.split()) if kinds else ():
            name = f"{article} {word}"
            if article in ARTICLES and not kinds.isdisjoint(open_word(word)) and find(municipio_id, name, 1):
                yield differ(Reason.OTHER_PLACE, name)

    def _count_named(self, words: set[str], place: IndexedLocality) -> int:
        """Return how many municipios of a place's estado have these words in their names."""
        estado_id = place.id // (KEYS_OF_A_MUNICIPIO * KEYS_OF_A_STATE)
        return sum(
            id_ // KEYS_OF_A_STATE == estado_id and words <= {*named} for id_, named in self._index.areas.words.items()
        )

    def _may_be_short(self, question: Question, place: IndexedLocality, differences: Sequence[Difference]) -> bool:
        """Return whether people use the name for another place: for a town, or the seats of two municipios, for short.

        Without a municipio, the first word of a name that was not given may be another place's: Mariano Arista.
        """
        flag = SHORT_OF_TOWN if question.area_words else SHORT_OF_TOWN | SHORT_OF_TOWN_IN_STATE
        if place.flags & flag and fold(place.nombre) == question.given.folded:
            return True
        words = set(question.words)
        if words and sum(words <= set(area_words) for area_words in question.area_words) > 1:
            return True
        if question.row.municipio:
            return False
        if differences and place.flags & SEAT and self._count_named(words, place) > 1:
            return True
        firsts = (next((word for word in name.words if word not in GENERICS), "") for name in place.names)
        return not {difference.found for difference in differences if difference.reason is Reason.MISSING}.isdisjoint(
            firsts
        )

    def _candidate(self, compared: ComparedPlace, share: float) -> Candidate:
        place, comparison = compared
        municipio = self._index.areas.municipios[place.id // KEYS_OF_A_MUNICIPIO]
        faults = tuple(
            fault._replace(found=municipio) if fault.code == "municipio" and not fault.found else fault
            for fault in comparison.differences
        )
        return Candidate(place.id, self._index.label(place), probability.score(share), faults, place.row)


def _evidence(question: Question, found: Sequence[ComparedPlace]) -> list[dict[str, float]]:
    return [
        gather(question, place, compared.differences, lead)
        for lead, (place, compared) in zip(leads([comparison for _, comparison in found]), found, strict=True)
    ]


def _agrees(comparison: Comparison) -> bool:
    others = [fault for fault in comparison.differences if fault.reason is not Reason.FORMER_KEY]
    cost = sum(fault.penalty for fault in others)
    return cost < weights.MIN_COST_OF_OTHER_NAME and not any(fault.reason.is_doubt for fault in others)


def _only_literal(result: MatchResult, *, has_point: bool) -> MatchResult:
    """Return the result for a name that says that no place is given: the places that are called so.

    Only the point of the row makes one of them certain.
    """
    found = tuple(
        candidate for candidate in result.candidates if not any(fault.reason.is_of_name for fault in candidate.faults)
    )
    if not found or result.outcome == "none":
        return MatchResult("none", found, result.withdrawn)
    is_first = found[0] == result.best  # rather than a place with a former name like this, or a similar one
    outcome = result.outcome if has_point and is_first else "ambiguous"
    return MatchResult(outcome, found, result.withdrawn)
