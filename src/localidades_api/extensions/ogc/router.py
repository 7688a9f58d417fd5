"""OGC API - Features, part 1 (17-069r4): estados, municipios and localities as layers of QGIS, GDAL and others.

Links are absolute, since QGIS follows no others. They are made from the Host header, so no shared cache may keep them.
"""

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError, to_json
from starlette.responses import Response

from localidades_api import __version__
from localidades_api.api.extension import Borders, borders_of
from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import ReleaseParam, ReleaseQuery, StrictQuery, check_request, parameters_of
from localidades_api.api.problems import translate
from localidades_api.api.public_address import requested_base
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import DatabaseDep, PositionsDep, ReleasesDep, RepositoryDep, TilesDep
from localidades_api.caches.positions import PositionCache
from localidades_api.catalogue.attribution import TERMS
from localidades_api.catalogue.filters import ColumnFilters, LocalityFilters, Omittable, StateParam
from localidades_api.catalogue.keys import format_key, state_of
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.messages import MAX_NUMBER, whole_number
from localidades_api.catalogue.pagination import PAGE_SIZE
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.queries.areas import list_largest_seats, list_seats
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.downloads import list_lines
from localidades_api.errors import InvalidParametersError, NotAcceptableError
from localidades_api.html.renderer import HTML, JSON, select_renderer
from localidades_api.http.negotiation import CODINGS
from localidades_api.http.paths import PREFIX
from localidades_api.http.representation import PRIVATE, Representation, respond_with_document
from localidades_api.releases.tracker import ReleaseTracker

OGC = "/ogc"
MAX_LIMIT = 10_000  # features of a page, 5 MB
MAX_BORDERS = 100  # features of a page, if they have borders: 3 MB of municipios
DEFAULT_LIMIT = 10  # the default of the standard
_GEOJSON = "application/geo+json"
DEFINITION = "application/vnd.oai.openapi+json;version=3.0"  # the media type of /ogc/api
_CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_CONFORMANCE = [
    f"http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/{name}" for name in ("core", "oas30", "geojson")
]
Area = Literal["estados", "municipios"]
Collection = Literal["estados", "municipios", "localidades"]
_AreaParam = Annotated[Area, Path()]
_KEY = whole_number("A key is written with digits, such as 010010001.")
_LocalityId = Annotated[int, Path(ge=1, le=999_999_999), _KEY]
_AreaId = Annotated[int, Path(ge=1, le=32_999), _KEY]
_TITLES = {
    "estados": ("Estados", "The estados: outlines, or points at the largest cabecera where there are none."),
    "municipios": ("Municipios", "The municipios: outlines, or points at the cabecera where there are none."),
    "localidades": ("Localidades", "The localities, with every column of INEGI's catalogue."),
}


class InvalidOgcParametersError(InvalidParametersError):
    """Parameters that are refused with the status that the standard wants (OGC 17-069r4, 7.13 and 7.14)."""

    status = 400
    slug = "invalid-ogc-parameters"
    meaning = "A query parameter of OGC API - Features is unknown, repeated, not UTF-8, or out of range."
    remedy = InvalidParametersError.remedy


class OgcRoute(APIRoute):
    """A route that refuses parameters with the status that the standard wants."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request, as FastAPI's guide on custom routes does."""
        handle = super().get_route_handler()

        async def handle_as_ogc(request: Request) -> Response:
            try:
                return await handle(request)
            except (RequestValidationError, ValidationError, InvalidParametersError) as error:
                known = translate(error, self.endpoint)
                if isinstance(known, InvalidParametersError):
                    raise InvalidOgcParametersError(known.faults) from error
                raise

        return handle_as_ogc


router = APIRouter(route_class=OgcRoute, prefix=OGC, include_in_schema=False, dependencies=[Depends(check_request)])


_BEGINNINGS = ("after", "startindex", "offset")  # the parameters that say where a page begins
_NUMBER = r"-?[0-9]{1,3}(\.[0-9]{0,25})?(e-[0-9]{1,2})?"  # as GDAL writes a small one
_BBOX = rf"{_NUMBER}(,{_NUMBER}){{3}}((,{_NUMBER}){{2}})?"
_INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
_DATETIME = rf"({_INSTANT}|({_INSTANT}|(\.\.)?)/({_INSTANT}|(\.\.)?))"


def _read_boxes(text: str) -> list[Box]:
    """Return the box, or the two boxes of one across the 180th meridian; the heights of six numbers don't matter."""
    numbers = [float(number) for number in text.split(",")]
    west, south, east, north = numbers if len(numbers) == 4 else (*numbers[:2], *numbers[3:5])  # noqa: PLR2004
    south, north = max(south, -90), min(north, 90)
    if south > north or west > 180 or east < -180:  # noqa: PLR2004  # degrees
        raise PydanticCustomError(
            "bbox_order", "South comes before north; longitudes are from -180 to 180, and latitudes from -90 to 90."
        )
    if west <= east:
        return [Box(max(west, -180), south, min(east, 180), north)]
    return [Box(west, south, 180, north), Box(-180, south, east, north)]


def _check_box(text: str) -> str:
    if not re.fullmatch(_BBOX, text):
        raise PydanticCustomError("bbox", "Use west,south,east,north in degrees, such as -103,21.5,-102,22.5.")
    _read_boxes(text)
    return text


def _check_datetime(text: str) -> str:
    if not re.fullmatch(_DATETIME, text):
        raise PydanticCustomError("datetime", "Use an instant such as 2018-09-01T00:00:00Z, or two with / between.")
    return text


_Index = Annotated[
    Omittable[int],
    Field(
        ge=0,
        le=MAX_NUMBER,
        description="How many of the features that match come before the page: 0 begins with the first. `startindex`"
        " and `offset` are the same, as ArcGIS and others write it.",
        examples=[1000],
    ),
    whole_number("An index is a whole number from 0."),
]


class CollectionQuery(StrictQuery):
    """The parameters of everything but features."""

    release: ReleaseParam = None


class FeaturesQuery(CollectionQuery):
    """The parameters of the features of any collection."""

    limit: Annotated[int, whole_number("A limit is a whole number from 1.")] = Field(
        default=DEFAULT_LIMIT,
        ge=1,
        le=MAX_NUMBER,
        description=f"Maximum number of features; a page has at most {MAX_LIMIT:,}, whatever it is.",
        examples=[DEFAULT_LIMIT],
    )
    bbox: Annotated[
        Omittable[str],
        Field(
            max_length=256,
            description="Only features within a box, or on its edges: west,south,east,north in degrees (WGS 84), or six"
            " numbers with heights, which don't matter.",
            examples=["-103,21.5,-102,22.5"],
            json_schema_extra={"pattern": f"^{_BBOX}$"},
        ),
        AfterValidator(_check_box),
    ] = None
    datetime: Annotated[Omittable[str], AfterValidator(_check_datetime)] = Field(
        default=None,
        description="An instant or an interval (RFC 3339). No feature has a time, so all of them match.",
        examples=["2018-09-01T00:00:00Z"],
        json_schema_extra={"pattern": f"^{_DATETIME}$"},
    )
    after: Annotated[Omittable[int], whole_number("Follow the link `next` of the page before.")] = Field(
        default=None, ge=0, le=MAX_NUMBER, description="Where the page begins, as the link `next` says.", examples=[0]
    )
    startindex: _Index = None
    offset: _Index = None

    @field_validator("startindex", "offset")
    @classmethod
    def _begins_once(cls, index: int | None, info: ValidationInfo) -> int | None:
        if any(info.data.get(name) is not None for name in _BEGINNINGS):
            raise PydanticCustomError("beginning", "Use only one of `after`, `startindex` and `offset`.")
        return index

    def page_of(self, keys: Sequence[int], most: int = MAX_LIMIT) -> tuple[Sequence[int], int | None]:
        """Return which of the sorted keys are on the page, and the last of these if another page follows."""
        index = self.offset if self.startindex is None else self.startindex
        first = bisect_right(keys, self.after or 0) if index is None else index
        page = keys[first : first + min(self.limit, most)]
        return page, page[-1] if page and page[-1] != keys[-1] else None

    @property
    def boxes(self) -> list[Box]:
        """The boxes that features are within; an empty list means everywhere."""
        return [] if self.bbox is None else _read_boxes(self.bbox)


class AreaFeaturesQuery(FeaturesQuery):
    """The parameters of the features of estados and municipios."""

    estado_id: StateParam = None


class LocalityFeaturesQuery(ColumnFilters, AreaFeaturesQuery):
    """The parameters of the features of localities."""


@dataclass(frozen=True, slots=True)
class _FeatureAnswer:
    """Builds the answer to one request, from a release."""

    request: Request
    query: CollectionQuery | ReleaseQuery
    release: Release
    edition: str = ""  # of the borders, if the answer has any

    @classmethod
    async def begin(
        cls, request: Request, query: CollectionQuery, releases: ReleaseTracker, *, has_borders: bool = False
    ) -> Self:
        """Choose the release; raise NotFoundError if there is none, or as `check_modified` does."""
        release = await releases.get(query.release)
        answer = cls(request, query, release, releases.borders if has_borders else "")
        if "id" not in request.path_params:  # a feature may not exist
            answer.representation.check_modified()
        return answer

    def link(self, rel: str, path: str, type_: str = "application/json", **query: str) -> dict[str, str]:
        """Return a link to a path of the service, of the release that the request names."""
        query = ({"release": self.query.release} if self.query.release else {}) | query
        address = f"{requested_base(self.request)}{path}"
        asked = f"?{urlencode(query, safe=',:/')}" if query else ""
        return {"rel": rel, "type": type_, "href": address + asked}

    @property
    def representation(self) -> Representation:
        """The representation, in a content coding if it is a page of many features."""
        is_long = isinstance(self.query, FeaturesQuery) and self.query.limit > PAGE_SIZE
        name = ".".join(filter(None, ["ogc", self.edition, "json"]))
        codings = CODINGS if is_long else ()
        asked = self.request.headers
        return Representation.of(asked, self.release, name, cache_control=PRIVATE, codings=codings)

    async def answer(self, content: Mapping[str, Any] | bytes, media_type: str = "application/json") -> Response:
        """Return the response; compressing a long one takes a while, for which the event loop does not wait."""
        body = content if isinstance(content, bytes) else to_json(content)
        chosen, media = self.representation, {**JSON.headers, "Content-Type": media_type}
        return await asyncio.to_thread(chosen.respond, body, media) if chosen.coding else chosen.respond(body, media)

    async def answer_page(
        self, collection: str, matched: int, returned: int, features: bytes, last: int | None
    ) -> Response:
        """Return the response with a page; `last` is where it ends if another follows, of the same release."""
        path, asked = f"{OGC}/collections/{collection}", parameters_of(self.query)
        links = [self.link("self", f"{path}/items", _GEOJSON, **asked), self.link("collection", path)]
        if last is not None:
            kept = {name: value for name, value in asked.items() if name not in _BEGINNINGS}
            following = {**kept, "after": str(last), "release": self.release.name}
            links.append(self.link("next", f"{path}/items", _GEOJSON, **following))
        head = {"type": "FeatureCollection", "numberMatched": matched, "numberReturned": returned, "links": links}
        return await self.answer(to_json(head)[:-1] + b',"features":[\n' + features + b"\n]}\n", _GEOJSON)

    async def answer_feature(self, collection: str, id_: int, feature: bytes) -> Response:
        """Return the response with one feature, and links from it to its collection and its page."""
        path = f"{OGC}/collections/{collection}"
        links = [
            self.link("self", f"{path}/items/{id_}", _GEOJSON),
            self.link("collection", path),
            self.link("alternate", f"{PREFIX}/{collection}/{id_}/", "text/html", format="api"),
        ]
        return await self.answer(feature[:-1] + b',"links":' + to_json(links) + b"}", _GEOJSON)


@router.get("/")
async def show_landing_page(
    request: Request, query: Annotated[ReleaseQuery, Query()], releases: ReleasesDep
) -> Response:
    """Show what OGC API - Features offers: QGIS and GDAL need only this address."""
    builder = _FeatureAnswer(request, query, await releases.get(query.release))
    if _wants_html(query, request):
        collections = [{"id": name, "title": title, "description": said} for name, (title, said) in _TITLES.items()]
        page = ResponseBuilder.without_release(request, query)
        return page.answer("ogc/ogc.html", "OGC API - Features", {"collections": collections})
    content = {
        "title": f"Localidades de México ({builder.release.name})",
        "description": "The estados, municipios and localities of INEGI's catalogue, as OGC API - Features.",
        "attribution": builder.release.credit("en"),
        "links": [
            builder.link("self", f"{OGC}/"),
            builder.link("conformance", f"{OGC}/conformance"),
            builder.link("data", f"{OGC}/collections"),
            builder.link("service-desc", f"{OGC}/api", DEFINITION),
            builder.link("service-doc", "/docs", "text/html") | {"title": "The service's own API"},
            builder.link("alternate", f"{PREFIX}/", "text/html", format="api"),
        ],
    }
    return await builder.answer(content)


def _wants_html(query: ReleaseQuery, request: Request) -> bool:
    """Return whether a browser asks; a program gets JSON, whatever it accepts."""
    try:
        return select_renderer(query.format, request.headers) is HTML
    except NotAcceptableError:
        return False


@router.get("/api")
async def describe_api(request: Request) -> Response:
    """Describe these resources as OpenAPI 3.0, as the standard wants; the service's own document is 3.1."""
    return respond_with_document(request.headers, to_json(_document()), {**JSON.headers, "Content-Type": DEFINITION})


@cache
def _document() -> dict[str, Any]:
    """Return the document; QGIS and GDAL look in it for the limit, and for what they can filter by."""
    schemas = {
        "collectionId": {"type": "string", "enum": get_args(Collection)},
        "featureId": {"type": "string", "pattern": "^[0-9]{1,9}$"},
    }
    in_path = [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in schemas.items()]
    operations: dict[str, tuple[str, str, type[CollectionQuery | ReleaseQuery]]] = {
        "/": ("getLandingPage", "Show the landing page", ReleaseQuery),
        "/conformance": ("getConformanceDeclaration", "List conformance classes", CollectionQuery),
        "/collections": ("getCollections", "List collections", CollectionQuery),
        "/collections/{collectionId}": ("describeCollection", "Show a collection", CollectionQuery),
        "/collections/estados/items": ("getEstados", "List estados", AreaFeaturesQuery),
        "/collections/municipios/items": ("getMunicipios", "List municipios", AreaFeaturesQuery),
        "/collections/localidades/items": ("getLocalidades", "List localities", LocalityFeaturesQuery),
        "/collections/{collectionId}/items/{featureId}": ("getFeature", "Show a feature", CollectionQuery),
    }
    paths = {}
    for path, (name, summary, query) in operations.items():
        named = [parameter for parameter in in_path if f"{{{parameter['name']}}}" in path]
        content = {_GEOJSON if "/items" in path else "application/json": {"schema": {"type": "object"}}}
        responses = {"200": {"description": "As the standard has it.", "content": content}, **_FAILURES}
        parameters = [*named, *_parameters(query)]
        operation = {"operationId": name, "summary": summary, "parameters": parameters, "responses": responses}
        paths[path] = {"get": operation}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Localidades de México", "version": __version__},
        "servers": [{"url": "."}],  # relative to the document
        "paths": paths,
        "components": {
            "parameters": {
                "limit": next(parameter for parameter in _parameters(FeaturesQuery) if parameter["name"] == "limit")
            }
        },
    }


_FAILURES = {
    "400": {"description": "A parameter is unknown, repeated or out of range."},
    "404": {"description": "There is no such collection, feature or release."},
}
_OTHERWISE: Mapping[str, dict[str, Any]] = {  # what the standard says of these parameters
    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    "bbox": {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 6},
}


def _parameters(query: type[CollectionQuery | ReleaseQuery]) -> Iterator[dict[str, Any]]:
    for name, field in query.model_json_schema()["properties"].items():
        known = {word: field[word] for word in ("type", "pattern", "enum", "minimum", "maximum") if word in field}
        yield {
            "name": name,
            "in": "query",
            "description": field["description"],
            "style": "form",
            "explode": False,
            "schema": _OTHERWISE.get(name, known),
        }


@router.get("/conformance")
async def list_conformance_classes(
    request: Request, query: Annotated[CollectionQuery, Query()], releases: ReleasesDep
) -> Response:
    """List the parts of the standard that the service conforms to."""
    builder = await _FeatureAnswer.begin(request, query, releases)
    return await builder.answer({"conformsTo": _CONFORMANCE})


@router.get("/collections")
async def list_collections(
    request: Request, query: Annotated[CollectionQuery, Query()], releases: ReleasesDep, tiles: TilesDep
) -> Response:
    """List the collections: estados, municipios and localidades."""
    builder = await _FeatureAnswer.begin(request, query, releases)
    bounds = await tiles.bounds(builder.release)
    collections = [_describe(builder, name, bounds) for name in get_args(Collection)]
    return await builder.answer({"links": [builder.link("self", f"{OGC}/collections")], "collections": collections})


@router.get("/collections/{collection}")
async def get_collection(
    request: Request,
    collection: Annotated[Collection, Path()],
    query: Annotated[CollectionQuery, Query()],
    releases: ReleasesDep,
    tiles: TilesDep,
) -> Response:
    """Show the title, the extent and the links of a collection."""
    builder = await _FeatureAnswer.begin(request, query, releases)
    return await builder.answer(_describe(builder, collection, await tiles.bounds(builder.release)))


def _describe(builder: _FeatureAnswer, name: Collection, bounds: Box | None) -> dict[str, Any]:
    path, (title, description) = f"{OGC}/collections/{name}", _TITLES[name]
    return {
        "id": name,
        "title": title,
        "description": description,
        "attribution": builder.release.credit("en"),
        "itemType": "feature",
        "crs": [_CRS84],
        **({"extent": {"spatial": {"bbox": [bounds], "crs": _CRS84}}} if bounds else {}),
        "links": [
            builder.link("self", path),
            builder.link("items", f"{path}/items", _GEOJSON),
            builder.link("alternate", f"{PREFIX}/{name}/", "text/html", format="api"),
            {"rel": "license", "type": "text/html", "href": TERMS},
        ],
    }


@router.get("/collections/localidades/items")
async def list_locality_features(
    request: Request,
    query: Annotated[LocalityFeaturesQuery, Query()],
    releases: ReleasesDep,
    positions: PositionsDep,
    database: DatabaseDep,
) -> Response:
    """List localities as GeoJSON, sorted by clave, then id; those without coordinates have no geometry.

    Follow the link `next` to read all of them: each comes once, even if another release is published meanwhile.
    """
    builder = await _FeatureAnswer.begin(request, query, releases)
    found = await _find_localities(positions, builder.release, query)
    page, last = query.page_of(found)
    features = await list_lines(database, builder.release, page, "geojson") if page else b""
    return await builder.answer_page("localidades", len(found), len(page), features, last)


async def _find_localities(positions: PositionCache, release: Release, query: LocalityFeaturesQuery) -> Sequence[int]:
    """Return the positions of what the filters select, in order."""
    chosen = query.model_dump(include=set(ColumnFilters.model_fields))
    if not query.boxes:
        return await positions.get(release, LocalityFilters(**chosen))
    within = [LocalityFilters(**chosen, bbox=",".join(f"{side:.9f}" for side in box)) for box in query.boxes]
    found = [await positions.get(release, filters) for filters in within]
    return found[0] if len(found) == 1 else sorted(set().union(*found))


@router.get("/collections/localidades/items/{id}")
async def get_locality_feature(
    request: Request,
    id: _LocalityId,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[CollectionQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
    positions: PositionsDep,
) -> Response:
    """Show a locality as GeoJSON."""
    builder = await _FeatureAnswer.begin(request, query, releases)
    found = await positions.get(builder.release, LocalityFilters(cvegeo=format_key("localidad", id)))
    if not found:
        return await refuse_unknown(repository, localities, builder.release, id)
    feature = await list_lines(repository.database, builder.release, found, "geojson")
    return await builder.answer_feature("localidades", id, feature)


@router.get("/collections/{collection}/items")
async def list_area_features(
    request: Request,
    collection: _AreaParam,
    query: Annotated[AreaFeaturesQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
) -> Response:
    """List estados, or municipios, as GeoJSON, sorted by id: with their borders where there are any, else points."""
    builder = await _FeatureAnswer.begin(request, query, releases, has_borders=True)
    database, borders = repository.database, borders_of(request, releases)
    areas = await _list_areas(repository, builder.release, collection, query.estado_id)
    if boxes := query.boxes:
        points = await _locate(repository, builder.release, collection, areas)
        touched = [await borders.find_touched(database, box) for box in boxes] if borders else []
        areas = {
            id_: area
            for id_, area in areas.items()
            if any(ids.get(id_, False) for ids in touched)
            or (not any(id_ in ids for ids in touched) and _is_within(points.get(id_), boxes))
        }
    page, last = query.page_of(sorted(areas), MAX_BORDERS if builder.edition else MAX_LIMIT)
    geometries = await _find_geometries(repository, builder.release, collection, page, borders)
    written = (_feature(id_, geometries.get(id_), areas[id_]) for id_ in page)
    features = await asyncio.to_thread(b",\n".join, written)
    return await builder.answer_page(collection, len(areas), len(page), features, last)


@router.get("/collections/{collection}/items/{id}")
async def get_area_feature(
    request: Request,
    collection: _AreaParam,
    id: _AreaId,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[CollectionQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
) -> Response:
    """Show an estado or a municipio as GeoJSON."""
    builder = await _FeatureAnswer.begin(request, query, releases, has_borders=True)
    borders = borders_of(request, releases)  # of the edition in the tag
    estado_id = id if collection == "estados" else state_of(id)
    area = (await _list_areas(repository, builder.release, collection, estado_id)).get(id)
    if area is None:
        table = states if collection == "estados" else municipalities
        return await refuse_unknown(repository, table, builder.release, id)
    geometries = await _find_geometries(repository, builder.release, collection, [id], borders)
    return await builder.answer_feature(collection, id, _feature(id, geometries.get(id), area))


async def _list_areas(
    repository: CatalogueRepository, release: Release, collection: Area, estado_id: int | None
) -> dict[int, dict[str, Any]]:
    """Return the properties of every area of a collection, or those in an estado, by id."""
    named = {
        state.id: {"cve_ent": state.clave, "estado": state.nombre, "estado_abreviatura": state.abreviatura}
        for state in await repository.list_states(release)
        if estado_id in {None, state.id}
    }
    if collection == "estados":
        return {
            id_: {"cve_ent": area["cve_ent"], "nombre": area["estado"], "abreviatura": area["estado_abreviatura"]}
            for id_, area in named.items()
        }
    return {
        municipio.id: {
            "cvegeo_mun": format_key("municipio", municipio.id),
            "cve_mun": municipio.clave,
            "clave": municipio.clave,
            "nombre": municipio.nombre,
            "localidades": municipio.localidades,
            "estado_id": municipio.estado_id,
            **named[municipio.estado_id],
        }
        for municipio in await repository.list_municipalities(release, estado_id)
    }


async def _locate(
    repository: CatalogueRepository, release: Release, collection: Area, ids: Iterable[int]
) -> dict[int, tuple[float, float]]:
    """Return the longitude and latitude of these areas, as far as they are known."""
    list_points = list_largest_seats if collection == "estados" else list_seats
    found = await list_points(repository.database, release, list(ids))
    return {seat.id: (seat.longitud, seat.latitud) for seat in found if None not in (seat.longitud, seat.latitud)}


def _is_within(point: tuple[float, float] | None, boxes: Iterable[Box]) -> bool:
    if point is None:
        return False
    east, north = point
    return any(box.west <= east <= box.east and box.south <= north <= box.north for box in boxes)


async def _find_geometries(
    repository: CatalogueRepository, release: Release, collection: Area, ids: Sequence[int], borders: Borders | None
) -> dict[int, bytes]:
    """Return the geometry of each area: its border, or the point that it is at."""
    points = await _locate(repository, release, collection, ids)
    found = {id_: to_json({"type": "Point", "coordinates": point}) for id_, point in points.items()}
    return {**found, **(await borders.find_geometries(repository.database, ids) if borders else {})}


def _feature(id_: int, geometry: bytes | None, properties: Mapping[str, Any]) -> bytes:
    head = to_json({"type": "Feature", "id": id_})[:-1]
    return head + b',"geometry":' + (geometry or b"null") + b',"properties":' + to_json(properties) + b"}"
