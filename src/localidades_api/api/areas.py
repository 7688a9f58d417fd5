"""Estados and municipios: the lists and single records."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.declarations import CACHEABLE, NO_KEY, PAGINATED
from localidades_api.api.extension import find_border
from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import AreasQuery, MunicipalitiesQuery, ReleaseQuery, StatesQuery
from localidades_api.api.responses import ResponseBuilder, envelope
from localidades_api.api.services import NamesDep, ReleasesDep, RepositoryDep, TilesDep
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.filters import split_fields
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.locality import describe_state
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.pagination import Paging
from localidades_api.catalogue.schemas import MunicipalityDetail, MunicipalityPage, State, StatePage
from localidades_api.database.models import municipalities, states
from localidades_api.releases.tracker import ReleaseTracker

router = APIRouter(tags=["Areas"], responses=CACHEABLE)

# Of any key with so many digits: one that no release has is a 404 that says so.
StateInPath = Annotated[
    int,
    Path(ge=1, le=99, description="Key of an estado, with or without its leading zero.", examples=[1]),
    whole_number("The key of an estado has two digits, 01 to 32."),
]
MunicipalityInPath = Annotated[
    int,
    Path(ge=1, le=99_999, description="Key of a municipio, with or without its leading zero.", examples=[1001]),
    whole_number("The key of a municipio has five digits, such as 01001."),
]


@router.get("/estados/", summary="List estados", response_model=StatePage, responses=PAGINATED)
async def list_states(
    request: Request,
    query: Annotated[StatesQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
    names: NamesDep,
    tiles: TilesDep,
) -> Response:
    """List the estados of a release, all or those that a search finds, sorted by id, or as `sort` says."""
    builder, ids = await _begin(request, query, releases, names, "estado")
    release = builder.release
    quantity = release.states if ids is None else len(ids)
    paging = query.paging(quantity, release=release.name)
    builder.check_modified(paging)
    results = _on_page(await repository.list_states(release, query.sort, ids), paging, query.fields)
    context = await html_context.of_states(tiles, repository, release, results) if builder.wants_html else {}
    return builder.answer("states.html", "Estados", envelope(paging, results), paging, **context)


@router.get("/estados/{id:digits}/", summary="Get estado", response_model=State, responses=NO_KEY)
async def get_state(
    request: Request,
    id: StateInPath,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[ReleaseQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
) -> Response:
    """Show an estado of a release."""
    builder = await ResponseBuilder.begin(request, query, releases, id_=id)
    row = await repository.get_state(builder.release, id)
    if row is None:
        await refuse_unknown(repository, states, builder.release, id)
    builder.check_modified()
    record = row._asdict()
    context = await html_context.of_state(repository, builder.release, record) if builder.wants_html else {}
    return builder.answer("state.html", row.nombre, record, **context)


@router.get("/municipios/", summary="List municipios", response_model=MunicipalityPage, responses=PAGINATED)
async def list_municipalities(
    request: Request,
    query: Annotated[MunicipalitiesQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
    names: NamesDep,
) -> Response:
    """List the municipios of a release, of one estado, or those that a search finds, sorted by id, or as `sort` says.

    With `page_size=1000`, one page holds every municipio of any estado.
    """
    builder, ids = await _begin(request, query, releases, names, "municipio")
    release = builder.release
    if query.page == 1:  # page 1 always exists, so its 304 needs no query
        builder.check_modified()
    rows = await repository.list_municipalities(release, query.estado_id, query.sort, ids)
    paging = query.paging(len(rows), release=release.name)
    results = _on_page(rows, paging, query.fields)
    context: dict[str, Any] = {}
    if builder.wants_html:
        context = await html_context.of_municipalities(repository, release, query.estado_id, results)
    return builder.answer("municipalities.html", "Municipios", envelope(paging, results), paging, **context)


async def _begin(
    request: Request, query: AreasQuery, releases: ReleaseTracker, names: NameIndexes, kind: PlaceKind
) -> tuple[ResponseBuilder, list[int] | None]:
    """Begin the response of a list; return also the keys that a search finds, the likeliest first."""
    builder = await ResponseBuilder.begin(request, query, releases)
    if query.search is None:
        return builder, None
    index = await names.get(builder.release)
    builder.depend_on(index)
    return builder, index.find_areas(query.search, kind)


def _on_page(rows: Sequence[Row[Any]], paging: Paging, fields: str | None) -> list[dict[str, Any]]:
    records = (rows[index]._asdict() for index in paging.indexes)
    chosen = split_fields(fields)
    return [{name: record[name] for name in chosen or record} for record in records]


@router.get("/municipios/{id:digits}/", summary="Get municipio", response_model=MunicipalityDetail, responses=NO_KEY)
async def get_municipality(
    request: Request,
    id: MunicipalityInPath,  # noqa: A002  # the parameter's name on the wire
    query: Annotated[ReleaseQuery, Query()],
    releases: ReleasesDep,
    repository: RepositoryDep,
) -> Response:
    """Show a municipio of a release, and its estado."""
    builder = await ResponseBuilder.begin(request, query, releases, id_=id)
    row = await repository.get_municipality(builder.release, id)
    if row is None:
        await refuse_unknown(repository, municipalities, builder.release, id)
    builder.check_modified()
    columns = {name: value for name, value in row._asdict().items() if name == "estado_id" or "estado_" not in name}
    record = {**columns, "estado": describe_state(row)}
    context: dict[str, Any] = {}
    if builder.wants_html:
        border = await find_border(request, releases, repository.database, id)
        context = await html_context.of_municipality(repository, builder.release, id, border)
    return builder.answer("municipality.html", row.nombre, record, **context)
