"""The site around the API: pages, documentation, problem types, icon."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.extension import borders_of, extensions_of
from localidades_api.api.html_context import draw_cities, draw_places
from localidades_api.api.params import LanguageQuery, MapQuery, ReleaseQuery, RepresentationQuery, check_request
from localidades_api.api.problems import PROBLEMS, problem_type
from localidades_api.api.public_address import public_url, requested_base
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import ReleasesDep, RepositoryDep
from localidades_api.catalogue.capitals import CAPITAL, CIUDAD_DE_MEXICO
from localidades_api.catalogue.keys import state_of
from localidades_api.catalogue.mercator import MAX_ZOOM
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.areas import list_centres
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.tiles import Overview, get_overview
from localidades_api.errors import CommandError, LocalidadesError, NotFoundError, StatusError
from localidades_api.html.content_security_policy import CONTENT_SECURITY_POLICY
from localidades_api.html.guides import GUIDES, PICTURE_FOLDER, SERVICE, Guide, Site, read_guide
from localidades_api.html.languages.match_words import FAULTS, OUTCOMES
from localidades_api.html.languages.translators import LANGUAGES
from localidades_api.html.renderer import JSON
from localidades_api.html.static_files import STATIC, CompressedStaticFiles
from localidades_api.http.paths import HELP, LOCALIDADES, MAP_PAGE, MATCH, MATCH_PAGE, PREFIX, root_of
from localidades_api.http.representation import PRIVATE, respond_with_document

OFFLINE_DOCS = "/static-swagger-ui"
# Swagger UI and ReDoc have their icons as `data:` addresses. ReDoc inserts style elements: empty ones that its script
# fills, and one with rules.
_STYLES = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"
_POLICY = CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' data:").replace(
    "style-src 'self'", f"style-src 'self' {_STYLES}"
)

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_request)])
offline_docs = CompressedStaticFiles(directory=str(files("fastapi_offline") / "static"))
guide_pictures = CompressedStaticFiles(directory=PICTURE_FOLDER)


@router.get(MATCH_PAGE)
async def show_match_page(
    request: Request, query: Annotated[ReleaseQuery, Query()], releases: ReleasesDep, repository: RepositoryDep
) -> Response:
    """Show the page; as JSON, the address that takes the rows."""
    builder = await ResponseBuilder.begin(request, query, releases)
    builder.check_modified()
    content = {"resource": f"{root_of(request.scope)}{MATCH}"}
    context: dict[str, Any] = {
        "outcomes": OUTCOMES,
        "faults": FAULTS,
        "maxzoom": MAX_ZOOM,
        "states": await repository.list_states(builder.release) if builder.wants_html else [],
    }
    return builder.answer("match.html", "Add keys", content, **context)


@router.get(MAP_PAGE)
async def show_map_page(
    request: Request, query: Annotated[MapQuery, Query()], releases: ReleasesDep, repository: RepositoryDep
) -> Response:
    """Show the page; as JSON, the address of the tiles, and the box around the chosen places."""
    builder = await ResponseBuilder.begin(request, query, releases)
    builder.check_modified()
    release = builder.release
    overview = await get_overview(repository.database, release, query.filters)
    content = {
        "tiles": f"{root_of(request.scope)}{LOCALIDADES}tiles/{{z}}/{{x}}/{{y}}.mvt?release={release.name}",
        "maxzoom": MAX_ZOOM,
        "bounds": overview.bounds,
    }
    context: dict[str, Any] = {}
    if builder.wants_html:
        context = await _map_context(repository, release, query, overview)
        context["borders"] = borders_of(request, releases)
        context["municipios"] = next(filter(None, (extension.municipios for extension in extensions_of(request))), None)
    return builder.answer("map.html", "Map", content, **context)


async def _map_context(
    repository: CatalogueRepository, release: Release, query: MapQuery, overview: Overview
) -> dict[str, Any]:
    """Return the largest places and a drawing of them, the estados, and the names of what the filters choose."""
    states = await repository.list_states(release)
    names = [state.nombre for state in states if state.id == query.estado_id]
    if query.municipio_id is not None:
        named = await repository.list_municipalities_by_key(release, {query.municipio_id})
        names += [f"{area.nombre}, {area.estado}" for area in named.values()]
    chosen = query.filters.chosen
    centred = {state.id: state.nombre for state in states} | {CIUDAD_DE_MEXICO: CAPITAL}
    estado_id = state_of(query.municipio_id) if query.municipio_id else query.estado_id
    return {
        "largest": overview.largest,
        "drawing": draw_places(overview.largest, estado_id) if chosen else await draw_cities(repository, release),
        "states": states,
        "centres": [
            (centre.id, centred[centre.id], round(centre.longitud, 2), round(centre.latitud, 2))
            for centre in await list_centres(repository.database, release)
        ],
        "names": names,
        "chosen": chosen,
    }


def answerable() -> list[type[LocalidadesError]]:
    """Return the types of errors that a response can carry, sorted by status."""
    return sorted(_descendants(LocalidadesError), key=lambda error: error.status)


def _descendants(error: type[LocalidadesError]) -> Iterator[type[LocalidadesError]]:
    if error not in {CommandError, StatusError}:
        yield error
        for child in error.__subclasses__():
            yield from _descendants(child)


@router.get(PROBLEMS)
async def list_problem_types(request: Request, query: Annotated[RepresentationQuery, Query()]) -> Response:
    """List the types of problems, as an HTML page or JSON."""
    root = root_of(request.scope)
    described = [
        {
            "type": problem_type(error, root),
            "title": error.title,
            "status": int(error.status),
            "meaning": error.meaning,
            "remedy": error.remedy,
        }
        for error in answerable()
    ]
    builder = ResponseBuilder.without_release(request, query)
    return builder.answer("problems.html", "API errors", {"results": described})


class DocumentationQuery(RepresentationQuery):
    """The parameters of a page that has no JSON."""

    format: Literal["api"] = "api"


@router.get("/docs")
async def show_swagger_ui(request: Request, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Show Swagger UI, where each operation can be tried."""
    return _documentation(request, query, "docs.html", "API")


@router.get("/redoc")
async def show_redoc(request: Request, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Show ReDoc, where operations and schemas are read."""
    return _documentation(request, query, "redoc.html", "API reference")


def _documentation(request: Request, query: DocumentationQuery, template: str, title: str) -> Response:
    context: dict[str, Any] = {
        "assets": f"{root_of(request.scope)}{OFFLINE_DOCS}",
        "extensions": extensions_of(request),
    }
    response = ResponseBuilder.without_release(request, query).answer(template, title, **context)
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@router.get(HELP)
async def show_help(request: Request, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Explain keys and pages to people who don't program."""
    builder = ResponseBuilder.without_release(request, query)
    return builder.answer("help.html", "Help", guides=[_guide(builder, name) for name in GUIDES])


@router.get(f"{HELP}/{{name}}")
async def show_guide(request: Request, name: str, query: Annotated[DocumentationQuery, Query()]) -> Response:
    """Show a guide of the documentation."""
    if name not in GUIDES:
        raise NotFoundError("There is no such guide. `/help` lists them all.")
    builder = ResponseBuilder.without_release(request, query)
    guide = _guide(builder, name)
    return builder.answer("guide.html", guide.title, guide=guide)


def _guide(builder: ResponseBuilder, name: str) -> Guide:
    root, lang = root_of(builder.request.scope), builder.query.lang
    kept = f"?{urlencode({'lang': lang})}" if lang else ""
    return read_guide(name, builder.language, Site(root, kept, public_url(builder.request) or f"{SERVICE}{root}"))


@router.get("/openapi.json")
async def get_openapi(request: Request, query: Annotated[LanguageQuery, Query()]) -> Response:
    """Return the OpenAPI document; generators send whatever language they run in, so only `lang` chooses it.

    It names this service by an absolute address, as Postman, Insomnia and OpenAPI Generator need it.
    """
    document = {**request.app.openapi(query.lang or LANGUAGES[0]), "servers": [{"url": requested_base(request)}]}
    return respond_with_document(request.headers, to_json(document), JSON.headers, cache_control=PRIVATE)


@router.get("/")
async def go_to_index() -> Response:
    """Redirect to the index of the served release."""
    return Response(status_code=307, headers={"Location": PREFIX.lstrip("/") + "/"})


@router.get("/favicon.ico")
async def get_icon(request: Request) -> Response:
    """Return the icon for pages without `<link rel="icon">`, such as JSON in a browser."""
    icon = (STATIC / "favicon.ico").read_bytes()
    return respond_with_document(request.headers, icon, {"Content-Type": "image/vnd.microsoft.icon"})
