"""Matches a row about a municipio or an estado to its key and lists the differences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, format_key, kind_of_key, state_of
from localidades_api.names import weights
from localidades_api.names.candidates.row_differences import compare_estado
from localidades_api.names.certainty.probability import outcome, shares
from localidades_api.names.files.layout import EVERYWHERE, KEY, SEAT
from localidades_api.names.files.reader import IndexReader
from localidades_api.names.reading.areas import Area, AreaBook, untitled
from localidades_api.names.reading.lines import without_fillers
from localidades_api.names.reading.text import canonical, is_filler, repair
from localidades_api.names.reading.vocabulary import COUNTRY
from localidades_api.names.reasons import Difference, Reason, differ
from localidades_api.names.rows import Candidate, MatchResult, MatchRow, read_key

_HOMONYMS = 24  # places of one name among which seats are sought


class AreaCandidate(NamedTuple):
    """An area that a row may name, what differs, and the evidence for it by name."""

    id: int
    label: str
    faults: tuple[Difference, ...]
    evidence: Mapping[str, float]


class AreaMatcher:
    """Finds the municipios and estados of rows in the files of an index."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    def match(self, row: MatchRow, sure: float = weights.SURE) -> MatchResult:
        """Return the area of a row, certain from a probability of `sure`; the name may be a whole line."""
        row = without_fillers(row._replace(nombre=None if is_filler(row.nombre) else row.nombre))
        return self._match_state(row, sure) if row.kind == "estado" else self._match_municipality(row, sure)

    def _match_state(self, row: MatchRow, sure: float) -> MatchResult:
        areas, text = self._index.areas, row.nombre
        found = state_candidates(areas, text) if text else []
        key = read_key(row.cvegeo)
        return decide(found, sure) if key is None else decide_with_key(areas, found, key, row, sure)

    def _match_municipality(self, row: MatchRow, sure: float) -> MatchResult:
        areas, text, estado = self._index.areas, row.nombre, row.estado
        if text and not estado:
            text, estado = areas.split_state(text)
        estado_id = areas.find_state(estado) if estado else None
        found = self._find_municipality(text, estado, estado_id) if text else []
        if text and text != row.nombre and fold(estado or "") in COUNTRY:  # the estado of México, or the country
            known = {one.id for one in found}
            found += [one for one in self._find_municipality(text, None, None) if one.id not in known]
        key = (
            read_key(row.cvegeo)
            or areas.find_by_key(row.cve_mun, estado_id)
            or (areas.find_by_key(row.cve_mun, None) if estado_id else None)
        )
        asked = row._replace(nombre=text, estado=estado)
        return decide_with_key(areas, found, key, asked, sure) if key else decide(found, sure)

    def _find_municipality(self, text: str, estado: str | None, estado_id: int | None) -> list[AreaCandidate]:
        """Return the municipios that a text may name, among them those whose seat it names."""
        areas = self._index.areas
        found = municipality_candidates(areas, text, estado)
        exact = [one for one in found if "same_name" in one.evidence]
        if exact:
            population = self._population_of_seat(exact[0].id) * weights.PROMINENT_RATIO
            return [one for one in found if one in exact or self._population_of_seat(one.id) > population]
        seats = self._municipios_of_seats(text, estado_id)
        others = [one for one in found if one.id not in seats]
        return [*(seat_candidate(areas, text, id_, has_estado=estado_id is not None) for id_ in seats), *others]

    def _municipios_of_seats(self, text: str, estado_id: int | None) -> list[int]:
        """Return the municipios whose seat has the name in a text, today or in everyday language."""
        names = dict.fromkeys((fold(text), " ".join(canonical(text))))
        rows = [row for name in names for row in self._index.layout.find(estado_id or EVERYWHERE, name, _HOMONYMS)]
        places = [self._index.place(row) for row in dict.fromkeys(rows)]
        return [place.id // KEYS_OF_A_MUNICIPIO for place in places if place.flags & SEAT]

    def _population_of_seat(self, municipio_id: int) -> int:
        rows = self._index.layout.find(KEY, f"{municipio_id * KEYS_OF_A_MUNICIPIO + 1}", 1)
        return max((self._index.layout.record(row)[1] for row in rows), default=0)


def state_candidates(book: AreaBook, text: str) -> list[AreaCandidate]:
    """Return the estado with a name, abbreviation, code or key, if there is one."""
    found = book.find_state(text)
    if found is None:
        return []
    nombre = book.estados[found]
    if not book.is_misspelt_state(text):
        return [AreaCandidate(found, nombre, (), {"same_name": 1.0})]
    fault = Difference(Reason.SPELLING, text, nombre, weights.MISSPELT_ESTADO_PENALTY)
    return [AreaCandidate(found, nombre, (fault,), {"other_name_of_estado": 1.0})]


def municipality_candidates(book: AreaBook, text: str, estado: str | None = None) -> list[AreaCandidate]:
    """Return the municipios that a text may name, the most similar first."""
    estado_id = book.find_state(estado) if estado else None
    of_estado = compare_estado(book, estado)
    words = untitled(canonical(repair(text)))
    areas = [area for area in book.find_municipios(text, estado_id) if area.id in book.municipios]
    if len(areas) == 1 and areas[0].likeness == weights.SAME_NAME and not text.isdecimal():
        longer = book.longer(words, areas[0].id // KEYS_OF_A_STATE)
        areas += [Area(id_, weights.MAX_SHARED_WORDS_LIKENESS) for id_ in longer]
    found = []
    for area in areas:
        fault = _name_fault(area, text, book.municipios[area.id])
        evidence = _evidence(book, area, words, fault, has_estado=estado_id is not None)
        if of_estado:
            evidence["estado_unknown" if estado_id is None else "estado_misspelt"] = 1.0
        faults = tuple(one for one in (of_estado, fault) if one)
        found.append(AreaCandidate(area.id, book.label(area.id), faults, evidence))
    return found


def seat_candidate(book: AreaBook, text: str, id_: int, *, has_estado: bool) -> AreaCandidate:
    """Return a municipio whose cabecera has the name in a text."""
    fault = differ(Reason.SEAT, text, book.municipios[id_])
    evidence = {"name_of_seat" if has_estado else "name_of_seat_without_estado": 1.0, "penalty": fault.penalty}
    return AreaCandidate(id_, book.label(id_), (fault,), evidence)


def decide_with_key(
    book: AreaBook, found: Sequence[AreaCandidate], key: int, row: MatchRow, sure: float
) -> MatchResult:
    """Return the result for a row with the key of an area, and candidates for its name.

    The key decides where the name, the estado and `cve_mun` may be those of its area. Otherwise the area with the key
    comes first, and nothing is certain.
    """
    kind = kind_of_key(key)
    written = format_key(kind, key)
    if key not in (book.estados if kind == "estado" else book.municipios):
        unknown = differ(Reason.UNKNOWN_KEY, written)
        return decide([one._replace(faults=(*one.faults, unknown)) for one in found], sure)
    text, faults = row.nombre, tuple(_contradictions(book, row, key)) if kind == "municipio" else ()
    own = AreaCandidate(key, book.label(key), faults, {"same_name": 1.0})
    if agreeing := [one for one in found if one.id == key]:
        others = (fault for fault in agreeing[0].faults if not faults or fault.reason is not Reason.ESTADO)
        return decide([own._replace(faults=(*faults, *others))], sure, is_doubtful=bool(faults))
    if not text:
        return decide([own], sure, is_doubtful=bool(faults))
    nombre = book.estados[key] if kind == "estado" else book.municipios[key]
    is_called = bool(faults) and any(one.id == key for one in municipality_candidates(book, text))
    if not is_called:
        own = own._replace(faults=(*faults, differ(Reason.NAME, text, nombre)))
    fault = differ(Reason.KEY, written)
    named = [one._replace(faults=(*one.faults, fault)) for one in found]
    return decide([own, *named], sure, is_doubtful=True)


def _contradictions(book: AreaBook, row: MatchRow, key: int) -> Iterator[Difference]:
    """Yield the faults of the estado and the `cve_mun` of a row that are not those of the municipio with its key."""
    estado_id = state_of(key)
    if row.estado and book.find_state(row.estado) != estado_id:
        yield differ(Reason.ESTADO, row.estado, book.estados[estado_id])
    other = book.find_by_key(row.cve_mun, estado_id) or book.find_by_key(row.cve_mun, None)
    if row.cve_mun and other not in {None, key}:
        yield differ(Reason.KEY, row.cve_mun, book.municipios[key])


def _name_fault(area: Area, text: str, nombre: str) -> Difference | None:
    if area.former:
        unlike = round(max(0.0, weights.NEARLY_SAME_NAME - area.likeness), 2)
        return Difference(Reason.FORMER_NAME, text, nombre, weights.FORMER_AREA_PENALTY + unlike)
    if area.likeness < weights.SAME_NAME:
        reason = Reason.TITLE if area.likeness == weights.SAME_UNTITLED_NAME else Reason.SPELLING
        return Difference(reason, text, nombre, round(weights.SAME_NAME - area.likeness, 2))
    return None


def _evidence(
    book: AreaBook, area: Area, words: tuple[str, ...], fault: Difference | None, *, has_estado: bool
) -> dict[str, float]:
    """Return the evidence that an area is the one with a name of these words."""
    if fault is None:
        return {"same_name": 1.0}
    name = "other_name"
    if fault.reason is Reason.TITLE:
        name = "untitled_name"
    elif fault.reason is Reason.SPELLING:
        found = untitled(book.words[area.id])
        if " ".join(found).startswith(" ".join(words)):
            name = "beginning_of_name"
        elif set(words) < set(found) or set(found) < set(words):
            name = "part_of_name"
    return {name if has_estado else f"{name}_without_estado": 1.0, "penalty": fault.penalty}


def decide(found: Sequence[AreaCandidate], sure: float, *, is_doubtful: bool = False) -> MatchResult:
    """Return the result, with probabilities as scores; only a single candidate is certain.

    Of equally likely candidates, the first of a doubtful row stays the first.
    """
    if not found:
        return MatchResult("none")
    likely = shares(
        [sum(weights.AREA_COEFFICIENTS[name] * value for name, value in one.evidence.items()) for one in found]
    )
    ranked = sorted(zip(likely, found, strict=True), key=lambda item: (-item[0], is_doubtful or item[1].id))
    candidates = tuple(Candidate(one.id, one.label, round(100 * share, 2), one.faults) for share, one in ranked)
    is_doubtful = is_doubtful or len(found) > 1 or "estado_unknown" in found[0].evidence
    result = outcome(ranked[0][0], is_doubtful=is_doubtful, is_literal=not candidates[0].faults, sure=sure)
    return MatchResult(result, candidates)
