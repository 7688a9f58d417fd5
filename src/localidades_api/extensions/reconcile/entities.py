"""Entities of reconciliation: suggestions while somebody types, properties, pages and previews."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field, model_validator
from pydantic_core import to_json
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import LanguageParam, StrictQuery
from localidades_api.api.problems import ProblemPage
from localidades_api.api.services import NamesDep, ReleasesDep, RepositoryDep
from localidades_api.catalogue.filters import MAX_TEXT_LENGTH, Omittable
from localidades_api.catalogue.keys import KIND_BY_DIGITS, KINDS, KeyOfPlace, PlaceKind, format_key
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import LocalidadesError
from localidades_api.extensions.reconcile.vocabulary import FETCHED, PROPERTIES, TYPES, Term, beginning_with
from localidades_api.html.content_security_policy import CONTENT_SECURITY_POLICY
from localidades_api.html.languages.accept_language import preferred_language
from localidades_api.html.renderer import HTML, JSON, View
from localidades_api.http.paths import PREFIX, root_of
from localidades_api.names.places import Suggested

_PAGE = 10
_MAX_CURSOR = 90
# Parameters for Freebase, which OpenRefine's widget adds to every request.
_OF_WIDGET = frozenset(
    {"spell", "exact", "scoring", "prefixed", "stemmed", "filter", "lang", "key", "format", "output", "mql_output",
     "type_strict"}
)  # fmt: skip

RECONCILE = f"{PREFIX}/reconcile/"
router = APIRouter()


class PrefixQuery(StrictQuery):
    """The parameters of a suggestion: what has been typed so far, and how many suggestions to skip."""

    prefix: str = Field(max_length=MAX_TEXT_LENGTH)
    cursor: Annotated[int, whole_number("Use a whole number from 0 to 90."), Field(ge=0, le=_MAX_CURSOR)] = 0
    type: Omittable[PlaceKind] = None

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name not in _OF_WIDGET}


class ProposeQuery(StrictQuery):
    """The parameters of a proposal of properties."""

    type: PlaceKind = "localidad"
    limit: Annotated[int, whole_number("Use a whole number from 1 to 100."), Field(ge=1, le=100)] = 100


@router.get("/suggest/entity/")
async def suggest_entities(query: Annotated[PrefixQuery, Query()], releases: ReleasesDep, names: NamesDep) -> Response:
    """Suggest localidades, municipios and estados for a partly typed name, the likeliest first."""
    release = await releases.current()
    index = await names.get(release)
    kinds: Sequence[PlaceKind] = list(TYPES) if query.type is None else [query.type]
    found = index.suggest(query.prefix, kinds=kinds, limit=_PAGE)
    if query.cursor:  # the order depends on how many are wanted: without care, pages would repeat some
        more = index.suggest(query.prefix, kinds=kinds, limit=_MAX_CURSOR + _PAGE)
        found = [*found, *(place for place in more if place not in found)][query.cursor : query.cursor + _PAGE]
    return _respond({"result": list(map(_describe, found))}, {"Catalogue-Release": release.name})


@router.get("/suggest/type/")
async def suggest_types(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest types of entities."""
    return _suggest_terms(query, TYPES.values())


@router.get("/suggest/property/")
async def suggest_properties(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest properties of entities, by their Spanish or English names."""
    return _suggest_terms(query, (PROPERTIES[id_] for id_ in (FETCHED[query.type] if query.type else PROPERTIES)))


@router.get("/properties/")
async def propose_properties(query: Annotated[ProposeQuery, Query()]) -> Response:
    """List the properties that data extension can fetch for entities of a type."""
    proposed = [PROPERTIES[id_]._asdict() for id_ in FETCHED[query.type]][: query.limit]
    return _respond({"type": query.type, "limit": query.limit, "properties": proposed})


def _describe(place: Suggested) -> dict[str, Any]:
    key, type_ = format_key(place.kind, place.id), TYPES[place.kind]
    about = {"id": key, "name": place.label, "description": f"{type_.name}, {key}"}
    return {**about, "notable": [type_.identify()]}


def _suggest_terms(query: PrefixQuery, terms: Iterable[Term]) -> Response:
    found = beginning_with(query.prefix, terms)[query.cursor : query.cursor + _PAGE]
    return _respond({"result": [term._asdict() for term in found]})


def _respond(content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(content), headers={"Cache-Control": "no-cache", **JSON.headers, **(headers or {})})


_TABLES = {"localidad": localities, "municipio": municipalities, "estado": states}
# Any site may show a preview in a frame: it has nothing to click except a link that opens a new page.
_FRAMEABLE = CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", "frame-ancestors *")


class EntityQuery(StrictQuery):
    """The parameters of an entity's page: its key with leading zeros."""

    id: KeyOfPlace

    @property
    def kind(self) -> PlaceKind:
        """The type of the entity."""
        return KIND_BY_DIGITS[len(self.id)]


class PreviewQuery(EntityQuery):
    """The parameters of a preview."""

    lang: LanguageParam = None


@router.get("/view/")
async def view_entity(query: Annotated[EntityQuery, Query()]) -> Response:
    """Redirect to the page of a localidad, municipio or estado."""
    return Response(status_code=307, headers={"Location": f"../../{KINDS[query.kind].plural}/{int(query.id)}/"})


@router.get("/preview/")
async def preview_entity(
    request: Request, query: Annotated[PreviewQuery, Query()], releases: ReleasesDep, repository: RepositoryDep
) -> Response:
    """Show an entity on a small HTML page, which other sites may show in a frame."""
    release, kind, id_ = await releases.current(), query.kind, int(query.id)
    row = await _get(repository, release, kind, id_)
    if row is None:
        return await refuse_unknown(repository, _TABLES[kind], release, id_)
    view = View(
        "reconcile/preview.html",
        row.nombre,
        row._asdict(),
        root=root_of(request.scope),
        release=release,
        language=query.lang or preferred_language(request.headers),
        context={"key": query.id, "kind": kind, "target": f"../../{KINDS[kind].plural}/{id_}/"},
    )
    own = {"Content-Security-Policy": _FRAMEABLE, "Vary": "Accept-Language", "Cache-Control": "no-cache"}
    headers = {**HTML.headers, **own, "Catalogue-Release": release.name}
    return Response(HTML.render(view), headers=headers)


async def describe_preview_problem(_request: Request, _error: LocalidadesError) -> ProblemPage:
    """Return the page for a problem with a preview, which fits into the same frame."""
    return ProblemPage("reconcile/preview_problem.html", headers={"Content-Security-Policy": _FRAMEABLE})


async def _get(repository: CatalogueRepository, release: Release, kind: PlaceKind, id_: int) -> Row[Any] | None:
    if kind == "localidad":
        return await repository.get_locality(release, id_)
    if kind == "municipio":
        return await repository.get_municipality(release, id_)
    return await repository.get_state(release, id_)
