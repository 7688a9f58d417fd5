"""Compares the municipio that a row names with that of its point."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from localidades_api.bulk.answers import Point, point_of
from localidades_api.bulk.input_rows import Answer, Cells, Row
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchResult, MatchRow, read_key

_MAX_DIGITS = 5  # of the key of a municipio
_CACHED = 2500  # the municipios of the country

AreaMatcher: TypeAlias = Callable[[MatchRow], MatchResult]


def area_matcher(index: NameIndex) -> AreaMatcher:
    """Return what matches municipios for `judge`: many rows name the same one."""
    return lru_cache(_CACHED)(index.match)


def judge(cells: Cells, found: int | None, match: AreaMatcher) -> tuple[bool | None, str | None]:
    """Return whether the row's own municipio is `found`, and a note if nobody can know.

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
) -> Sequence[tuple[Row, Answer]]:
    """Return the answers to rows, changed where the municipio of a locality's point says more.

    A row that names another municipio gets a sentence that says so. An ambiguous row that names none is matched again
    in the municipio of its point.
    """
    points = {
        at: point
        for at, (row, _) in enumerate(answered)
        if row.kind in {None, "localidad"} and isinstance(point := point_of(row), tuple)
    }
    judged = list(answered)
    for at, found in zip(points, await find_municipios([*points.values()]) if points else (), strict=True):
        row, answer = answered[at]
        if found is not None and answer["outcome"] != "problem":
            judged[at] = row, _judge_answer(row, answer, found, match_area, match)
    return judged


def _judge_answer(
    row: Row, answer: Answer, found: int, match_area: AreaMatcher, match: Callable[[Row], Answer]
) -> Answer:
    agrees, note = judge(row.cells, found, match_area)
    key = format_key("municipio", found)
    if agrees is False:
        there = match_area(MatchRow(cvegeo=key, kind="municipio")).best
        name = f"{there.label} ({key})" if there else key
        sentence = f"Its coordinates are in {name}, not in the municipio that it names."
        return {**answer, "problem": " ".join(filter(None, (answer["problem"], sentence)))}
    if agrees is None and note is None and answer["outcome"] == "ambiguous":
        again = match(row._replace(cells={**row.cells, "municipio": key}))
        return again if again["cvegeo"] else answer
    return answer


def _text(cells: Cells, role: str) -> str | None:
    value = cells.get(role)
    return None if value is None else str(value)
