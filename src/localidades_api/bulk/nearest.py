"""Finds the places nearest to the points of rows."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from localidades_api.bulk.cells import RowError
from localidades_api.bulk.rows import Answer, Row

Point: TypeAlias = tuple[float, float]  # latitude and longitude, in degrees


async def answer_points(
    rows: Sequence[Row], find: Callable[[Sequence[Point]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]
) -> list[tuple[Row, Answer]]:
    """Answer rows with the places that `find` returns for each of their points, the nearest first."""
    points = [_point_of(row) for row in rows]
    found = iter(await find([point for point in points if isinstance(point, tuple)]))
    return [
        (row, _describe(next(found) if isinstance(point, tuple) else point))
        for row, point in zip(rows, points, strict=True)
    ]


def _point_of(row: Row) -> Point | RowError:
    latitud, longitud = row.cells.get("latitud"), row.cells.get("longitud")
    if row.problem is None and isinstance(latitud, float) and isinstance(longitud, float):
        return latitud, longitud
    return RowError(row.problem or row.note or "Give both `latitud` and `longitud`.")


def _describe(found: Sequence[Mapping[str, Any]] | RowError) -> Answer:
    if isinstance(found, RowError):
        return {"results": [], "problem": str(found)}
    return {"results": found, "problem": None}
