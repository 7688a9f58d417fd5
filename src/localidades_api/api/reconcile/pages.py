"""The page of an entity, and its preview, which fits into a frame of another site."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api.by_key import refuse_unknown
from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import LanguageParam
from localidades_api.api.problems import ProblemPage
from localidades_api.api.reconcile.vocabulary import kind_of
from localidades_api.api.responses import ERRORS
from localidades_api.api.services import Services, ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.catalogue.keys import KeyOfPlace, PlaceKind, written
from localidades_api.catalogue.schemas import Problem, Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.errors import GoneError, LocalidadesError
from localidades_api.html.i18n import preferred_language
from localidades_api.html.renderer import BrowsableRenderer, View, root_of
from localidades_api.http.paths import PREFIX, RECONCILE

_LISTS = {"localidad": "localidades", "municipio": "municipios", "estado": "estados"}
_MAX_SUCCESSORS = 3  # of a municipio; more don't fit
_TABLES = {"localidad": localities, "municipio": municipalities, "estado": states}
# Any site may show a preview in a frame: it has nothing to click but a link that opens a page of its own.
_FRAMEABLE = BrowsableRenderer.headers["Content-Security-Policy"].replace("frame-ancestors 'none'", "frame-ancestors *")

PREVIEW = f"{RECONCILE}preview/"

router = APIRouter(
    route_class=DirectRoute,
    prefix=f"{PREFIX}/reconcile",
    tags=["Reconciliation"],
    responses=ERRORS,
    dependencies=STRICT,
)


class EntityQuery(BaseModel):
    """The parameters of an entity's page."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[
        KeyOfPlace,
        Field(
            description="Key with its leading zeros: nine digits, five for a municipio, two for an estado.",
            examples=["010010001"],
        ),
    ]


class PreviewQuery(EntityQuery):
    """The parameters of a preview."""

    lang: LanguageParam = None


@router.get(
    "/view/",
    status_code=307,
    response_class=Response,
    responses={307: {"description": "Redirects to the record, which browsers get as a page."}},
)
async def view_entity(query: Annotated[EntityQuery, Query()]) -> Response:
    """Redirect to the page of a localidad, municipio or estado."""
    return Response(status_code=307, headers={"Location": f"../../{_LISTS[_kind(query.id)]}/{int(query.id)}/"})


@router.get(
    "/preview/",
    response_class=Response,
    responses={
        200: {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}},
        404: {"model": Problem, "description": "No release has the key."},
        410: {"model": Problem, "description": "An earlier release had the key, and the served one does not."},
    },
)
async def preview_entity(request: Request, query: Annotated[PreviewQuery, Query()], services: ServicesDep) -> Response:
    """Show an entity on a small HTML page, which other sites may show in a frame."""
    release, kind, id_ = await services.release(None), _kind(query.id), int(query.id)
    row = await _get(services, release, kind, id_)
    if row is None:
        return await refuse_unknown(services, _TABLES[kind], release, id_)
    renderer = BrowsableRenderer()
    view = View(
        "preview.html",
        row.nombre,
        row._asdict(),
        root=root_of(request.scope),
        release=release,
        language=query.lang or preferred_language(request.headers),
        context={"key": query.id, "kind": kind, "target": f"../../{_LISTS[kind]}/{id_}/"},
    )
    own = {"Content-Security-Policy": _FRAMEABLE, "Vary": "Accept-Language", "Cache-Control": "no-cache"}
    headers = {**renderer.headers, **own, "Catalogue-Release": release.name}
    return Response(renderer.render(view), headers=headers)


async def describe_preview_problem(services: Services, error: LocalidadesError, key: str | None) -> ProblemPage:
    """Return the page of a problem in place of a preview, which fits into the same frame."""
    context: Mapping[str, Any] = {}
    if isinstance(error, GoneError) and key:
        with suppress(LocalidadesError):  # the problem alone, if the database does not answer
            context = await _describe_withdrawn(services, error, _kind(key), int(key))
    return ProblemPage("preview_problem.html", context=context, headers={"Content-Security-Policy": _FRAMEABLE})


async def _describe_withdrawn(services: Services, error: GoneError, kind: PlaceKind, id_: int) -> dict[str, Any]:
    """Return the name that an entity had, and what has taken its place."""
    release, last = await services.release(None), await services.releases.named(error.last_release)
    row = await _get(services, last, kind, id_)
    successors = []
    if kind == "localidad" and error.successor:
        if found := await services.repository.get_locality(release, error.successor):
            successors.append((found.id, f"{found.nombre}, {found.municipio_nombre}, {found.estado_nombre}"))
    elif kind == "municipio":
        found_municipalities = await services.areas.list_successors(release, last, id_)
        successors += [(one.id, f"{one.nombre}, {one.estado}") for one in found_municipalities[:_MAX_SUCCESSORS]]
    return {
        **({"name": row.nombre} if row else {}),
        "kind": kind,
        "successors": [
            {"key": written(kind, successor), "label": label, "path": f"{_LISTS[kind]}/{successor}/"}
            for successor, label in successors
        ],
    }


def _kind(key: str) -> PlaceKind:
    kind = kind_of(key)
    assert kind, key  # noqa: S101  # the pattern of the parameter
    return kind


async def _get(services: Services, release: Release, kind: PlaceKind, id_: int) -> Row[Any] | None:
    if kind == "localidad":
        return await services.repository.get_locality(release, id_)
    if kind == "municipio":
        return await services.repository.get_municipality(release, id_)
    return await services.repository.get_state(release, id_)
