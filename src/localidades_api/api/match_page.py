"""The page that matches a pasted list or a file in the browser; it asks the resource for rows as any client does."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import ReleaseQuery
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.bulk.rows import ROLES
from localidades_api.html.renderer import root_of
from localidades_api.http.paths import MATCH, MATCH_PAGE

router = APIRouter(route_class=DirectRoute)


@router.get(MATCH_PAGE, include_in_schema=False, dependencies=STRICT)
async def show_match_page(request: Request, query: Annotated[ReleaseQuery, Query()], services: ServicesDep) -> Response:
    """Show the page; as JSON, the address that takes the rows and the headers that it recognizes, folded."""
    builder = await ResponseBuilder.begin(request, query, services)
    if builder.is_not_modified:
        response = builder.not_modified()
    else:
        columns = {name: list(role.headers) for name, role in ROLES.by_name.items()}
        content = {"resource": f"{root_of(request.scope)}{MATCH}", "columns": columns}
        response = builder.answer("match.html", "Match names", content)
    response.headers["Vary"] = "Accept, Accept-Language" if builder.wants_html else "Accept"
    return response
