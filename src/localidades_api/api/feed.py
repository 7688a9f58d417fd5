"""The Atom feed of releases (RFC 4287), for feed readers and for programs that wait for the next one."""

from typing import Annotated
from uuid import UUID, uuid5

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import LanguageParam
from localidades_api.api.responses import CACHEABLE
from localidades_api.api.services import ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.catalogue.schemas import Release
from localidades_api.html.renderer import render_text, root_of
from localidades_api.http.caching import entity_tag, freshness_headers, is_fresh
from localidades_api.http.paths import PREFIX

_MAX_ENTRIES = 50
_NAMESPACE = UUID("6f0f7a3e-52a1-4d0b-9d6b-7a6f6f1d2c84")  # made once, for the ids of entries

router = APIRouter(route_class=DirectRoute, prefix=f"{PREFIX}/releases", responses=CACHEABLE)


class FeedQuery(BaseModel):
    """The parameters of the feed."""

    model_config = ConfigDict(extra="forbid")

    lang: LanguageParam = None


@router.get("/feed.atom", dependencies=STRICT, include_in_schema=False)
async def show_feed(request: Request, query: Annotated[FeedQuery, Query()], services: ServicesDep) -> Response:
    """Show the releases, newest first; feed readers send no language, so only `lang` chooses it."""
    current = await services.releases.current()
    language = query.lang or "en"
    variant = f"atom.{services.releases.fingerprint}.{language}"
    headers = dict(freshness_headers(current, variant))
    if is_fresh(request.headers.getlist("if-none-match"), entity_tag(current, variant)):
        return Response(status_code=304, headers=headers)
    shown = sorted(services.releases.every, key=lambda release: release.published_at, reverse=True)[:_MAX_ENTRIES]
    body = render_text(
        "feed.atom",
        language,
        root=root_of(request.scope),
        id=_urn("releases"),
        suffix=f"&lang={query.lang}" if query.lang else "",
        entries=[(release, _urn(_identity(release)), services.releases.changes.get(release.name)) for release in shown],
    )
    return Response(body, headers={**headers, "X-Content-Type-Options": "nosniff"}, media_type="application/atom+xml")


def _identity(release: Release) -> str:
    """Return what identifies a release on every service: its name and its file."""
    return f"{release.name} {release.sha256}"


def _urn(name: str) -> str:
    return uuid5(_NAMESPACE, name).urn
