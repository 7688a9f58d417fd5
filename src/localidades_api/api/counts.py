"""Counts of localities: how many there are, and how many live there, by area, ambito or size."""

from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api.declarations import CACHEABLE
from localidades_api.api.params import NegotiatedQuery, ReleaseParam
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import DatabaseDep, NamesDep, PositionsDep, ReleasesDep
from localidades_api.catalogue.filters import LocalityFilters, Omittable
from localidades_api.catalogue.keys import PlaceKind, format_key
from localidades_api.database.queries.counts import SIZES, Group, list_counts
from localidades_api.downloads.changes import csv_of
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.html.renderer import FORMATS

router = APIRouter(prefix="/localidades", tags=["Localities"], responses=CACHEABLE)

_CSV = FILE_TYPES["csv"].media_type
_NAMES: Mapping[str, Mapping[Any, str]] = {
    "ambito": {"U": "Urbana", "R": "Rural"},
    "tamano": {
        0: "0",
        **{least: f"{least:,} a {above - 1:,}" for least, above in pairwise(SIZES[1:])},
        SIZES[-1]: f"{SIZES[-1]:,} y más",
    },
}


class CountsQuery(LocalityFilters, NegotiatedQuery):
    """The parameters of counts: the filters of the list, and what is counted by."""

    by: Group = Field(
        default="estado",
        description="Groups: by `municipio`, `estado`, `ambito`, or size in INEGI's classes (`tamano`).",
        examples=["municipio"],
    )
    format: Omittable[Literal["json", "api", "csv"]] = Field(
        default=None, description="Representation, which overrides the Accept header.", examples=["json"]
    )
    release: ReleaseParam = None


class LocalityCount(BaseModel):
    """The localities and inhabitants of one area, ambito or size."""

    id: int | str | None = Field(
        description="Key of the area; `U` or `R`; or the least inhabitants of a size. Null for localities without it.",
        examples=[14],
    )
    cvegeo: str | None = Field(description="The key with its zeros; null for an ambito or a size.", examples=["14"])
    nombre: str | None = Field(description="Name of the area, the ambito or the size.", examples=["Jalisco"])
    localidades: int = Field(description="Number of localities.", examples=[10946])
    poblacion: int | None = Field(
        description="Their inhabitants, as far as they are known; null if no population is.", examples=[7844830]
    )


class LocalityCounts(BaseModel):
    """Counts in the order of their ids, without groups that have no localities."""

    quantity: int = Field(description="How many results there are.", ge=0, examples=[32])
    results: list[LocalityCount]


@router.get("/counts/", summary="Count localities", response_model=LocalityCounts)
async def count_localities(
    request: Request,
    query: Annotated[CountsQuery, Query()],
    releases: ReleasesDep,
    database: DatabaseDep,
    positions: PositionsDep,
    names: NamesDep,
) -> Response:
    """Count the localities that the filters of the list choose, and their inhabitants, by area, ambito or size."""
    formats = {**FORMATS, _CSV.partition(";")[0]: "csv"}
    builder = await ResponseBuilder.begin(request, query, releases, name=query.release, formats=formats)
    release = builder.release
    async with names.using(release) if query.search is not None else nullcontext() as index:
        if index:
            builder.depend_on(index)
        builder.check_modified()
        among = await positions.get(release, query, names=index) if index else None
    rows = await list_counts(database, release, query.by, query, among)
    results = [_describe(row, query.by) for row in rows]
    if builder.format == "csv":
        table = csv_of([LocalityCount.model_fields, *(result.values() for result in results)])
        return builder.represent().respond(table, {"Content-Type": _CSV})
    content = {"quantity": len(results), "results": results}
    listed = [(row, query.chosen | _filters_of(row.key, query)) for row in rows] if builder.wants_html else []
    return builder.answer("counts.html", "Counts", content, rows=listed, by=query.by, chosen=query.chosen)


def _describe(row: Row[Any], by: Group) -> dict[str, Any]:
    if by in _NAMES:
        cvegeo, nombre = None, _NAMES[by].get(row.key)
    else:
        cvegeo, nombre = format_key(cast("PlaceKind", by), row.key), row.nombre
    figures = {"localidades": row.localidades, "poblacion": row.poblacion}
    return {"id": row.key, "cvegeo": cvegeo, "nombre": nombre, **figures}


def _filters_of(key: Any, query: CountsQuery) -> dict[str, str]:  # noqa: ANN401  # a key or a size
    """Return the filters that choose the localities of one count, together with those of the query."""
    if query.by != "tamano":
        return {"ambito" if query.by == "ambito" else f"{query.by}_id": str(key)}
    filters = {"poblacion_min": str(max(key or 0, query.poblacion_min or 0))}
    if above := next((size for size in SIZES if size > (key or 0)), None):
        most = above - 1 if query.poblacion_max is None else min(above - 1, query.poblacion_max)
        filters["poblacion_max"] = str(most)
    return filters
