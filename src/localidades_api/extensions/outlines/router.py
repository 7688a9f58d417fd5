"""The municipio of a point, and the outlines of municipios and estados, also at the addresses of INEGI's wscatgeo."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import model_validator
from pydantic_core import to_json
from sqlalchemy import Row as Record
from starlette.responses import Response

from localidades_api import __version__
from localidades_api.api.areas import MunicipalityInPath, StateInPath
from localidades_api.api.bulk import BulkQuery, Subject, described, respond
from localidades_api.api.declarations import CACHEABLE, ERRORS, NEGOTIATED, Responses, problem
from localidades_api.api.extension import Edition
from localidades_api.api.params import PointQuery, StrictQuery, check_request
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import DatabaseDep, ExchangeDep, NamesDep, ReleasesDep, RepositoryDep
from localidades_api.bulk.answer_columns import AnswerColumns, plain, truth
from localidades_api.bulk.answers import Point, answer_points
from localidades_api.bulk.exchange import Answered, Answering
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.options import Column
from localidades_api.bulk.own_municipio import area_matcher, judge
from localidades_api.bulk.readers import for_a_while
from localidades_api.bulk.roles import POINTS, ROLES
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.caches.results import ResultCache
from localidades_api.catalogue.coordinates import (
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    is_in_mexico,
    read_point,
)
from localidades_api.catalogue.keys import KEYS_OF_A_STATE, PlaceKind, format_key, kind_of_key, municipalities_of
from localidades_api.catalogue.locality import describe_state
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.errors import NotFoundError
from localidades_api.extensions.outlines.queries import find_municipios, get_edition, list_outlines
from localidades_api.extensions.outlines.schemas import (
    LocatedPointResults,
    LocatedRow,
    MunicipioAtPointResults,
    OutlineFeature,
)
from localidades_api.http.negotiation import CODINGS, compress
from localidades_api.http.paths import PREFIX
from localidades_api.http.representation import Representation, digest_of

AT = f"{PREFIX}/municipios/at/"
TAG = "Outlines"
router = APIRouter()
_census = APIRouter(prefix=PREFIX, tags=[TAG], dependencies=[Depends(check_request)])

_MAX_POINTS = 500  # per statement, some 30 ms
_GEOJSON = "application/geo+json"
# One answer is composed at a time, for each takes a second and some 50 MB; their ETags are the keys of those held.
_composer = ThreadPoolExecutor(1, "outlines")
_held: ResultCache[str, bytes] = ResultCache(32 * 1024**2, len)
_NO_OUTLINES = NotFoundError(
    "This service has no outlines: its operator imports them with `localidades-api outlines import`."
)
_NOT_FOUND: Responses = {404: problem(_NO_OUTLINES, "There are no outlines, or there is no such release.")}


class AtQuery(PointQuery):
    """The parameters of the municipio of a point."""

    @model_validator(mode="before")
    @classmethod
    def _read_point(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a point as those of rows are; the fields say what is wrong with one that isn't in Mexico."""
        try:
            latitud, longitud = read_point(given["lat"], given.get("lon", ""))
        except (KeyError, TypeError, AttributeError, UnreadableDegreesError, DegreesOutOfRangeError):
            return given
        return {**given, "lat": latitud, "lon": longitud} if is_in_mexico(latitud, longitud) else given


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
    request: Request,
    query: Annotated[AtQuery, Query()],
    releases: ReleasesDep,
    database: DatabaseDep,
    repository: RepositoryDep,
) -> Response:
    """Say in which municipio a point lies, by its outline: one result, or none at sea and abroad.

    The municipio of the nearest locality is another one for one point in twelve. Degrees are read in the notations of
    rows, and `lat` may have both.
    """
    builder = await ResponseBuilder.begin(request, query, releases)
    if (edition := await get_edition(database)) is None:
        raise _NO_OUTLINES
    [found] = await find_municipios(database, edition, builder.release, [(query.lat, query.lon)])
    builder.variant = f".{edition.tag}.{found.id or 'none'}"
    estados = [id_ for id_ in edition.ids if kind_of_key(id_) == "estado"]
    reach = {"edition": edition.name, "municipios": len(edition.ids) - len(estados), "estados": estados}
    content = {"results": _describe(edition, found), "outlines": reach}
    has_page = builder.wants_html and not content["results"]  # which names them
    states = await repository.list_states(builder.release) if has_page else []
    names = [state.nombre for state in states if state.id in estados]
    response = builder.answer("outlines/at.html", "Municipio", content, estados=names)
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
    exchange: ExchangeDep,
    query: Annotated[AtEachQuery, Query()],
    releases: ReleasesDep,
    database: DatabaseDep,
    names: NamesDep,
) -> Response:
    """Say in which municipio each of many points lies, and whether that is the row's own.

    Rows are sent like those to be matched. `agrees` compares the municipio that a row names, in columns for estado and
    municipio or a key, with that of its point.
    """
    release = await releases.get(query.release)
    if (edition := await get_edition(database)) is None:
        raise _NO_OUTLINES
    subject = Subject(query.reading(_ROLES), _COLUMNS)
    return respond(exchange, query, release, subject, _locating(database, names, release, edition))


def _describe(edition: Edition, row: Record[Any]) -> list[dict[str, Any]]:
    municipio = {
        "id": row.id,
        "cvegeo": format_key("municipio", row.id or 0),
        "nombre": row.nombre,
        "estado": None if row.estado_id is None else describe_state(row),
        "edition": edition.name,
        "in_release": row.in_release,
    }
    return [municipio] if row.id else []


@asynccontextmanager
async def _locating(
    database: Database, names: NameIndexes, release: Release, edition: Edition
) -> AsyncIterator[Answering]:
    async def find(points: Sequence[Point]) -> list[list[dict[str, Any]]]:
        return [_describe(edition, row) for row in await find_municipios(database, edition, release, points)]

    async with names.using(release) as index:
        match_area, known = area_matcher(index), index.areas.municipios.keys() & edition.ids

        def judged(row: Row, answer: Answer) -> Answer:
            agrees, problem = None, answer["problem"]
            if not problem:
                agrees, problem = judge(row, _municipio(answer).get("id"), known, match_area)
            return {"results": answer["results"], "agrees": agrees, "problem": problem}

        async def answer_some(rows: Iterator[Row | None]) -> Answered:
            answered = await answer_points(list(islice(for_a_while(rows), _MAX_POINTS)), find)
            return [(row, judged(row, answer)) for row, answer in answered]

        yield Answering(answer_some)


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
    id: MunicipalityInPath,  # noqa: A002  # the parameter's name on the wire
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
    id: StateInPath,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[StrictQuery, Query()],  # noqa: ARG001  # refuses parameters
    database: DatabaseDep,
) -> Response:
    """Return the outline of an estado as GeoJSON: that of its municipios together."""
    return await _answer_outline(request, id, "estado", database)


async def _answer_outline(request: Request, id_: int, kind: PlaceKind, database: Database) -> Response:
    edition = await get_edition(database, id_, id_) if kind_of_key(id_) == kind else None
    if edition is None:
        raise NotFoundError("There is no outline of this key: `localidades-api outlines import` imports outlines.")

    def write(rows: Sequence[Record[Any]]) -> bytes:
        properties = {"cvegeo": format_key(kind, id_), "nombre": rows[0].nombre or None, "edition": edition.name}
        return _feature(rows[0], properties, {"id": id_})

    return await _answer_composed(request, database, edition, _GEOJSON, write)


async def _answer_composed(
    request: Request, database: Database, edition: Edition, media_type: str, write: Callable[..., bytes], form: str = ""
) -> Response:
    """Return the response with what `write` makes of outlines; its tag is known before they are read."""
    digest = digest_of(f"{edition.tag} {edition.ids[0]} {edition.ids[-1]} {media_type}{form} {__version__}".encode())
    chosen = Representation.of(request.headers, None, digest, codings=CODINGS)
    chosen.check_modified()

    async def compose() -> bytes:
        rows = await list_outlines(database, edition)
        work = partial(compress, coding=chosen.coding) if chosen.coding else bytes
        return await asyncio.get_running_loop().run_in_executor(_composer, lambda: work(write(rows)))

    return chosen.respond_coded(await _held.get(chosen.headers["ETag"], compose), {"Content-Type": media_type})


def _feature(row: Record[Any], properties: Mapping[str, Any], members: Mapping[str, Any], crs: bytes = b"") -> bytes:
    geometry = zlib.decompress(row.geometry)
    if crs:
        geometry = b'{"crs":' + crs + b"," + geometry[1:]
    head = to_json({"type": "Feature", **members})[:-1]
    return head + b',"geometry":' + geometry + b',"properties":' + to_json(properties) + b"}"


# -- The addresses of INEGI's web service, which has a reference system within each geometry

_CRS = b'{"type":"name","properties":{"name":"EPSG:6365"}}'
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
    edition = await get_edition(database, *_range(keys)) if keys else None
    if edition is None:
        headers = {"Content-Type": "application/json", "Cache-Control": "no-cache"}
        return Response(to_json({"result": "404", "mensaje": _NO_OUTLINE}), headers=headers)

    def write(rows: Sequence[Record[Any]]) -> bytes:
        features = b",".join(_feature(row, _as_wscatgeo(row, is_second=is_second), {}, _CRS) for row in rows)
        return b'{"type":"FeatureCollection","features":[' + features + b"]}"

    return await _answer_composed(request, database, edition, "application/json", write, "v2" if is_second else "v1")


def _range(keys: re.Match[str]) -> tuple[int, int]:
    ent, mun = int(keys["ent"] or 0), int(keys["mun"] or 0)
    if keys["level"] == "e":
        return (ent, ent) if ent else (1, KEYS_OF_A_STATE - 1)
    first, last = municipalities_of(ent)
    return (first + mun, first + mun) if mun else (max(first, KEYS_OF_A_STATE), last)


def _as_wscatgeo(row: Record[Any], *, is_second: bool) -> dict[str, str]:
    cvegeo = format_key(kind_of_key(row.id), row.id)
    names = ("cve_ent", "cve_mun", "nomgeo") if is_second else ("cve_agee", "cve_agem", "nom_agem")
    values = (cvegeo[:2], cvegeo[2:], row.nombre) if row.nombre else (cvegeo[:2],)
    return {"cvegeo": cvegeo, **dict(zip(names, values, strict=False))}


router.include_router(_census)
