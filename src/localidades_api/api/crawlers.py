"""Files for crawlers.

Their addresses are absolute. They are made from the Host header unless the operator has set the public address, so no
shared cache may keep them for others.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from localidades_api.api.extension import extensions_of
from localidades_api.api.public_address import base_of
from localidades_api.api.services import ReleasesDep, RepositoryDep
from localidades_api.html.guides import GUIDES
from localidades_api.html.renderer import render_text
from localidades_api.http.paths import HELP, LOCALIDADES, MAP_PAGE, MATCH_PAGE, PREFIX, root_of
from localidades_api.http.representation import PRIVATE, respond_with_document

# Records, lists and pages may be indexed; these answer questions, or are files without end for a crawler.
_NOT_FOR_CRAWLERS = [
    f"{LOCALIDADES}{name}" for name in ("download/", "filter/", "match/", "nearest/", "suggest/", "tiles/")
]
_PAGES = (f"{PREFIX}/", f"{PREFIX}/estados/", f"{PREFIX}/municipios/", LOCALIDADES, f"{PREFIX}/releases/")

router = APIRouter(include_in_schema=False)


@router.get("/robots.txt")
async def get_robots(request: Request) -> Response:
    """List the paths that crawlers should leave out, and the address of the sitemap."""
    root = root_of(request.scope)
    paths = [*_NOT_FOR_CRAWLERS, *sorted(extension.path for extension in extensions_of(request) if extension.path)]
    lines = ["User-agent: *", *(f"Disallow: {root}{path}" for path in paths)]
    lines += ["", f"Sitemap: {base_of(request)}/sitemap.xml", ""]
    return _answer(request, "\n".join(lines), "text/plain; charset=utf-8")


@router.get("/sitemap.xml")
async def get_sitemap(request: Request, releases: ReleasesDep, repository: RepositoryDep) -> Response:
    """List the pages, the estados and the municipios, from which every locality can be reached.

    Crawlers may accept anything, and get the pages only by `format=api`.
    """
    release = await releases.current()
    states = await repository.list_states(release)
    municipalities = await repository.list_municipalities(release, None)
    negotiated = [
        *_PAGES,
        MAP_PAGE,
        MATCH_PAGE,
        *(f"{PREFIX}/estados/{state.id}/" for state in states),
        *(f"{PREFIX}/municipios/{municipio.id}/" for municipio in municipalities),
    ]
    paths = [HELP, *(f"{HELP}/{guide}" for guide in GUIDES), "/docs", "/redoc"]
    paths += [f"{path}?format=api" for path in negotiated]
    text = render_text("sitemap.xml", "en", base=base_of(request), paths=paths, day=release.published_at.date())
    return _answer(request, text, "application/xml; charset=utf-8")


def _answer(request: Request, text: str, media_type: str) -> Response:
    return respond_with_document(request.headers, text.encode(), {"Content-Type": media_type}, cache_control=PRIVATE)
