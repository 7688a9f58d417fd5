"""THE router: every route under /api/census."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Self, cast
from urllib.parse import quote, unquote_to_bytes, urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json
from starlette.responses import Response

from localidades_api.census import PREFIX
from localidades_api.errors import InvalidPageError, InvalidParametersError
from localidades_api.freshness import entity_tag, freshness_headers, is_fresh
from localidades_api.page_cache import PageCache, page_headers, raw_freshness, raw_headers
from localidades_api.pagination import PageNumber, neighbours
from localidades_api.problems import plain_name
from localidades_api.releases import ReleaseTracker
from localidades_api.renderers import JSON, Format, Renderer, View, select_renderer
from localidades_api.schemas import (
    Index,
    InvalidPageProblem,
    InvalidParametersProblem,
    Locality,
    NotAcceptableProblem,
    Page,
    Problem,
    Release,
    Resources,
    Totals,
)


class RepresentationQuery(BaseModel):
    """The parameters of every resource."""

    model_config = ConfigDict(extra="forbid")

    format: Annotated[
        Format | None,
        Field(
            description="Representation; wins over the Accept header. `api` is the browsable page.",
            examples=["json"],
        ),
    ] = None
    release: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            description="Name of the release to read; the current one when absent.",
            examples=["2018-09"],
        ),
    ] = None


class PageQuery(RepresentationQuery):
    """The parameters of a list."""

    page: PageNumber = 1


async def refuse_ambiguous_query(request: Request) -> None:
    """Raise InvalidParametersError for a query that is no UTF-8, holds a NUL, or gives a parameter twice.

    A parameter that is ignored or overruled in silence gives a client other data than it asked for.
    """
    raw = unquote_to_bytes(request.scope["query_string"].replace(b"+", b" "))
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidParametersError([("query", "The query is not UTF-8.")]) from None
    if "\0" in text:
        raise InvalidParametersError([("query", "The query holds a NUL.")])
    counts = Counter(name for name, _ in request.query_params.multi_items())
    repeated = [(plain_name(name), "Give this parameter once.") for name, count in counts.items() if count > 1]
    if repeated:
        raise InvalidParametersError(repeated)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What the routes read from; the application's lifespan owns it."""

    releases: ReleaseTracker
    pages: PageCache

    @classmethod
    async def of(cls, request: Request) -> Self:
        """Return the one of the application that serves this request."""
        return cast("Self", request.app.state.catalogue)

    async def release(self, name: str | None) -> Release:
        """Return the release of that name, or the current one."""
        return await (self.releases.current() if name is None else self.releases.named(name))


_STRICT = [Depends(refuse_ambiguous_query)]
_READ_FROM = Annotated[Catalogue, Depends(Catalogue.of)]

_ERRORS: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client holds this very answer already (If-None-Match)."},
    404: {"model": Problem, "description": "There is no such release."},
    406: {
        "model": NotAcceptableProblem,
        "description": "The Accept header allows no representation there is.",
    },
    422: {
        "model": InvalidParametersProblem,
        "description": "A parameter is unknown, repeated or out of its bounds.",
    },
    503: {"model": Problem, "description": "No catalogue is published yet, or the database does not answer."},
}

router = APIRouter(prefix=PREFIX, tags=["census"], responses=_ERRORS)


@router.get("/", response_model=Index, dependencies=_STRICT)
async def get_index(
    request: Request, query: Annotated[RepresentationQuery, Query()], catalogue: _READ_FROM
) -> Response:
    """Tell which release is served, how much it holds, where the lists are, and whom to credit."""
    renderer = select_renderer(query.format, request)
    release = await catalogue.release(query.release)
    if is_fresh(request.headers.getlist("if-none-match"), entity_tag(release, renderer.format)):
        return _not_modified(freshness_headers(release, renderer.format))
    content = describe_release(release).model_dump()
    view = _view(request, query, release, "index.html", "Census", content, freshness_headers(release, "json"))
    return _render(renderer, view, freshness_headers(release, renderer.format))


@router.get(
    "/localidades/",
    response_model=Page[Locality],
    dependencies=_STRICT,
    responses={404: {"model": InvalidPageProblem, "description": "A page past the last, or no such release."}},
)
async def list_localities(request: Request, query: Annotated[PageQuery, Query()], catalogue: _READ_FROM) -> Response:
    """List the localities of a release by clave, then id, 50 a page.

    Follow `Link: rel="next"` to walk one release from end to end, every record once, whatever is published meanwhile.
    """
    renderer = select_renderer(query.format, request)
    release = await catalogue.release(query.release)
    if query.page > max(release.total_pages, 1):  # an empty list has one page, and nothing on it
        raise InvalidPageError(release.total_pages)
    if is_fresh(request.headers.getlist("if-none-match"), entity_tag(release, renderer.format)):
        return _not_modified(page_headers(release, renderer.format, query.page))
    page = await catalogue.pages.page(release, query.page)
    if renderer is JSON:
        answer = Response(page.body)
        answer.raw_headers = raw_headers(raw_freshness(release), page)
        return answer
    view = _view(
        request,
        query,
        release,
        "localities.html",
        "Localidades",
        from_json(page.body),
        page_headers(release, JSON.format, query.page),
        page=query.page,
        neighbours=neighbours(query.page, release.total_pages),
    )
    return _render(renderer, view, page_headers(release, renderer.format, query.page))


@router.get("", include_in_schema=False)
@router.get("/localidades", include_in_schema=False)
async def add_trailing_slash(request: Request) -> Response:
    """Send a client to the path with its trailing slash, by a relative address: the Host header is not trusted."""
    query = request.scope["query_string"]
    location = request.scope["path"].rpartition("/")[2] + "/"
    if query:
        location += "?" + quote(query, safe="!$%&'()*+,;=:@/?-._~")
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})


def describe_release(release: Release) -> Index:
    """Return the index of a release, with the credit that INEGI's terms of free use ask for."""
    if release.is_demo:
        attribution = "Demo: invented municipios and localities; not data of INEGI."
    else:
        attribution = (
            "Fuente: INEGI, Catálogo Único de Claves de Áreas Geoestadísticas Estatales, Municipales y Localidades"
            f" ({release.name}). Rearranged by this service, which INEGI does not endorse."
        )
    return Index(
        release=release.name,
        demo=release.is_demo,
        published_at=release.published_at,
        source=release.source,
        sha256=release.sha256,
        totals=Totals(estados=release.states, municipios=release.municipalities, localidades=release.localities),
        resources=Resources(localidades="localidades/"),
        attribution=attribution,
    )


def _view(
    request: Request,
    query: RepresentationQuery,
    release: Release,
    template: str,
    title: str,
    content: Mapping[str, Any],
    headers: Mapping[str, str],
    **context: object,
) -> View:
    parameters = {**query.model_dump(exclude={"format"}, exclude_none=True, exclude_defaults=True), "format": "json"}
    return View(
        template,
        title,
        content,
        root=request.scope.get("root_path", ""),
        target=f"{request.scope['path']}?{urlencode(parameters)}",
        headers=headers,
        release=release,
        pinned=query.release,
        context=context,
    )


def _not_modified(headers: Mapping[str, str]) -> Response:
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)


def _render(renderer: Renderer, view: View, headers: Mapping[str, str]) -> Response:
    return Response(renderer.render(view), headers={**headers, **renderer.headers})
