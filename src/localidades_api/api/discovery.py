"""Files at well-known addresses for crawlers, assistants and programs.

Where a file has addresses, they are absolute. They are made from the Host header unless the operator has set the public
address, so no shared cache may keep it for others.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.extension import DOCS, OPENAPI, extensions_of
from localidades_api.api.public_address import base_of
from localidades_api.api.services import ReleasesDep, RepositoryDep
from localidades_api.errors import NotFoundError
from localidades_api.html.guides import GUIDES
from localidades_api.html.renderer import render_text
from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.paths import HELP, LOCALIDADES, MAP_PAGE, MATCH_PAGE, PREFIX, root_of
from localidades_api.http.representation import respond_with_document

# Records, lists and pages may be indexed; these answer questions, or are files without end for a crawler.
_NOT_FOR_CRAWLERS = [
    f"{LOCALIDADES}{name}" for name in ("download/", "filter/", "match/", "nearest/", "suggest/", "tiles/")
]
_PAGES = (f"{PREFIX}/", f"{PREFIX}/estados/", f"{PREFIX}/municipios/", LOCALIDADES, f"{PREFIX}/releases/")
_CATALOG = "/.well-known/api-catalog"
_SECURITY_VALIDITY = timedelta(days=180)  # the contact is the operator's setting of now

router = APIRouter(include_in_schema=False)


def _answer(request: Request, text: str | bytes, media_type: str) -> Response:
    content = text.encode() if isinstance(text, str) else text
    headers = {"Content-Type": media_type, "Cache-Control": "no-cache, private"}
    return respond_with_document(request.headers, content, headers)


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


@router.get(_CATALOG)
async def get_api_catalog(request: Request) -> Response:
    """List the APIs, with their descriptions (RFC 9727)."""
    base = base_of(request)
    documents = [
        (f"{PREFIX}/", OPENAPI, DOCS),
        *((one.path, one.definition, one.documentation) for one in extensions_of(request) if one.path),
    ]
    apis: list[dict[str, Any]] = []
    for path, definition, documentation in documents:
        api: dict[str, Any] = {"anchor": f"{base}{path}"}
        if definition:
            api["service-desc"] = [{"href": definition[0].format(base=base), "type": definition[1]}]
        apis.append({**api, "service-doc": [{"href": documentation.format(base=base), "type": "text/html"}]})
    linkset = [{"anchor": f"{base}{_CATALOG}", "item": [{"href": api["anchor"]} for api in apis]}, *apis]
    media_type = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
    answer = _answer(request, to_json({"linkset": linkset}), media_type)
    answer.headers["Link"] = f'<{base}{_CATALOG}>; rel="api-catalog"'
    return answer


@router.get("/llms.txt")
async def get_llms(request: Request, releases: ReleasesDep) -> Response:
    """Describe the service and its look-ups to assistants (llmstxt.org)."""
    release, base = await releases.current(), base_of(request)
    text = render_text(
        "llms.txt",
        "en",
        release=release,
        base=base,
        api=f"{base}{PREFIX}",
        is_open=not request.app.router.dependencies,
        summaries=[extension.summary.format(base=base) for extension in extensions_of(request) if extension.summary],
    )
    return _answer(request, text, "text/plain; charset=utf-8")


@router.get("/.well-known/security.txt")
async def get_security(request: Request) -> Response:
    """Return the contact for reports of vulnerabilities (RFC 9116), if the operator has set one."""
    contact = request.app.state.security_contact
    if contact is None:
        raise NotFoundError("The operator of this service has set no contact for reports on its security.")
    expires = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + _SECURITY_VALIDITY
    text = f"Contact: {contact}\nExpires: {expires:%Y-%m-%dT%H:%M:%SZ}\nPreferred-Languages: es, en\n"
    headers = {"Cache-Control": CACHE_CONTROL, "Content-Type": "text/plain; charset=utf-8"}
    return respond_with_document(request.headers, text.encode(), headers)
