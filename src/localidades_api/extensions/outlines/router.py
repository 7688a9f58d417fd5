"""The municipio of a point, and the outlines of municipios and estados, also at the addresses of INEGI's wscatgeo."""

import re
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import model_validator
from pydantic_core import PydanticCustomError, to_json
from sqlalchemy import Row as Record
from starlette.responses import Response

from localidades_api.api.areas import MunicipalityId, StateId
from localidades_api.api.bulk import BulkQuery, Column, Subject, described, respond
from localidades_api.api.params import PointQuery, StrictQuery, check_request
from localidades_api.api.responses import CACHEABLE, ERRORS, NEGOTIATED, ResponseBuilder, Responses, problem
from localidades_api.api.services import BulkTurnDep, DatabaseDep, NamesDep, ReleasesDep, TransfersDep
from localidades_api.bulk.answer_columns import AnswerColumns, plain, truth
from localidades_api.bulk.answers import Point, answer_points
from localidades_api.bulk.exchange import Answered, AnswerSome
from localidades_api.bulk.input_rows import POINTS, ROLES, Answer, Row
from localidades_api.bulk.own_municipio import area_matcher, judge
from localidades_api.bulk.readers import for_a_while
from localidades_api.caches.name_indexes.open_indexes import NameIndexes
from localidades_api.catalogue.degrees import is_in_mexico
from localidades_api.catalogue.keys import KEYS_OF_A_STATE, PlaceKind, format_key, kind_of_key, municipalities_of
from localidades_api.catalogue.locality import describe_state
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.errors import NotFoundError
from localidades_api.extensions.outlines.queries import describe_municipios, find_municipios_at, list_outlines
from localidades_api.extensions.outlines.schemas import (
    LocatedPointResults,
    LocatedRow,
    MunicipioAtPointResults,
    OutlineFeature,
)
from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.documents import respond_with_document
from localidades_api.http.paths import PREFIX

AT = f"{PREFIX}/municipios/at/"
TAG = "Outlines"
router = APIRouter()
_census = APIRouter(prefix=PREFIX, tags=[TAG], dependencies=[Depends(check_request)])

_MAX_POINTS = 500  # per statement, some 30 ms
_GEOJSON = "application/geo+json"
_EXCHANGED = "`lat` and `lon` are exchanged: the latitude of a place in Mexico is from 14 to 33."
_NO_OUTLINES = NotFoundError(
    "This service has no outlines: its operator imports them with `localidades-api outlines import`."
)
_NOT_FOUND: Responses = {404: problem(_NO_OUTLINES, "There are no outlines, or there is no such release.")}


class AtQuery(PointQuery):
    """The parameters of the municipio of a point."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_exchanged(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            latitud, longitud = float(given["lat"]), float(given["lon"])
        except (KeyError, TypeError, ValueError):
            return given  # the fields say what is wrong
        if not is_in_mexico(latitud, longitud) and is_in_mexico(longitud, latitud):
            raise PydanticCustomError("exchanged", _EXCHANGED)
        return given


class AtEachQuery(BulkQuery):
    """The parameters of the municipios of many points; the names of columns that hold each row's own municipio."""

    municipio: Column = None
    cve_mun: Column = None
    estado: Column = None
    cvegeo: Column = None


@_census.get(
    "/municipios/at/",
    summary="Get the municipio of a point",
    response_model=MunicipioAtPointResults,
    responses={**CACHEABLE, **_NOT_FOUND},
)
async def get_municipality_at_point(
    request: Request, query: Annotated[AtQuery, Query()], releases: ReleasesDep, database: DatabaseDep
) -> Response:
    """Say in which municipio a point lies, by its outline: one result, or none at sea and abroad.

    The municipio of the nearest locality is another one for one point in twelve.
    """
    builder = await ResponseBuilder.begin(request, query, releases)
    keys = await find_municipios_at(database, [(query.lat, query.lon)])
    found = await describe_municipios(database, builder.release, [id_ for id_ in keys if id_])
    if not found:
        raise _NO_OUTLINES
    # With the key, because another edition may come between the two statements.
    builder.variant = f".{found[0].sha256[:12]}.{found[0].id or 'none'}"
    content = {"results": [_describe(one) for one in found if one.id]}
    response = builder.answer("outlines/at.html", "Municipio", content)
    # The response cache would keep it until the next release, but an edition may come before.
    response.headers["Cache-Control"] = "no-cache, private"
    return response


@_census.post("/municipios/at", include_in_schema=False)  # a redirect may lose the body
@_census.post(
    "/municipios/at/",
    summary="Get the municipios of many points",
    response_model=LocatedPointResults,
    responses={**NEGOTIATED, **_NOT_FOUND, **described(LocatedRow)["responses"]},
    openapi_extra=described(LocatedRow)["openapi_extra"],
)
async def list_municipalities_at_points(
    request: Request,
    query: Annotated[AtEachQuery, Query()],
    releases: ReleasesDep,
    database: DatabaseDep,
    names: NamesDep,
    transfers: TransfersDep,
    turn: BulkTurnDep,
) -> Response:
    """Say in which municipio each of many points lies, and whether that is the row's own.

    Rows are sent like those to be matched. `agrees` compares the municipio that a row names, in columns for estado and
    municipio or a key, with that of its point.
    """
    release = await releases.get(query.release, for_search=True)
    if not await describe_municipios(database, release, []):
        raise _NO_OUTLINES
    subject = Subject(_ROLES, query.columns, _COLUMNS)
    return respond(request, query, transfers, turn, release, subject, _locating(database, names, release))


def _describe(row: Record[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "cvegeo": format_key("municipio", row.id),
        "nombre": row.nombre,
        "estado": None if row.estado_id is None else describe_state(row),
        "edition": row.edition,
        "in_release": row.in_release,
    }


@asynccontextmanager
async def _locating(database: Database, names: NameIndexes, release: Release) -> AsyncIterator[AnswerSome]:
    async def find(points: Sequence[Point]) -> list[list[dict[str, Any]]]:
        keys = await find_municipios_at(database, points)
        rows = await describe_municipios(database, release, [*{id_ for id_ in keys if id_}])
        described_by_id = {row.id: [_describe(row)] for row in rows if row.id}
        return [described_by_id.get(id_, []) for id_ in keys]

    async with names.using(release) as index:
        match_area = area_matcher(index)

        def judged(row: Row, answer: Answer) -> Answer:
            agrees, problem = None, answer["problem"]
            if not problem:
                agrees, problem = judge(row.cells, _municipio(answer).get("id"), match_area)
            return {"results": answer["results"], "agrees": agrees, "problem": problem}

        async def answer_some(rows: Iterator[Row | None]) -> Answered:
            answered = await answer_points(list(islice(for_a_while(rows), _MAX_POINTS)), find)
            return [(row, judged(row, answer)) for row, answer in answered]

        yield answer_some


def _municipio(answer: Answer) -> Mapping[str, Any]:
    return answer["results"][0] if answer["results"] else {}


_ROLES = POINTS._replace(
    by_name={name: ROLES.by_name[name] for name in ("municipio", "cve_mun", "estado", "cvegeo", *POINTS.by_name)}
)
_COLUMNS = AnswerColumns(
    "at",
    {
        "cvegeo": lambda answer: _municipio(answer).get("cvegeo", ""),
        "municipio": lambda answer: _municipio(answer).get("nombre", ""),
        "estado": lambda answer: (_municipio(answer).get("estado") or {}).get("nombre", ""),
        "agrees": partial(truth, "agrees"),
        "problem": partial(plain, "problem"),
    },
)


# -- Outlines

_OF_OUTLINE: Responses = {
    **ERRORS,
    **_NOT_FOUND,
    200: {"content": {_GEOJSON: {"schema": OutlineFeature.model_json_schema()}}},
    304: {"description": CACHEABLE[304]["description"]},
}


@_census.get(
    "/municipios/{id:digits}/outline/",
    summary="Get the outline of a municipio",
    response_class=Response,
    responses=_OF_OUTLINE,
)
async def get_municipality_outline(
    request: Request,
    id: MunicipalityId,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[StrictQuery, Query()],  # noqa: ARG001  # refuses parameters
    database: DatabaseDep,
) -> Response:
    """Return the outline of a municipio as GeoJSON, of the edition that is imported, whatever the release."""
    return await _answer_outline(request, id, "municipio", database)


@_census.get(
    "/estados/{id:digits}/outline/",
    summary="Get the outline of an estado",
    response_class=Response,
    responses=_OF_OUTLINE,
)
async def get_state_outline(
    request: Request,
    id: StateId,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[StrictQuery, Query()],  # noqa: ARG001  # refuses parameters
    database: DatabaseDep,
) -> Response:
    """Return the outline of an estado as GeoJSON: that of its municipios together."""
    return await _answer_outline(request, id, "estado", database)


async def _answer_outline(request: Request, id_: int, kind: PlaceKind, database: Database) -> Response:
    found = await list_outlines(database, id_, id_) if kind_of_key(id_) == kind else []
    if not found:
        raise NotFoundError("There is no outline of this key: `localidades-api outlines import` imports outlines.")
    [row] = found
    properties = {"cvegeo": format_key(kind, id_), "nombre": row.nombre or None, "edition": row.edition}
    headers = {"Content-Type": _GEOJSON, "Cache-Control": CACHE_CONTROL}
    return respond_with_document(request.headers, _feature(row, properties, {"id": id_}), headers)


def _feature(row: Record[Any], properties: Mapping[str, Any], members: Mapping[str, Any], crs: str = "") -> bytes:
    geometry = zlib.decompress(row.geometry).decode()
    if crs:
        geometry = f'{{"crs":{crs},{geometry[1:]}'
    head = to_json({"type": "Feature", **members}).decode()[:-1]
    return f'{head},"geometry":{geometry},"properties":{to_json(properties).decode()}}}'.encode()


# -- The addresses of INEGI's web service, which has a reference system within each geometry

_CRS = '{"type":"name","properties":{"name":"EPSG:6365"}}'
_NO_OUTLINE = (
    "Este servicio no tiene esta dirección o clave entre sus contornos. Calles, asentamientos y contornos los tiene el"
    " del INEGI."
)
_GEO_PATH = re.compile(r"mge(?P<level>[em])(/(?P<ent>\d\d?)(/?(?P<mun>(?<=/)\d{1,3}|\d{3}))?)?/?", re.ASCII)


@router.get("/wscatgeo/geo/{path:path}", include_in_schema=False)
@router.get("/wscatgeo/v2/geo/{path:path}", include_in_schema=False)
async def answer_outlines_as_wscatgeo(request: Request, path: str, database: DatabaseDep) -> Response:
    """Answer with outlines as INEGI's service does, whose two versions name the members otherwise."""
    is_second = request.scope["path"].endswith(f"/v2/geo/{path}")
    keys = _GEO_PATH.fullmatch(path)
    rows = await _list_asked(database, keys) if keys else []
    headers = {"Content-Type": "application/json", "Cache-Control": CACHE_CONTROL}
    if not rows:
        headers["Cache-Control"] = "no-cache"
        return Response(to_json({"result": "404", "mensaje": _NO_OUTLINE}), headers=headers)
    features = b",".join(_feature(row, _as_wscatgeo(row, is_second=is_second), {}, _CRS) for row in rows)
    return respond_with_document(
        request.headers, b'{"type":"FeatureCollection","features":[' + features + b"]}", headers
    )


async def _list_asked(database: Database, keys: re.Match[str]) -> Sequence[Record[Any]]:
    ent, mun = int(keys["ent"] or 0), int(keys["mun"] or 0)
    if keys["level"] == "e":
        return await list_outlines(database, *((ent, ent) if ent else (1, KEYS_OF_A_STATE - 1)))
    first, last = municipalities_of(ent)
    if mun:
        first = last = first + mun
    return await list_outlines(database, max(first, KEYS_OF_A_STATE), last)


def _as_wscatgeo(row: Record[Any], *, is_second: bool) -> dict[str, str]:
    cvegeo = format_key(kind_of_key(row.id), row.id)
    names = ("cve_ent", "cve_mun", "nomgeo") if is_second else ("cve_agee", "cve_agem", "nom_agem")
    values = (cvegeo[:2], cvegeo[2:], row.nombre) if row.nombre else (cvegeo[:2],)
    return {"cvegeo": cvegeo, **dict(zip(names, values, strict=False))}


router.include_router(_census)
