"""Localities: the list, single records, suggestions and the nearest places."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import LocalitiesQuery, LocalityQuery, NearestQuery, SuggestQuery
from localidades_api.api.redirects import filled, see_search
from localidades_api.api.responses import CACHEABLE, LISTED, NO_KEY, ResponseBuilder
from localidades_api.api.services import Services, ServicesDep
from localidades_api.catalogue.filters import split_fields
from localidades_api.catalogue.locality import describe_locality, describe_near, encode_envelope, encode_localities
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.pagination import PAGE_SIZE, Paging
from localidades_api.catalogue.schemas import (
    LocalityDetail,
    LocalityPage,
    NearbyPlaceResults,
    Release,
    SuggestionResults,
)
from localidades_api.database.models import localities
from localidades_api.database.queries.nearest import find_nearest
from localidades_api.names.index import NameIndex

router = APIRouter(prefix="/localidades", tags=["Localities"], responses=CACHEABLE)

_SIMILAR = 3  # suggestions on the page of a search without results, from the whole country


@router.get("/filter/", include_in_schema=False)
async def search_or_filter(request: Request) -> Response:
    """Redirect a form to the list, or to the place with the key that was typed."""
    return see_search(filled(request))


_LOCALITY_ID = Annotated[
    int,
    Path(ge=1, le=999_999_999, description="Official key, with or without its leading zero.", examples=[10010001]),
    whole_number("The key of a locality has nine digits, such as 010010001."),
]


@router.get("/", summary="List localities", response_model=LocalityPage, responses=LISTED)
async def list_localities(
    request: Request, query: Annotated[LocalitiesQuery, Query()], services: ServicesDep
) -> Response:
    """List the localities of a release, all or filtered, sorted by clave, then id, or as `sort` says.

    Follow `Link: rel="next"` to read a whole release: every record comes once, even if another release is published
    meanwhile.
    """
    builder = await ResponseBuilder.begin(request, query, services, by_name=query.search is not None)
    names = await services.names.get(builder.release) if query.search is not None else None
    if names:
        builder = builder.depending_on(names)
    if query.kept or query.page_size != PAGE_SIZE:
        return await _list_chosen(builder, query, names, services)
    release = builder.release
    paging = Paging(release.localities, query.page, PAGE_SIZE, builder.links()).check()
    builder.check_modified(paging)
    page = await services.pages.get(release, query.page)
    context = await html_context.of_localities(services, release, query, page) if builder.wants_html else {}
    return builder.answer("localities.html", "Localidades", page, paging, **context)


async def _list_chosen(
    builder: ResponseBuilder, query: LocalitiesQuery, names: NameIndex | None, services: Services
) -> Response:
    """Answer with a page of a list with filters, an order, columns or a page size of the client's choice."""
    if query.page == 1:  # page 1 always exists, so its 304 needs no query
        builder.check_modified()
    positions = await services.positions.get(builder.release, query, query.sort, names)
    paging = Paging(len(positions), query.page, query.page_size, builder.links(query.kept)).check()
    builder.check_modified(paging)
    on_page = positions[paging.indexes.start : paging.indexes.stop]
    results = await _list_at(builder.release, query, on_page, names, services) if on_page else ""
    body = encode_envelope(paging.quantity, paging.total_pages, results)
    context: dict[str, Any] = {}
    if builder.wants_html:
        context = await html_context.of_localities(services, builder.release, query, body)
        if names and query.search and not positions:
            context["similar"] = names.suggest(query.search, limit=_SIMILAR)
    return builder.answer("localities.html", "Localidades", body, paging, **context)


async def _list_at(
    release: Release, query: LocalitiesQuery, positions: Sequence[int], names: NameIndex | None, services: Services
) -> str:
    """Return the localities at these positions as JSON; the results of a search come from the index of names."""
    if names is None or query.fields:
        return await services.repository.list_at_positions(release, positions, split_fields(query.fields))
    return encode_localities(names.at(positions))


@router.get("/suggest/", summary="Suggest localities", response_model=SuggestionResults)
async def suggest_localities(
    request: Request, query: Annotated[SuggestQuery, Query()], services: ServicesDep
) -> Response:
    """Suggest localities for a partly typed name, the likeliest first.

    The words may name the place, its municipio and its estado, in any order, abbreviated or with typos; the last may
    be unfinished. Keys lead to their places, and names and keys of earlier releases to those of this one. How well a
    place matches and how large it is are weighed together.
    """
    builder = await ResponseBuilder.begin(request, query, services, by_name=True)
    names = await services.names.get(builder.release)
    builder = builder.depending_on(names)
    builder.check_modified()
    return _answer_places(builder, "Suggestions", _suggest(names, query))


def _suggest(names: NameIndex, query: SuggestQuery) -> dict[str, Any]:
    """Return the suggestions for a query as a resource."""
    found = names.suggest(
        query.q,
        kinds=query.kinds,
        estado_id=query.estado_id,
        municipio_id=query.municipio_id,
        limit=query.limit,
    )
    return {"results": [one.describe() for one in found]}


@router.get("/nearest/", summary="List nearest localities", response_model=NearbyPlaceResults)
async def list_nearest_localities(
    request: Request, query: Annotated[NearestQuery, Query()], services: ServicesDep
) -> Response:
    """List the localities nearest to a point, with their great-circle distance."""
    builder = await ResponseBuilder.begin(request, query, services)
    builder.check_modified()
    found = await find_nearest(services.database, builder.release, query.lat, query.lon, query.limit)
    results = [describe_near(row) for row in found]
    return _answer_places(builder, "Nearest", {"results": results})


def _answer_places(builder: ResponseBuilder, title: str, content: Mapping[str, Any]) -> Response:
    context = html_context.of_places(content["results"]) if builder.wants_html else {}
    return builder.answer("places.html", title, content, **context)


@router.get("/{id:digits}/", summary="Get locality", response_model=LocalityDetail, responses=NO_KEY)
async def get_locality(
    request: Request,
    id: _LOCALITY_ID,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[LocalityQuery, Query()],
    services: ServicesDep,
) -> Response:
    """Show a locality with every column of the catalogue, its municipio and its estado, or with some columns only."""
    builder = await ResponseBuilder.begin_record(request, query, services, id)
    row = await services.repository.get_locality(builder.release, id)
    if row is None:
        await refuse_unknown(services, localities, builder.release, id)
    record = describe_locality(row)
    context = await html_context.of_locality(services, builder.release, record) if builder.wants_html else {}
    fields = split_fields(query.fields) or record
    return builder.answer("locality.html", row.nombre, {name: record[name] for name in fields}, **context)
