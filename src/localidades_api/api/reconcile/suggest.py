"""Suggestions while somebody types: entities, types and properties, and the properties of a type."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.reconcile.schemas import Described, ProposedProperties, SuggestedEntity
from localidades_api.api.reconcile.vocabulary import FETCHED, PROPERTIES, TYPES, beginning_with, named_type
from localidades_api.api.responses import ERRORS
from localidades_api.api.services import ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.catalogue.filters import MAX_TEXT_LENGTH
from localidades_api.catalogue.keys import PlaceKind, written
from localidades_api.catalogue.messages import whole_number
from localidades_api.html.renderer import JSON
from localidades_api.http.paths import PREFIX
from localidades_api.names.places import Suggested

_PAGE = 10
_MAX_CURSOR = 90
# What OpenRefine's widget adds to every request for the service that it was once written for, Freebase.
_OF_WIDGET = frozenset(
    {"spell", "exact", "scoring", "prefixed", "stemmed", "filter", "lang", "key", "format", "output", "mql_output",
     "type_strict"}
)  # fmt: skip

router = APIRouter(
    route_class=DirectRoute,
    prefix=f"{PREFIX}/reconcile",
    tags=["Reconciliation"],
    responses=ERRORS,
    dependencies=STRICT,
)

KindParam = Annotated[PlaceKind | None, Field(description="Only what is of this type.", examples=["localidad"])]


class PrefixQuery(BaseModel):
    """The parameters of a suggestion."""

    model_config = ConfigDict(extra="forbid")

    prefix: Annotated[
        str, Field(max_length=MAX_TEXT_LENGTH, description="What has been typed so far.", examples=["pobla"])
    ]
    cursor: Annotated[
        int,
        Field(ge=0, le=_MAX_CURSOR, description="How many suggestions to skip.", examples=[0]),
        whole_number("Use a whole number from 0 to 90."),
    ] = 0
    type: KindParam = None

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name not in _OF_WIDGET}


class ProposeQuery(BaseModel):
    """The parameters of a proposal of properties."""

    model_config = ConfigDict(extra="forbid")

    type: Annotated[PlaceKind, Field(description="The type of the entities.", examples=["localidad"])] = "localidad"
    limit: Annotated[
        int,
        Field(ge=1, le=100, description="Maximum number of properties.", examples=[100]),
        whole_number("Use a whole number from 1 to 100."),
    ] = 100


class SuggestedEntities(BaseModel):
    """Entities that a prefix may mean, the likeliest first."""

    result: Sequence[SuggestedEntity]


class SuggestedItems(BaseModel):
    """Types or properties with a word that begins with a prefix."""

    result: Sequence[Described]


@router.get("/suggest/entity/", response_model=SuggestedEntities)
async def suggest_entities(query: Annotated[PrefixQuery, Query()], services: ServicesDep) -> Response:
    """Suggest localidades, municipios and estados for a partly typed name, the likeliest first."""
    release = await services.release(None, by_name=True)
    names = await services.names.of(release)
    kinds: Sequence[PlaceKind] = list(TYPES) if query.type is None else [query.type]
    found = names.suggest(query.prefix, kinds=kinds, limit=query.cursor + _PAGE)[query.cursor :]
    return _respond(SuggestedEntities(result=[_describe(one) for one in found]), {"Catalogue-Release": release.name})


@router.get("/suggest/type/", response_model=SuggestedItems)
async def suggest_types(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest types of entities."""
    found = beginning_with(query.prefix, TYPES.values())
    return _respond(SuggestedItems(result=found[query.cursor : query.cursor + _PAGE]))


@router.get("/suggest/property/", response_model=SuggestedItems)
async def suggest_properties(query: Annotated[PrefixQuery, Query()]) -> Response:
    """Suggest properties of entities, by their Spanish or English names."""
    ids = list(PROPERTIES) if query.type is None else FETCHED[query.type]
    found = beginning_with(query.prefix, [PROPERTIES[id_] for id_ in ids])
    return _respond(SuggestedItems(result=found[query.cursor : query.cursor + _PAGE]))


@router.get("/properties/", response_model=ProposedProperties)
async def propose_properties(query: Annotated[ProposeQuery, Query()]) -> Response:
    """List the properties that data extension can fetch for entities of a type."""
    found = [PROPERTIES[id_] for id_ in FETCHED[query.type]][: query.limit]
    return _respond(ProposedProperties(type=query.type, limit=query.limit, properties=found))


def _describe(one: Suggested) -> SuggestedEntity:
    key = written(one.kind, one.id)
    type_ = named_type(one.kind)
    return SuggestedEntity(id=key, name=one.label, description=f"{type_.name}, {key}", notable=[type_])


def _respond(content: BaseModel, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json(content), headers={"Cache-Control": "no-cache", **JSON.headers, **(headers or {})})
