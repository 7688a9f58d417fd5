"""Entities of reconciliation: suggestions while somebody types, properties, pages and previews."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, model_validator
from pydantic_core import to_json
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api.declarations import NO_KEY, REVALIDATED, REVALIDATED_RELEASE, header, problem
from localidades_api.api.gone import refuse_unknown
from localidades_api.api.params import LanguageParam, StrictQuery
from localidades_api.api.problems import ProblemPage
from localidades_api.api.services import NamesDep, ReleasesDep, RepositoryDep, Services, services_of
from localidades_api.catalogue.filters import MAX_TEXT_LENGTH, Omittable
from localidades_api.catalogue.keys import KIND_BY_DIGITS, KINDS, KeyOfPlace, PlaceKind, format_key
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.schemas import Release
from localidades_api.database.models import localities, municipalities, states
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.errors import GoneError, LocalidadesError
from localidades_api.extensions.reconcile.schemas import Described, ProposedProperties, SuggestedEntity
from localidades_api.extensions.reconcile.vocabulary import FETCHED, NAMED_TYPES, PROPERTIES, TYPES, beginning_with
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

KindParam = Annotated[Omittable[PlaceKind], Field(description="Only entities of this type.", examples=["localidad"])]


class PrefixQuery(StrictQuery):
    """The parameters of a suggestion."""

    prefix: str = Field(max_length=MAX_TEXT_LENGTH, description="What has been typed so far.", examples=["pobla"])
    cursor: Annotated[int, whole_number("Use a whole number from 0 to 90.")] = Field(
        default=0, ge=0, le=_MAX_CURSOR, description="How many suggestions to skip.", examples=[0]
    )
    type: KindParam = None

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name not in _OF_WIDGET}


class ProposeQuery(StrictQuery):
    """The parameters of a proposal of properties."""

    type: PlaceKind = Field(default="localidad", description="The type of the entities.", examples=["localidad"])
    limit: Annotated[int, whole_number("Use a whole number from 1 to 100.")] = Field(
        default=100, ge=1, le=100, description="Maximum number of properties.", examples=[100]
    )


class SuggestedEntities(BaseModel):
    """Entities for a prefix, the likeliest first."""

    result: Sequence[SuggestedEntity]


class SuggestedItems(BaseModel):
    """Types or properties with a word that begins with a prefix."""

    result: Sequence[Described]


@router.get(
    "/suggest/entity/", summary="Suggest entities", response_model=SuggestedEntities, responses=REVALIDATED_RELEASE
)
async def suggest_entities(query: Annotated[PrefixQuery, Query()], releases: ReleasesDep, names: NamesDep) -> Response:
    """Suggest localidades, municipios and estados for a partly typed name, the likeliest first."""
    release = await releases.current()
    index = await names.get(release)
    kinds: Sequence[PlaceKind] = list(TYPES) if query.type is None else [query.type]
    found = index.suggest(query.prefix, kinds=kinds, limit=_PAGE)
    if query.cursor:  # the order depends on how many are wanted: without care, pages would repeat some
        more = index.suggest(query.prefix, kinds=kinds, limit=_MAX_CURSOR + _PAGE)
        found = [*found, *(place for place in more if place not in found)][query.cursor : query.cursor + _PAGE]
    return _respond(SuggestedEntities(result=list(map(_describe, found))), {"Catalogue-Release": release.name})


@router.get("/suggest/type/", summary="Suggest types", response_model=SuggestedItems, responses=REVALIDATED)
async def suggest_types(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest types of entities."""
    found = beginning_with(query.prefix, TYPES.values())
    return _respond(SuggestedItems(result=found[query.cursor : query.cursor + _PAGE]))


@router.get("/suggest/property/", summary="Suggest properties", response_model=SuggestedItems, responses=REVALIDATED)
async def suggest_properties(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest properties of entities, by their Spanish or English names."""
    ids = list(PROPERTIES) if query.type is None else FETCHED[query.type]
    found = beginning_with(query.prefix, [PROPERTIES[id_] for id_ in ids])
    return _respond(SuggestedItems(result=found[query.cursor : query.cursor + _PAGE]))


@router.get("/properties/", summary="Propose properties", response_model=ProposedProperties, responses=REVALIDATED)
async def propose_properties(query: Annotated[ProposeQuery, Query()]) -> Response:
    """List the properties that data extension can fetch for entities of a type."""
    found = [PROPERTIES[id_] for id_ in FETCHED[query.type]][: query.limit]
    return _respond(ProposedProperties(type=query.type, limit=query.limit, properties=found))


def _describe(place: Suggested) -> SuggestedEntity:
    key = format_key(place.kind, place.id)
    type_ = NAMED_TYPES[place.kind]
    return SuggestedEntity(id=key, name=place.label, description=f"{type_.name}, {key}", notable=[type_])


def _respond(content: BaseModel, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(content), headers={"Cache-Control": "no-cache", **JSON.headers, **(headers or {})})


_TABLES = {"localidad": localities, "municipio": municipalities, "estado": states}
# Any site may show a preview in a frame: it has nothing to click except a link that opens a new page.
_FRAMEABLE = CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", "frame-ancestors *")


class EntityQuery(StrictQuery):
    """The parameters of an entity's page."""

    id: KeyOfPlace = Field(
        description="Key with its leading zeros: nine digits, five for a municipio, two for an estado.",
        examples=["010010001"],
    )

    @property
    def kind(self) -> PlaceKind:
        """The type of the entity."""
        return KIND_BY_DIGITS[len(self.id)]


class PreviewQuery(EntityQuery):
    """The parameters of a preview."""

    lang: LanguageParam = None


@router.get(
    "/view/",
    summary="View entity",
    status_code=307,
    response_class=Response,
    response_description="Redirects to the record, which browsers get as a page.",
    responses={
        307: {"headers": {"Location": header("The relative address of the record.", "../../localidades/10010001/")}}
    },
)
async def view_entity(query: Annotated[EntityQuery, Query()]) -> Response:
    """Redirect to the page of a localidad, municipio or estado."""
    return Response(status_code=307, headers={"Location": f"../../{KINDS[query.kind].plural}/{int(query.id)}/"})


@router.get(
    "/preview/",
    summary="Preview entity",
    response_class=Response,
    response_description="The page.",
    responses={
        200: {**REVALIDATED_RELEASE[200], "content": {"text/html": {"schema": {"type": "string"}}}},
        404: {**NO_KEY[404], "description": "No release has the key."},
        410: problem(GoneError("2012-06", 10010002), "An earlier release had the key, and the served one does not."),
    },
)
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


async def describe_preview_problem(request: Request, error: LocalidadesError) -> ProblemPage:
    """Return the page for a problem with a preview, which fits into the same frame."""
    context: Mapping[str, Any] = {}
    if isinstance(error, GoneError):
        key = request.query_params["id"]
        with suppress(LocalidadesError):  # only the problem, if the database does not answer
            context = await _describe_withdrawn(services_of(request), error, KIND_BY_DIGITS[len(key)], int(key))
    return ProblemPage(
        "reconcile/preview_problem.html", context=context, headers={"Content-Security-Policy": _FRAMEABLE}
    )


async def _describe_withdrawn(services: Services, error: GoneError, kind: PlaceKind, id_: int) -> dict[str, Any]:
    """Return the last record of an entity, and the locality that replaced it; each may be None."""
    release, last = await services.releases.current(), await services.releases.named(error.last_release)
    return {
        "record": await _get(services.repository, last, kind, id_),
        "successor": await services.repository.get_locality(release, error.successor) if error.successor else None,
    }


async def _get(repository: CatalogueRepository, release: Release, kind: PlaceKind, id_: int) -> Row[Any] | None:
    if kind == "localidad":
        return await repository.get_locality(release, id_)
    if kind == "municipio":
        return await repository.get_municipality(release, id_)
    return await repository.get_state(release, id_)
