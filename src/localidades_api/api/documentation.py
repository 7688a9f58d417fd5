"""The documentation of the API in the frame of the site: Swagger UI to try operations, and a reference to read."""

from importlib.resources import files
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import LanguageParam
from localidades_api.api.strict import STRICT
from localidades_api.html.i18n import preferred_language
from localidades_api.html.reference import describe_reference
from localidades_api.html.renderer import HTML, View, root_of

SWAGGER_UI = "/static-swagger-ui"
# Swagger UI has its icons as `data:` addresses.
_POLICY = HTML.headers["Content-Security-Policy"].replace("img-src 'self'", "img-src 'self' data:")

router = APIRouter(route_class=DirectRoute, include_in_schema=False, dependencies=STRICT)
swagger_ui = StaticFiles(directory=str(files("fastapi_offline") / "static"))


class DocumentationQuery(BaseModel):
    """The parameters of a page that is HTML alone."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["api"] | None = None
    lang: LanguageParam = None


@router.get("/docs")
async def show_swagger_ui(request: Request, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Show Swagger UI, where each operation can be tried."""
    response = _page(request, query, "docs.html", "API", assets=f"{root_of(request.scope)}{SWAGGER_UI}")
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@router.get("/redoc")
async def show_reference(request: Request, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Show every operation and schema as one page, which needs no JavaScript."""
    return _page(request, query, "reference.html", "API reference", **describe_reference(request.app.openapi()))


def _page(request: Request, query: DocumentationQuery, template: str, title: str, **context: object) -> Response:
    view = View(
        template,
        title,
        {},
        root=root_of(request.scope),
        language=query.lang or preferred_language(request.headers),
        query={"lang": query.lang} if query.lang else {},
        context=context,
    )
    return Response(HTML.render(view), headers={"Vary": "Accept-Language", **HTML.headers})
