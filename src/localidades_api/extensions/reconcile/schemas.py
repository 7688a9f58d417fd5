"""The queries and answers of the Reconciliation Service API 0.2 (final report of 10 April 2023)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from localidades_api.catalogue.filters import Omittable
from localidades_api.catalogue.messages import with_message

MAX_CANDIDATES = 5
MAX_LISTED = 100  # members of a query, properties, values of a property, types


class Named(BaseModel):
    """A type, a property or an entity."""

    id: str = Field(examples=["localidad"])
    name: str = Field(examples=["Localidad (locality)"])


class Described(Named):
    """A type, a property or an entity, with a description."""

    description: str = Field(examples=["A settlement of any size, inhabited or not."])


# -- The manifest


class ViewService(BaseModel):
    """The page about an entity."""

    url: str = Field(
        description="An address with `{{id}}` for the key.",
        examples=["http://127.0.0.1:8000/api/census/reconcile/view/?id={{id}}"],
    )


class PreviewService(ViewService):
    """A small page about an entity, for a frame."""

    width: int = Field(description="Pixels.", examples=[400])
    height: int = Field(description="Pixels.", examples=[200])


class Endpoint(BaseModel):
    """An address, in two parts that a client joins."""

    service_url: str = Field(examples=["http://127.0.0.1:8000/api/census/reconcile"])
    service_path: str = Field(examples=["/suggest/entity/"])


class SuggestServices(BaseModel):
    """The endpoints of suggestions while somebody types."""

    entity: Endpoint
    property: Endpoint
    type: Endpoint


class ExtendService(BaseModel):
    """The endpoint that lists the columns to fetch for entities."""

    propose_properties: Endpoint
    property_settings: Sequence[dict[str, Any]] = Field(description="Empty: no property has settings.", examples=[[]])


class Manifest(BaseModel):
    """The manifest: the offers of the service and their addresses."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    versions: Sequence[str] = Field(examples=[["0.2"]])
    name: str = Field(examples=["Localidades de México (INEGI)"])
    identifier_space: str = Field(examples=["https://www.inegi.org.mx/app/ageeml/"])
    schema_space: str = Field(examples=["https://www.inegi.org.mx/app/ageeml/"])
    service_version: str = Field(description="The version of this software.", examples=["0.1.0"])
    default_types: Sequence[Described] = Field(description="The types that entities have.")
    view: ViewService
    preview: PreviewService
    suggest: SuggestServices
    extend: ExtendService
    batch_size: int = Field(description="Queries that one request may have.", examples=[500])


# -- Queries


class EntityValue(BaseModel):
    """The value of a property that is an entity, reconciled before."""

    id: StrictStr
    name: StrictStr = ""


_Value = StrictStr | StrictInt | StrictFloat | EntityValue


class PropertyValue(BaseModel):
    """A property of the entity that is sought; any of several values may be right."""

    pid: StrictStr
    v: Annotated[
        _Value | Annotated[list[_Value], Field(max_length=MAX_LISTED)],
        with_message(f"Give a text, a number, an object with an `id`, or a list of at most {MAX_LISTED} of these."),
    ]

    @property
    def values(self) -> Sequence[str | float | EntityValue]:
        """The values, one or several."""
        return self.v if isinstance(self.v, list) else [self.v]


class ReconciliationQuery(BaseModel):
    """A query of a batch."""

    model_config = ConfigDict(extra="forbid")

    query: StrictStr = ""
    type: Annotated[
        StrictStr | Annotated[list[StrictStr], Field(max_length=MAX_LISTED)] | None,
        with_message("Give the id of a type, or a list of them."),
    ] = None
    limit: float = Field(default=MAX_CANDIDATES, ge=1, le=100)
    properties: list[PropertyValue] = Field(default=[], max_length=MAX_LISTED)
    type_strict: Literal["any", "should", "all"] = "should"

    @property
    def types(self) -> Sequence[str]:
        """The types of the query, if it names any."""
        if self.type is None:
            return []
        return [self.type] if isinstance(self.type, str) else self.type


# -- Answers


class Feature(BaseModel):
    """A difference between the query and a candidate."""

    id: str = Field(description="What differs.", examples=["spelling"])
    value: bool | float = Field(
        description="How much differs, in points, which order the candidates; `false` for a property that was not"
        " compared.",
        examples=[6.5],
    )
    given: str | None = Field(default=None, description="As the query has it.", examples=["Guadalajra"])
    found: str | None = Field(default=None, description="As the catalogue has it.", examples=["Guadalajara"])


class ReconciliationCandidate(Named):
    """An entity that may be the right one for a query."""

    score: float = Field(
        description="100 times the estimated probability that it is the right one.", ge=0, le=100, examples=[98.7]
    )
    match: bool = Field(description="Whether it is meant beyond reasonable doubt.", examples=[True])
    type: Sequence[Named]
    features: Sequence[Feature]


class ReconciliationResult(BaseModel):
    """The answer to one query: its candidates, the likeliest first, or an error."""

    result: Sequence[ReconciliationCandidate]
    error: str | None = Field(
        default=None,
        description="What is wrong with this query; the others are answered.",
        examples=["Give a name or a key."],
    )


def _set_named_apart(schema: dict[str, Any]) -> None:
    """Describe the named property and the map in two parts: in TypeScript the former may be missing, the latter not.

    orval sees the map only in a part, and OpenAPI Generator only in the whole.
    """
    parts = {"properties": schema.pop("properties"), "additionalProperties": schema["additionalProperties"]}
    schema["allOf"] = [{"type": "object", name: part} for name, part in parts.items()]


class ReconciliationBatch(BaseModel):
    """The answer to a batch: a result under the name of each query."""

    # Of a map without a property, openapi-generator makes no class, and Java code that does not compile. Java tries the
    # types of an answer in alphabetical order, and an extension takes whatever it reads.
    model_config = ConfigDict(extra="allow", json_schema_extra=_set_named_apart)
    __pydantic_extra__: dict[str, ReconciliationResult]

    q0: Omittable[ReconciliationResult] = Field(
        default=None, description="The result of the query that is named so, as OpenRefine names the first."
    )


class SuggestedEntity(Described):
    """An entity suggested for a prefix."""

    notable: Sequence[Named]


class ProposedProperties(BaseModel):
    """The properties that entities of a type have."""

    type: str = Field(examples=["localidad"])
    limit: int = Field(examples=[100])
    properties: Sequence[Described]


class ExtensionProperty(BaseModel):
    """A property to fetch."""

    id: StrictStr
    settings: Mapping[str, object] = {}


class ExtensionQuery(BaseModel):
    """The entities and the properties to fetch for them."""

    model_config = ConfigDict(extra="forbid")

    ids: list[StrictStr]
    properties: list[ExtensionProperty] = Field(max_length=MAX_LISTED)


class ExtensionColumn(Named):
    """A property of the answer; `type` is that of its values if they are entities."""

    type: Named | None = None


class ReconciliationExtension(BaseModel):
    """The values of properties, by key and property: a list of one value, or an empty one."""

    meta: Sequence[ExtensionColumn]
    rows: Mapping[str, Mapping[str, Sequence[Mapping[str, str | int | float]]]] = Field(
        examples=[{"010010001": {"poblacion": [{"int": 863893}]}}]
    )
