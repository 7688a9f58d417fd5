"""Answers rows: the key of each name, or the places nearest to each point."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from localidades_api.bulk.earlier import CERTAIN, DECIDED, EarlierAnswer
from localidades_api.bulk.input_rows import Answer, Cells, Row, RowError
from localidades_api.bulk.roles import POINT
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.coordinates import is_in_mexico
from localidades_api.catalogue.keys import KINDS, PlaceKind, format_key, is_rounded_key, locality_of_ageb, state_of
from localidades_api.names.fields import read_fields
from localidades_api.names.index import NameIndex
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.reading.text import explain_filler, is_filler
from localidades_api.names.reasons import Difference
from localidades_api.names.rows import Candidate, MatchResult, MatchRow
from localidades_api.names.weights import SURE

_KINDS_OF_SHORT_KEYS: Mapping[int, PlaceKind] = {1: "estado", 2: "estado", 4: "municipio", 5: "municipio"}
NOT_IN_MEXICO = "`latitud` and `longitud` are not in Mexico."
_WITHOUT_POINT = "The row was matched without its coordinates."
_MAX_SHOWN = 100  # characters of a cell
_SHORT_KEY_DIGITS = 8  # without its leading zero, which spreadsheets drop


def match_row(row: Row, index: NameIndex, sure: float = SURE, fields: Collection[str] = MATCHED_BY_DEFAULT) -> Answer:
    """Return the answer to a row; a match is certain if its probability is at least `sure`.

    The answer and its candidates have the columns in `fields`. A row that can't be read or matched has the outcome
    `problem`. Decisions that people made in a file that comes back are kept.
    """
    answer = _match(row, index, sure, fields)
    if row.cells.get("latitud") is not None and isinstance(point := point_of(row), tuple) and is_in_mexico(*point):
        answer = {**answer, "point": dict(zip(POINT, point, strict=True))}
    return answer if row.earlier is None else _decide(answer, row.earlier, row.kind, index, fields)


def _match(row: Row, index: NameIndex, sure: float, fields: Collection[str]) -> Answer:
    if row.problem is not None:
        return describe_problem(row.problem, fields)
    try:
        cells = row.cells if row.kind else _read_clave(row.cells, index.areas)
        asked, note = match_cells(cells, row.kind)
        result = index.match(asked, sure)
        if not note and asked.nombre and is_filler(asked.nombre):
            note = explain_filler(asked.nombre)
        is_localidad = asked.kind == "localidad"
        if is_localidad and result.outcome == "none" and not note and index.areas.find_state(asked.nombre or ""):
            note = "Its `nombre` is that of an estado, and no locality has it."
        return with_note({**describe_match(result, index, fields), "problem": note}, row)
    except RowError as error:
        return describe_problem(str(error), fields)


def _decide(
    answer: Answer, earlier: EarlierAnswer, kind: PlaceKind | None, index: NameIndex, fields: Collection[str]
) -> Answer:
    """Return the answer to a row with the place that a person has chosen, or whose key somebody has typed.

    Its candidates are then the places that the row may mean. The key of a row that was certain is the service's own,
    unless the row still is and the key differs.
    """
    was_certain = earlier.code in CERTAIN
    if was_certain and answer["cvegeo"] is None:
        return answer
    candidates = answer["candidates"]
    if answer["cvegeo"] is not None:
        candidates = [{name: answer[name] for name in ("cvegeo", "id", "label", *fields, "score", "faults")}]
    problem = None if answer["outcome"] == "problem" else answer["problem"]
    decided = {**_blank(fields), **{name: answer[name] for name in ("withdrawn", "point")}, "candidates": candidates}
    if not earlier.key:
        return {**decided, "outcome": "rejected", "problem": problem}
    place = _find_place(earlier.digits, kind, index)
    if place is None:
        note = f"`{earlier.key[:_MAX_SHOWN]}` is not the key of such a place: it was left out."
        return {**answer, "problem": " ".join(filter(None, (note, answer["problem"])))}
    if was_certain and place.id == answer["id"]:
        return answer
    is_accepted = earlier.code == "accepted"
    typed = None if earlier.code in DECIDED else "Its key was typed into the file of an earlier answer."
    return decided | {
        **_describe_candidate(place, index, fields),
        "outcome": "accepted" if is_accepted else "chosen",
        "score": earlier.percentage if is_accepted else None,
        "faults": [],
        "problem": " ".join(filter(None, (typed, problem))) or None,
    }


def _find_place(key: str, kind: PlaceKind | None, index: NameIndex) -> Candidate | None:
    with suppress(RowError):
        result = index.match(match_cells({"cvegeo": key or None}, kind)[0])
        return None if result.id is None else result.best
    return None


def answer_sample(index: NameIndex, rows: Sequence[Row]) -> list[Answer]:
    """Return the answers by which columns are found (`columns`), whatever is asked of the match."""
    return [match_row(row, index) for row in rows]


def _read_clave(cells: Cells, areas: AreaBook) -> Cells:
    """Return the cells of a row with its clave as the key of a municipio, if it is one: five digits, or without a zero.

    Four digits are one if the row names no other municipio: few places have the digits of their municipio as a clave.
    """
    municipio, estado, clave = (str(cells.get(role) or "") for role in ("municipio", "estado", "clave"))
    if not _is_key(clave, "municipio") or _KINDS_OF_SHORT_KEYS.get(len(clave)) != "municipio":
        return cells
    key = int(clave)
    is_whole = len(clave) == KINDS["municipio"].digits
    is_there = key in areas.municipios and (not estado or areas.find_state(estado) == state_of(key))
    is_named = not municipio or any(one.id == key for one in areas.find_municipios(municipio, state_of(key)))
    is_short = not clave.startswith("0") and is_there and is_named
    return {**cells, "cvegeo": clave, "clave": None} if is_whole or is_short else cells


def with_note(answer: Answer, row: Row) -> Answer:
    """Return the answer to a row, and a note about the cells that were ignored."""
    if row.note is None or answer["outcome"] == "problem":
        return answer
    sentences = row.note, _WITHOUT_POINT, answer["problem"]
    return {**answer, "problem": " ".join(filter(None, sentences))}


def match_cells(cells: Cells, kind: PlaceKind | None = "localidad") -> tuple[MatchRow, str | None]:
    """Return the row to match, and a note about cells that were not read as their columns say.

    A row of no known `kind` is about what its key belongs to. Raise RowError if it has neither a name nor a key.
    """
    row = MatchRow(**cells)  # type: ignore[arg-type]  # the readers of ROLES return what it has
    if kind is None:
        kind = _KINDS_OF_SHORT_KEYS.get(len(row.cvegeo or ""), "localidad")
    if kind != "localidad":
        return _area_row(row, kind)
    if note := _refuse_point(row):
        asked, other = _match_key(row._replace(latitud=None, longitud=None))
        return asked, " ".join(filter(None, (note, _WITHOUT_POINT, other)))
    return _match_key(row)


def _refuse_point(row: MatchRow) -> str | None:
    if row.latitud is None and row.longitud is None:
        return None
    if row.latitud is None or row.longitud is None:
        return "`latitud` and `longitud` belong together: give both, or neither."
    return None if is_in_mexico(row.latitud, row.longitud) else NOT_IN_MEXICO


def _match_key(row: MatchRow) -> tuple[MatchRow, str | None]:
    """Return the row with the key that it is matched by, and a note about one that was not read as its column says."""
    if row.cvegeo is not None:
        if (of_locality := locality_of_ageb(row.cvegeo)) is not None:
            return row._replace(
                cvegeo=of_locality
            ), "`cvegeo` has the key of an AGEB or a block: its locality's was used."
        if row.nombre is None or _is_key(row.cvegeo):
            _check_key("cvegeo", row.cvegeo)
            return _with_area_of_key(row, row.cvegeo)
        asked, note = _match_key(row._replace(cvegeo=None))
        return asked, " ".join(filter(None, (_explain_left_out("cvegeo", row.cvegeo), note)))
    if row.clave is not None and (row.nombre is None or _is_key(row.clave)):
        return _with_clave(row, row.clave), None
    if row.nombre is None:
        filler = next(filter(is_filler, (row.municipio, row.estado)), None)  # such as the `Total` below a table
        if filler is None:
            raise RowError("Its `nombre` is empty, and it has no key to go by.")
        return MatchRow(filler), None
    return row._replace(clave=None), None if row.clave is None else _explain_left_out("clave", row.clave)


def _explain_left_out(role: str, key: str) -> str:
    if is_rounded_key(key):
        return f"A spreadsheet has rounded `{role}`: the row was matched without it."
    return f"`{role}` is not a key: the row was matched without it."


def _area_row(row: MatchRow, kind: PlaceKind) -> tuple[MatchRow, str | None]:
    """Return a row about an area, and a note as above; raise RowError if it has neither its name nor its key."""
    if kind == "estado":
        row = MatchRow(row.estado or row.nombre, cvegeo=row.cvegeo, kind=kind)
    else:
        nombre = row.municipio or row.nombre
        row = MatchRow(nombre, estado=row.estado, cvegeo=row.cvegeo, cve_mun=row.cve_mun, kind=kind)
    if row.nombre is None and row.cvegeo is None:
        raise RowError(f"Its `{kind}` is empty, and it has no key to go by.")
    if row.cvegeo is None or _is_key(row.cvegeo, kind):
        return row, None
    if row.nombre is None or _is_key(row.cvegeo):
        raise RowError(f"`cvegeo` must be the key of its `{kind}`; leave it empty to go by the name.")
    return row._replace(cvegeo=None), _explain_left_out("cvegeo", row.cvegeo)


def _with_clave(row: MatchRow, clave: str) -> MatchRow:
    """Return a row with a clave, which may be a whole key; raise RowError if it has nothing else to go by."""
    _check_key("clave", clave)
    if len(clave) >= _SHORT_KEY_DIGITS:
        return row._replace(cvegeo=clave)
    is_of_municipio = len(clave) <= KINDS["localidad"].clave_digits
    if row.nombre is None and is_of_municipio and row.municipio is None:
        raise RowError("Its `clave` is that of a place in a municipio: give the `municipio` as well.")
    if row.nombre is None and not is_of_municipio and row.estado is None:
        raise RowError("Its `clave` has the keys of a municipio and a place: give the `estado` as well.")
    return row


def _with_area_of_key(row: MatchRow, key: str) -> tuple[MatchRow, str | None]:
    """Read a key that is too short for a locality as that of an area, as in tables of municipios."""
    kind = _KINDS_OF_SHORT_KEYS.get(len(key))
    if kind is None:
        return row, None
    if row.nombre is None:
        raise RowError(f"`cvegeo` has the key of its `{kind}`; that of a locality has nine digits.")
    if getattr(row, kind) is not None:
        return row._replace(cvegeo=None), f"`cvegeo` has the key of its `{kind}`, not of a locality: it was left out."
    there = row._replace(estado=key) if kind == "estado" else row._replace(municipio=key)
    note = f"`cvegeo` has the key of its `{kind}`, not of a locality: the row was matched by its name there."
    return there._replace(cvegeo=None), note


def _is_key(key: str, kind: PlaceKind = "localidad") -> bool:
    return key.isdecimal() and key.isascii() and len(key) <= KINDS[kind].digits


def _check_key(role: str, key: str) -> None:
    if is_rounded_key(key):
        raise RowError(f"A spreadsheet has rounded `{role}`: format it as text there, and enter it again.")
    if not _is_key(key):
        raise RowError(f"`{role}` must be a key of nine digits at most; leave it empty to go by the name.")


def describe_match(result: MatchResult, index: NameIndex, fields: Collection[str]) -> Answer:
    """Return a result as JSON: the place if it is certain, otherwise the candidates."""
    answer = {**_blank(fields), "outcome": result.outcome}
    if result.best:
        likeliest = _describe_candidate(result.best, index, fields)
        is_certain = result.id is not None
        answer |= likeliest if is_certain else {name: likeliest[name] for name in ("score", "faults")}
        answer["margin"] = result.margin
    if result.id is None:
        answer["candidates"] = [_describe_candidate(one, index, fields) for one in result.candidates]
    if result.withdrawn is not None:
        answer["withdrawn"] = format_key("localidad", result.withdrawn)
    return answer


def _describe_candidate(candidate: Candidate, index: NameIndex, fields: Collection[str]) -> Answer:
    return {
        "cvegeo": candidate.cvegeo,
        "id": candidate.id,
        "label": candidate.label,
        **read_fields(index, candidate.id, fields, candidate.row),
        "score": candidate.score,
        "faults": [describe_fault(fault) for fault in candidate.faults],
    }


def describe_fault(fault: Difference) -> Answer:
    """Return a fault as JSON."""
    return {"code": fault.code, "given": fault.given, "found": fault.found, "penalty": fault.penalty}


def describe_problem(sentence: str, fields: Collection[str] = MATCHED_BY_DEFAULT) -> Answer:
    """Return the answer to a row that can't be read."""
    return {**_blank(fields), "outcome": "problem", "problem": sentence}


def _blank(fields: Collection[str]) -> dict[str, Any]:
    """Return the members of an answer in their order, none of them known."""
    place = dict.fromkeys(("outcome", "cvegeo", "id", "label", *fields, "score", "margin"))
    return {**place, "faults": [], "candidates": [], "withdrawn": None, "problem": None, "point": None}


Point: TypeAlias = tuple[float, float]  # latitude and longitude, in degrees


async def answer_points(
    rows: Sequence[Row], find: Callable[[Sequence[Point]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]
) -> list[tuple[Row, Answer]]:
    """Answer rows with the places that `find` returns for each of their points, the nearest first."""
    points = [point_of(row) for row in rows]
    found = iter(await find([point for point in points if isinstance(point, tuple)]))
    return [
        (row, _describe(next(found) if isinstance(point, tuple) else point))
        for row, point in zip(rows, points, strict=True)
    ]


def point_of(row: Row) -> Point | RowError:
    """Return the point of a row, or why it has none."""
    latitud, longitud = row.cells.get("latitud"), row.cells.get("longitud")
    if row.problem is None and isinstance(latitud, float) and isinstance(longitud, float):
        return latitud, longitud
    return RowError(row.problem or row.note or "Give both `latitud` and `longitud`.")


def _describe(found: Sequence[Mapping[str, Any]] | RowError) -> Answer:
    if isinstance(found, RowError):
        return {"results": [], "problem": str(found)}
    return {"results": found, "problem": None}
