"""Estados and municipios: the lists and single records."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.params import MunicipalitiesQuery, ReleaseQuery, StatesQuery
from localidades_api.api.redirects import leave_out_blanks
from localidades_api.api.responses import CACHEABLE, LISTED, NO_KEY, ResponseBuilder, answer_by_key, envelope
from localidades_api.api.services import ServicesDep
from localidades_api.catalogue.filters import MunicipalityId, StateId
from localidades_api.catalogue.locality import describe_state
from localidades_api.catalogue.pagination import Paging
from localidades_api.catalogue.schemas import MunicipalityDetail, MunicipalityPage, State, StatePage
from localidades_api.database.models import municipalities, states

router = APIRouter(tags=["Areas"], responses=CACHEABLE)
router.add_api_route("/municipios/filter/", leave_out_blanks, include_in_schema=False)


@router.get("/estados/", summary="List estados", response_model=StatePage, responses=LISTED)
async def list_states(request: Request, query: Annotated[StatesQuery, Query()], services: ServicesDep) -> Response:
    """List the estados of a release, sorted by id."""
    builder = await ResponseBuilder.begin(request, query, services)
    paging = Paging(builder.release.states, query.page, query.page_size, builder.links()).check()
    if builder.is_not_modified:
        return builder.not_modified(paging)
    rows = await services.repository.list_states(builder.release)
    results = [rows[index]._asdict() for index in paging.indexes]
    context = await html_context.of_states(services, builder.release, results) if builder.wants_html else {}
    return builder.answer("states.html", "Estados", envelope(paging, results), paging, **context)


@router.get("/estados/{id:digits}/", summary="Get estado", response_model=State, responses=NO_KEY)
async def get_state(
    request: Request,
    id: Annotated[StateId, Path()],  # noqa: A002  # the parameter's name on the wire
    query: Annotated[ReleaseQuery, Query()],
    services: ServicesDep,
) -> Response:
    """Show an estado of a release."""
    context = partial(html_context.of_state, services)
    get = services.repository.get_state
    return await answer_by_key(
        request, query, services, states, id, get, lambda row: row._asdict(), template="state.html", context=context
    )


@router.get("/municipios/", summary="List municipios", response_model=MunicipalityPage, responses=LISTED)
async def list_municipalities(
    request: Request, query: Annotated[MunicipalitiesQuery, Query()], services: ServicesDep
) -> Response:
    """List the municipios of a release, or of one estado, sorted by id.

    With `page_size=1000`, one page holds every municipio of any estado.
    """
    builder = await ResponseBuilder.begin(request, query, services)
    if query.page == 1 and builder.is_not_modified:  # page 1 always exists, so its 304 needs no query
        return builder.not_modified()
    rows = await services.repository.list_municipalities(builder.release, query.estado_id)
    chosen = {} if query.estado_id is None else {"estado_id": str(query.estado_id)}
    paging = Paging(len(rows), query.page, query.page_size, builder.links(chosen)).check()
    if builder.is_not_modified:
        return builder.not_modified(paging)
    results = [rows[index]._asdict() for index in paging.indexes]
    context = (
        await html_context.of_municipalities(services, builder.release, query.estado_id, results)
        if builder.wants_html
        else {}
    )
    return builder.answer("municipalities.html", "Municipios", envelope(paging, results), paging, **context)


@router.get("/municipios/{id:digits}/", summary="Get municipio", response_model=MunicipalityDetail, responses=NO_KEY)
async def get_municipality(
    request: Request,
    id: Annotated[MunicipalityId, Path()],  # noqa: A002  # the parameter's name on the wire
    query: Annotated[ReleaseQuery, Query()],
    services: ServicesDep,
) -> Response:
    """Show a municipio of a release, and its estado."""
    context = partial(html_context.of_municipality, services)
    get = services.repository.get_municipality
    return await answer_by_key(
        request, query, services, municipalities, id, get, _describe, template="municipality.html", context=context
    )


def _describe(row: Row[Any]) -> dict[str, Any]:
    record = {name: value for name, value in row._asdict().items() if name == "estado_id" or "estado_" not in name}
    return {**record, "estado": describe_state(row)}
