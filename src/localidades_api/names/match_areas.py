"""Matches a row about a municipio or an estado to its key, through the same stages as a row about a locality."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, format_key, kind_of_key, state_of
from localidades_api.names import weights
from localidades_api.names.candidates.alignment import Comparison, GivenName, align, align_letters, read_name
from localidades_api.names.candidates.row_differences import compare_estado
from localidades_api.names.certainty import probability
from localidades_api.names.certainty.evidence import Question, gather_area, leads
from localidades_api.names.files.layout import EVERYWHERE, KEY, SEAT
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.reading.areas import untitled
from localidades_api.names.reading.lines import without_fillers
from localidades_api.names.reading.text import canonical, is_filler
from localidades_api.names.reading.vocabulary import COUNTRY
from localidades_api.names.reasons import Difference, Reason, differ
from localidades_api.names.rows import MAX_CANDIDATES, Candidate, MatchResult, MatchRow, read_key

_HOMONYMS = 24  # places of one name among which seats are sought


class ComparedArea(NamedTuple):
    """An area that a row may name, and what differs."""

    id: int
    comparison: Comparison


class AreaMatcher:
    """Finds the municipios and estados of rows in the files of an index."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    def match(self, row: MatchRow, sure: float = weights.SURE) -> MatchResult:
        """Return the area of a row, certain from a probability of `sure`; the name may be a whole line."""
        row = without_fillers(row._replace(nombre=None if is_filler(row.nombre) else row.nombre))
        if row.kind == "estado":
            found, key = self._states(row.nombre), read_key(row.cvegeo)
        else:
            row, found, key = self._municipios(row)
        return self._decide(found, sure) if key is None else self._decide_with_key(found, key, row, sure)

    # -- Read and propose

    def _states(self, text: str | None) -> list[Candidate]:
        book = self._index.areas
        estado_id = book.find_state(text) if text else None
        if text is None or estado_id is None:
            return []
        nombre = book.estados[estado_id]
        if not book.is_misspelt_state(text):
            return [Candidate(estado_id, nombre, probability.score(weights.LITERAL), ())]
        return [
            Candidate(
                estado_id, nombre, probability.score(weights.MISSPELT_ESTADO), (differ(Reason.SPELLING, text, nombre),)
            )
        ]

    def _municipios(self, row: MatchRow) -> tuple[MatchRow, list[Candidate], int | None]:
        """Return a row with its estado apart, the municipios that it may name, and the key that it gives."""
        book, row = self._index.areas, self._read(row)
        readings = [row]
        if row.nombre and fold(row.estado or "") in COUNTRY:  # the estado of México, or the country
            readings.append(row._replace(estado=None))
        estado_id = book.find_state(row.estado) if row.estado else None
        key = read_key(row.cvegeo) or book.find_by_key(row.cve_mun, estado_id)
        if key is None and estado_id:
            key = book.find_by_key(row.cve_mun, None)
        return row, self._named(readings), key

    def _read(self, row: MatchRow) -> MatchRow:
        if not row.nombre or row.estado:
            return row
        nombre, estado = self._index.areas.split_state(row.nombre)
        return row._replace(nombre=nombre, estado=estado)

    def _named(self, readings: Sequence[MatchRow]) -> list[Candidate]:
        """Return the municipios that the name of a row may be, in one reading or another, with their probabilities."""
        compared_areas: dict[int, tuple[Comparison, dict[str, float]]] = {}
        for reading in readings:
            question, compared = self._propose(reading)
            for (id_, comparison), evidence in zip(compared, self._evidence(question, compared), strict=True):
                compared_areas.setdefault(id_, (comparison, evidence))
        likely = probability.probabilities([evidence for _, evidence in compared_areas.values()])
        return [
            Candidate(
                id_, self._index.areas.label(id_), probability.score(share * weights.LITERAL), comparison.differences
            )
            for share, (id_, (comparison, _)) in zip(likely, compared_areas.items(), strict=True)
        ]

    def candidates(self, row: MatchRow) -> tuple[list[int], list[dict[str, float]]]:
        """Return the keys of the municipios that a row may name, and the evidence for each, to fit certainty."""
        question, found = self._propose(self._read(row))
        return [area.id for area in found], self._evidence(question, found)

    def _propose(self, row: MatchRow) -> tuple[Question, list[ComparedArea]]:
        """Return what is asked and the municipios with names like that of a row, among them those of such a seat."""
        book, text = self._index.areas, row.nombre or ""
        estado_id = book.find_state(row.estado) if row.estado else None
        of_estado, given = compare_estado(book, row.estado), read_name(text)
        question = Question.of(self._index, row._replace(estado=row.estado if estado_id else None), given)
        if not text:
            return question, []
        if text.isdecimal():
            areas = book.find_municipios(text, estado_id)
            return question, [ComparedArea(area.id, Comparison.of([])) for area in areas]
        ids = [area.id for area in book.find_municipios(text, estado_id)]
        words = canonical(given.text)
        if len(ids) == 1:
            ids += book.longer(untitled(words), ids[0] // KEYS_OF_A_STATE)
        ids += self._municipios_of_seats(text, estado_id)
        known = [id_ for id_ in dict.fromkeys(ids) if id_ in book.municipios]
        found = [ComparedArea(id_, self._compare(given, id_).with_more(of_estado)) for id_ in known]
        if called := [area for area in found if book.words[area.id] == words]:
            population = self._population_of_seat(called[0].id) * weights.PROMINENT_RATIO
            found = [area for area in found if area in called or self._population_of_seat(area.id) > population]
        return question, found

    def _municipios_of_seats(self, text: str, estado_id: int | None) -> list[int]:
        names = dict.fromkeys((fold(text), " ".join(canonical(text))))
        rows = [row for name in names for row in self._index.layout.find(estado_id or EVERYWHERE, name, _HOMONYMS)]
        places = [self._index.place(row) for row in dict.fromkeys(rows)]
        return [place.id // KEYS_OF_A_MUNICIPIO for place in places if place.flags & SEAT]

    def _population_of_seat(self, municipio_id: int) -> int:
        rows = self._index.layout.find(KEY, f"{municipio_id * KEYS_OF_A_MUNICIPIO + 1}", 1)
        return max((self._index.layout.record(row)[1] for row in rows), default=0)

    # -- Align and weigh

    def _compare(self, given: GivenName, id_: int) -> Comparison:
        place = self._index.area_places[id_]
        compared = align(given, place)
        if compared.cost > weights.MAX_COST_OF_WORDS:
            by_letters = align_letters(given, place)
            if by_letters and by_letters.cost < compared.cost:
                compared = by_letters
        if compared.cost > weights.MAX_COST:
            return Comparison.of([differ(Reason.NAME, given.text, place.nombre)])
        return compared

    def _evidence(self, question: Question, found: Sequence[ComparedArea]) -> list[dict[str, float]]:
        return [
            gather_area(question, self._index.area_places[id_], comparison.differences, lead)
            for lead, (id_, comparison) in zip(leads([area.comparison for area in found]), found, strict=True)
        ]

    # -- Decide

    def _decide(self, found: Sequence[Candidate], sure: float, *, is_doubtful: bool = False) -> MatchResult:
        """Return the result; the candidates of a doubtful row stay in their order."""
        if not found:
            return MatchResult("none")
        ranked = found if is_doubtful else sorted(found, key=lambda candidate: (-candidate.score, candidate.id))
        first = ranked[0]
        has_rival = len(ranked) > 1 and _has_same_words(first)
        outcome = probability.outcome(
            first.score / 100,
            is_doubtful=is_doubtful or has_rival or any(fault.reason.is_doubt for fault in first.faults),
            is_literal=not first.faults,
            sure=sure,
        )
        return MatchResult(outcome, tuple(ranked[:MAX_CANDIDATES]))

    def _decide_with_key(self, found: Sequence[Candidate], key: int, row: MatchRow, sure: float) -> MatchResult:
        """Return the result for a row with the key of an area, and candidates for its name.

        The key decides where the name, the estado and `cve_mun` may be those of its area. Otherwise the area with the
        key comes first, and nothing is certain.
        """
        book, kind = self._index.areas, kind_of_key(key)
        named = book.estados if kind == "estado" else book.municipios
        if key not in named:
            unknown = differ(Reason.UNKNOWN_KEY, format_key(kind, key))
            return self._decide([candidate._replace(faults=(*candidate.faults, unknown)) for candidate in found], sure)
        faults = tuple(self._contradictions(row, key)) if kind == "municipio" else ()
        own = Candidate(key, book.label(key), probability.score(weights.BY_KEY), faults)
        agreeing = next((candidate for candidate in found if candidate.id == key), None)
        if agreeing or not row.nombre:
            of_name = agreeing.faults if agreeing else ()
            more = [fault for fault in of_name if not faults or fault.reason is not Reason.ESTADO]
            return self._decide([own._replace(faults=(*faults, *more))], sure, is_doubtful=bool(faults))
        if not (faults and any(candidate.id == key for candidate in self._named([row._replace(estado=None)]))):
            own = own._replace(faults=(*faults, differ(Reason.NAME, row.nombre, named[key])))
        of_key = differ(Reason.KEY, format_key(kind, key))
        others = [
            candidate._replace(score=round(candidate.score / 2, 2), faults=(*candidate.faults, of_key))
            for candidate in sorted(found, key=lambda candidate: -candidate.score)
        ]
        own = own._replace(score=round(own.score / 2, 2) if others else own.score)
        return self._decide([own, *others], sure, is_doubtful=True)

    def _contradictions(self, row: MatchRow, key: int) -> Iterator[Difference]:
        """Yield the faults of the estado and the `cve_mun` of a row that are not those of the municipio with a key."""
        book, estado_id = self._index.areas, state_of(key)
        if row.estado and book.find_state(row.estado) != estado_id:
            yield differ(Reason.ESTADO, row.estado, book.estados[estado_id])
        other = book.find_by_key(row.cve_mun, estado_id) or book.find_by_key(row.cve_mun, None)
        if row.cve_mun and other not in {None, key}:
            yield differ(Reason.KEY, row.cve_mun, book.municipios[key])


def _has_same_words(candidate: Candidate) -> bool:
    """Return whether a municipio has the name of a row once abbreviations and numbers are read."""
    return all("read" in fault.reason.marks or not fault.reason.is_of_name for fault in candidate.faults)
