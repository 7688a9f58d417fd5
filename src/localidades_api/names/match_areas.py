"""Matches the name of an estado or a municipio to its key."""

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_STATE
from localidades_api.names.areas import Area, AreaBook, state_names, state_of_code
from localidades_api.names.normalize import repair
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.rows import Candidate, MatchResult, NameFault

_SAME = 100.0  # likeness of a name that is the one given
_CERTAIN_MARGIN = 5.0  # points that the next area must be behind
_FORMER = 2.0
_MISSPELT_STATE = 15.0
_UNKNOWN_STATE = 18.0


def match_state(book: AreaBook, text: str) -> MatchResult:
    """Return the estado that a text names, by any of its names, its abbreviation, its code or its key."""
    text = text[:MAX_TEXT]
    found = book.find_state(text)
    if found is None:
        return _decide([])
    nombre, folded = book.estados[found], fold(repair(text))
    names = {name.replace(" ", "") for name in state_names(found, nombre)}
    is_same = folded.isdigit() or folded.replace(" ", "") in names or state_of_code(folded) == found
    faults = () if is_same else (NameFault("spelling", text, nombre, _MISSPELT_STATE),)
    return _decide([_candidate(found, nombre, faults)])


def match_municipality(book: AreaBook, text: str, estado: str | None = None) -> MatchResult:
    """Return the municipio that a text names; its estado may be given, or follow a comma."""
    text = text[:MAX_TEXT]
    name, _, last = (part.strip() for part in text.rpartition(","))
    if estado is None and name and book.find_state(last) is not None:
        text, estado = name, last
    estado_id = book.find_state(estado[:MAX_TEXT]) if estado else None
    unknown = (NameFault("estado", estado, "", _UNKNOWN_STATE),) if estado and estado_id is None else ()
    areas = [area for area in book.find_municipios(text, estado_id) if area.id in book.municipios]
    return _decide([_municipality(book, area, text, unknown) for area in areas])


def _municipality(book: AreaBook, area: Area, text: str, unknown: tuple[NameFault, ...]) -> Candidate:
    nombre = book.municipios[area.id]
    faults = unknown
    if area.former:
        faults += (NameFault("former_name", text, nombre, _FORMER + round(max(0.0, _SAME - 1 - area.likeness), 2)),)
    elif area.likeness < _SAME:
        faults += (NameFault("spelling", text, nombre, round(_SAME - area.likeness, 2)),)
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
    if margin < _CERTAIN_MARGIN or best.score < _SAME - _FORMER:
        return MatchResult("ambiguous", best, margin, tuple(candidates))
    return MatchResult("sure" if best.faults else "exact", best, margin, tuple(candidates))
