"""Compares the municipio that a row names with that of its point."""

import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from localidades_api.bulk.answers import NOT_IN_MEXICO, Point, describe_fault, point_of
from localidades_api.bulk.earlier import DECIDED
from localidades_api.bulk.input_rows import Answer, Cells, Row, RowError
from localidades_api.catalogue.coordinates import is_in_mexico
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, kind_of_key
from localidades_api.names.index import NameIndex
from localidades_api.names.reasons import Reason, differ
from localidades_api.names.rows import MatchResult, MatchRow, read_key

_MAX_DIGITS = 5  # of the key of a municipio
_CACHED = 2500  # the municipios of the country

AreaMatcher: TypeAlias = Callable[[MatchRow], MatchResult]


def area_matcher(index: NameIndex) -> AreaMatcher:
    """Return what matches municipios for `judge`: many rows name the same one."""
    return lru_cache(_CACHED)(index.match)


def judge(row: Row, found: int | None, known: Collection[int], match: AreaMatcher) -> tuple[bool | None, str | None]:
    """Return whether the row's own municipio is `found`, and a note if it can't be decided.

    None if the row names no municipio. Names are read as the matcher reads them; if none is certain, any of several may
    be meant. `known` are the municipios of both the borders and the release: one may be older than the other, and the
    borders may be those of a few estados.
    """
    own, point = _own(row.cells, match), point_of(row)
    if own is None:
        return None, None
    if isinstance(point, RowError) or not is_in_mexico(*point):
        return None, NOT_IN_MEXICO
    if found in own:
        return True, None
    if own and all(one is None or one in known for one in (*own, found)):
        return False, None
    return None, "The release or the outlines lack its municipio, or that of its point."


def _own(cells: Cells, match: AreaMatcher) -> Sequence[int] | None:
    """Return the keys of the municipios that a row may name; None if it names none."""
    key = _text(cells, "cvegeo")
    if key and (number := read_key(key)) is not None:
        return [number // KEYS_OF_A_MUNICIPIO if len(key) > _MAX_DIGITS else number]
    municipio, estado, cve_mun = (_text(cells, role) for role in ("municipio", "estado", "cve_mun"))
    if not municipio and not cve_mun:
        return None
    result = match(MatchRow(municipio, estado=estado, cve_mun=cve_mun, kind="municipio"))
    return [one.id for one in result.candidates] if result.id is None else [result.id]


async def judge_points(
    find_municipios: Callable[[Sequence[Point]], Awaitable[Sequence[Any]]],  # rows with an `id`
    known: Collection[int],
    match_area: AreaMatcher,
    match: Callable[..., Answer],  # as `match_row` without an index
    answered: Sequence[tuple[Row, Answer]],
) -> Sequence[tuple[Row, Answer]]:
    """Return the answers to rows, changed where the municipio of a locality's point says more.

    An ambiguous row that names no municipio is matched again in that of its point. A place in another municipio than
    the point has a fault, and its row is matched so that no place is certain. Both municipios must be `known`.
    """
    points = {
        at: point
        for at, (row, answer) in enumerate(answered)
        if row.kind in {None, "localidad"}
        and isinstance(point := point_of(row), tuple)
        and answer["outcome"] not in DECIDED
    }
    judged = list(answered)
    for at, (found, *_) in zip(points, await find_municipios([*points.values()]) if points else (), strict=True):
        row, answer = answered[at]
        if found in known:
            if answer["outcome"] == "ambiguous" and _own(row.cells, match_area) is None:
                key = format_key("municipio", found)
                again = match(row._replace(cells={**row.cells, "municipio": key}))
                answer = again if again["cvegeo"] else answer
            if _is_elsewhere(answer, found, known):
                answer = match(row, sure=math.inf)
            judged[at] = row, _with_fault(answer, found, known, match_area)
    return judged


def _with_fault(answer: Answer, found: int, known: Collection[int], match_area: AreaMatcher) -> Answer:
    """Return an answer whose places have a fault if they are not in the municipio `found`."""

    def compare(place: Answer) -> Answer:
        if not _is_elsewhere(place, found, known):
            return place
        key = format_key("municipio", found)
        area = match_area(MatchRow(cvegeo=key, kind="municipio")).best
        fault = differ(Reason.POINT, area.label if area else key)
        return {**place, "faults": [*place["faults"], describe_fault(fault)]}

    candidates = [compare(one) for one in answer["candidates"]]
    faults = candidates[0]["faults"] if answer["outcome"] == "ambiguous" else answer["faults"]  # of the likeliest
    return {**answer, "faults": faults, "candidates": candidates}


def _is_elsewhere(place: Answer, municipio_id: int, known: Collection[int]) -> bool:
    id_ = place["id"]
    own = id_ // KEYS_OF_A_MUNICIPIO if id_ is not None and kind_of_key(id_) == "localidad" else None
    return own in known and own != municipio_id


def _text(cells: Cells, role: str) -> str | None:
    value = cells.get(role)
    return None if value is None else str(value)
