"""Compares the municipio that a row names with that of its point."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from localidades_api.bulk.answers import Point, describe_fault, point_of
from localidades_api.bulk.input_rows import Answer, Cells, Row
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, kind_of_key
from localidades_api.names.faults import Difference, NameFault
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchResult, MatchRow, read_key

_MAX_DIGITS = 5  # of the key of a municipio
_CACHED = 2500  # the municipios of the country

AreaMatcher: TypeAlias = Callable[[MatchRow], MatchResult]


def area_matcher(index: NameIndex) -> AreaMatcher:
    """Return what matches municipios for `judge`: many rows name the same one."""
    return lru_cache(_CACHED)(index.match)


def judge(cells: Cells, found: int | None, match: AreaMatcher) -> tuple[bool | None, str | None]:
    """Return whether the row's own municipio is `found`, and a note if it can't be decided.

    None if the row names no municipio. Names are read as the matcher reads them; the likeliest of several counts if
    none is certain, unless the point lies in another one that the name may mean.
    """
    key = _text(cells, "cvegeo")
    if key and (number := read_key(key)) is not None:
        municipio_id = number // KEYS_OF_A_MUNICIPIO if len(key) > _MAX_DIGITS else number
        return municipio_id == found, None
    municipio, estado, cve_mun = (_text(cells, role) for role in ("municipio", "estado", "cve_mun"))
    if not municipio and not cve_mun:
        return None, None
    result = match(MatchRow(municipio, estado=estado, cve_mun=cve_mun, kind="municipio"))
    if result.id is not None:
        return result.id == found, None
    if any(one.id == found for one in result.candidates):
        return True, None
    return (False, None) if result.candidates else (None, "Its municipio is not in the catalogue.")


async def judge_points(
    answered: Sequence[tuple[Row, Answer]],
    find_municipios: Callable[[Sequence[Point]], Awaitable[Sequence[int | None]]],
    match_area: AreaMatcher,
    match: Callable[[Row], Answer],
    match_as_doubt: Callable[[Row], Answer],
) -> Sequence[tuple[Row, Answer]]:
    """Return the answers to rows, changed where the municipio of a locality's point says more.

    An ambiguous row that names no municipio is matched again in that of its point. A place in another municipio than
    the point has a fault, and its row is matched so that no place is certain.
    """
    points = {
        at: point
        for at, (row, _) in enumerate(answered)
        if row.kind in {None, "localidad"} and isinstance(point := point_of(row), tuple)
    }
    judged = list(answered)
    for at, found in zip(points, await find_municipios([*points.values()]) if points else (), strict=True):
        row, answer = answered[at]
        if found is not None:
            if answer["outcome"] == "ambiguous" and judge(row.cells, found, match_area) == (None, None):
                key = format_key("municipio", found)
                again = match(row._replace(cells={**row.cells, "municipio": key}))
                answer = again if again["cvegeo"] else answer
            if _is_elsewhere(answer, found):
                answer = match_as_doubt(row)
            judged[at] = row, _with_fault(answer, found, match_area)
    return judged


def _with_fault(answer: Answer, found: int, match_area: AreaMatcher) -> Answer:
    """Return an answer whose places have a fault if they are not in the municipio `found`."""

    def compare(place: Answer) -> Answer:
        if not _is_elsewhere(place, found):
            return place
        key = format_key("municipio", found)
        area = match_area(MatchRow(cvegeo=key, kind="municipio")).best
        fault = NameFault(Difference.POINT, area.label if area else key, "", 0)
        return {**place, "faults": [*place["faults"], describe_fault(fault)]}

    candidates = [compare(one) for one in answer["candidates"]]
    faults = candidates[0]["faults"] if answer["outcome"] == "ambiguous" else answer["faults"]  # of the likeliest
    return {**answer, "faults": faults, "candidates": candidates}


def _is_elsewhere(place: Answer, municipio_id: int) -> bool:
    id_ = place["id"]
    is_locality = id_ is not None and kind_of_key(id_) == "localidad"
    return is_locality and id_ // KEYS_OF_A_MUNICIPIO != municipio_id


def _text(cells: Cells, role: str) -> str | None:
    value = cells.get(role)
    return None if value is None else str(value)
