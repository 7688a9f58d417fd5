"""Localities: the list, single records, suggestions and the nearest places."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.declarations import CACHEABLE, NO_KEY, PAGINATED
from localidades_api.api.extension import find_border
from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import LocalitiesQuery, LocalityQuery, NearestQuery, SuggestQuery
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import DatabaseDep, NamesDep, PagesDep, PositionsDep, ReleasesDep, RepositoryDep
from localidades_api.catalogue.filters import split_fields
from localidades_api.catalogue.locality import describe_locality, describe_near, encode_envelope, encode_localities
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.pagination import PAGE_SIZE
from localidades_api.catalogue.schemas import (
    LocalityDetail,
    LocalityPage,
    NearbyPlaceResults,
    Release,
    SuggestionResults,
)
from localidades_api.database.models import localities
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.nearest import find_nearest
from localidades_api.html.svg import draw_inset
from localidades_api.names.index import NameIndex

router = APIRouter(prefix="/localidades", tags=["Localities"], responses=CACHEABLE)

_SIMILAR = 3  # suggestions on the page of a search without results, from the whole country


_LOCALITY_ID = Annotated[
    int,
    Path(ge=1, le=999_999_999, description="Official key, with or without its leading zero.", examples=[10010001]),
    whole_number("The key of a locality has nine digits, such as 010010001."),
]


@router.get("/", summary="List localities", response_model=LocalityPage, responses=PAGINATED)
async def list_localities(
    request: Request,
    query: Annotated[LocalitiesQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
    pages: PagesDep,
    positions: PositionsDep,
    names: NamesDep,
) -> Response:
    """List the localities of a release, all or filtered, sorted by clave, then id, or as `sort` says.

    Follow `Link: rel="next"` to read a whole release: every record comes once, even if another release is published
    meanwhile.
    """
    builder = await ResponseBuilder.begin(request, query, releases)
    release = builder.release
    async with names.using(release) if query.search is not None else nullcontext() as index:
        if index:
            builder.depend_on(index)
        if query.link_parameters or query.page_size != PAGE_SIZE:
            if query.page == 1:  # page 1 always exists, so its 304 needs no query
                builder.check_modified()
            selected = await positions.get(release, query, query.sort, index)
            paging = query.paging(len(selected), release=release.name)
            builder.check_modified(paging)
            on_page = selected[paging.indexes.start : paging.indexes.stop]
            results = await _list_at(repository, release, on_page, index, query.fields) if on_page else ""
            body = encode_envelope(paging.quantity, paging.total_pages, results)
        else:
            paging = query.paging(release.localities, release=release.name)
            builder.check_modified(paging)
            body = await pages.get(release, query.page)
        context: dict[str, Any] = {}
        if builder.wants_html:
            context = await html_context.of_localities(repository, release, query, body)
            if index and query.search and not paging.quantity:
                context["similar"] = index.suggest(query.search, limit=_SIMILAR)
        return builder.answer("localities.html", "Localidades", body, paging, **context)


async def _list_at(
    repository: CatalogueRepository,
    release: Release,
    positions: Sequence[int],
    index: NameIndex | None,
    fields: str | None,
) -> str:
    """Return the localities at these positions as JSON; the results of a search come from the index of names."""
    if index is None or fields:
        return await repository.list_at_positions(release, positions, split_fields(fields))
    return encode_localities(index.at(positions))


@router.get("/suggest/", summary="Suggest localities", response_model=SuggestionResults)
async def suggest_localities(
    request: Request, query: Annotated[SuggestQuery, Query()], releases: ReleasesDep, names: NamesDep
) -> Response:
    """Suggest localities for a partly typed name, the likeliest first.

    The words may name the place, its municipio and its estado, in any order, abbreviated or with typos; the last may
    be unfinished. Keys lead to their places, and names and keys of earlier releases to those of this one. How well a
    place matches and how large it is are weighed together.
    """
    builder = await ResponseBuilder.begin(request, query, releases)
    index = await names.get(builder.release)
    builder.depend_on(index)
    builder.check_modified()
    places = index.suggest(
        query.q, kinds=query.kinds, estado_id=query.estado_id, municipio_id=query.municipio_id, limit=query.limit
    )
    return _answer_places(builder, "Suggestions", [place.describe() for place in places])


@router.get("/nearest/", summary="List nearest localities", response_model=NearbyPlaceResults)
async def list_nearest_localities(
    request: Request, query: Annotated[NearestQuery, Query()], releases: ReleasesDep, database: DatabaseDep
) -> Response:
    """List the localities nearest to a point, with their great-circle distance.

    The municipio of the nearest one need not be that of the point.
    """
    builder = await ResponseBuilder.begin(request, query, releases)
    builder.check_modified()
    rows = await find_nearest(database, builder.release, query.lat, query.lon, query.limit)
    return _answer_places(builder, "Nearest", [describe_near(row) for row in rows])


def _answer_places(builder: ResponseBuilder, title: str, results: Sequence[Mapping[str, Any]]) -> Response:
    points = ((place["longitud"], place["latitud"]) for place in results)
    context: dict[str, Any] = {"inset": draw_inset(points)} if builder.wants_html else {}
    return builder.answer("places.html", title, {"results": results}, **context)


@router.get("/{id:digits}/", summary="Get locality", response_model=LocalityDetail, responses=NO_KEY)
async def get_locality(
    request: Request,
    id: _LOCALITY_ID,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[LocalityQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
) -> Response:
    """Show a locality with every column of the catalogue, its municipio and its estado, or with some columns only."""
    builder = await ResponseBuilder.begin(request, query, releases, id_=id)
    release = builder.release
    row = await repository.get_locality(release, id)
    if row is None:
        await refuse_unknown(repository, localities, release, id)
    builder.check_modified()
    record = describe_locality(row)
    context: dict[str, Any] = {}
    if builder.wants_html:
        border = await find_border(request, releases, repository.database, record["municipio_id"])
        context = await html_context.of_locality(repository, release, record, border)
    fields = split_fields(query.fields) or record
    return builder.answer("locality.html", row.nombre, {name: record[name] for name in fields}, **context)
