"""The endpoint of the reconciliation service: its manifest, batches of queries, and data extension."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field, ValidationError
from pydantic_core import from_json, to_json
from starlette.responses import Response

from localidades_api import __version__
from localidades_api.api.params import StrictQuery, check_request
from localidades_api.api.public_address import requested_base
from localidades_api.api.responses import ERRORS, OF_RELEASE, REVALIDATED, Responses, problem
from localidades_api.api.services import NamesDep, ReleasesDep, RepositoryDep
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.filters import Omittable
from localidades_api.catalogue.keys import KIND_BY_DIGITS, PlaceKind, format_key
from localidades_api.catalogue.messages import describe_fault, describe_place, plain_name, refuse_parameter
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.downloads import list_records_with_keys
from localidades_api.errors import (
    ContentTooLargeError,
    InvalidParametersError,
    RequestTimeoutError,
    UnsupportedMediaTypeError,
)
from localidades_api.extensions.reconcile import entities
from localidades_api.extensions.reconcile.batch import answer_batch
from localidades_api.extensions.reconcile.entities import RECONCILE
from localidades_api.extensions.reconcile.schemas import (
    Endpoint,
    ExtendService,
    ExtensionColumn,
    ExtensionQuery,
    Manifest,
    PreviewService,
    ReconciliationBatch,
    ReconciliationExtension,
    SuggestServices,
    ViewService,
)
from localidades_api.extensions.reconcile.vocabulary import ENTITIES, FETCHED, NAMED_TYPES, PROPERTIES, TYPES
from localidades_api.html.renderer import JSON
from localidades_api.http.body import read_body
from localidades_api.releases.tracker import ReleaseTracker

MAX_BATCH = 500  # queries, or keys to extend
MAX_BODY = 1_000_000  # bytes
PREVIEW_SIZE = (400, 200)  # pixels
_MAX_FIELDS = 10
_FORM = "application/x-www-form-urlencoded"
# The page about keys and columns; every deployment has the same, so that matched cells stay matched.
_SPACE = "https://www.inegi.org.mx/app/ageeml/"
_FIELDS = ("queries", "extend")
_TOO_LARGE: Responses = {
    413: problem(ContentTooLargeError(MAX_BATCH, "queries"), "The body, or the batch in it, is too large.")
}
_OF_BODY: Responses = {
    408: problem(RequestTimeoutError(), "The client sends the body too slowly."),
    415: problem(UnsupportedMediaTypeError([_FORM]), "The body is not a form."),
}

_QUERIES = '{"q0": {"query": "Aguascalientes", "type": "estado"}}'

TAG = "Reconciliation"
router = APIRouter(prefix=RECONCILE.rstrip("/"), tags=[TAG], responses=ERRORS, dependencies=[Depends(check_request)])


class ReconcileQuery(StrictQuery):
    """The parameters of the endpoint; without any, the answer is the manifest."""

    queries: Omittable[str] = Field(
        default=None,
        description=f"A batch: a JSON object of at most {MAX_BATCH} queries, each under a name of the client's.",
        examples=[_QUERIES],
    )
    extend: Omittable[str] = Field(
        default=None,
        description=f"Data extension: a JSON object of at most {MAX_BATCH} `ids` and the `properties` to fetch.",
        examples=['{"ids": ["140390001"], "properties": [{"id": "poblacion"}]}'],
    )


# One of the fields; /docs sends the other as blank.
_BODY_FIELDS = {
    name: {"type": "string", "description": field.description} for name, field in ReconcileQuery.model_fields.items()
}
_BODY = {
    "required": True,
    "content": {
        _FORM: {
            "schema": {
                "type": "object",
                "properties": {
                    "queries": {**_BODY_FIELDS["queries"], "examples": [_QUERIES]},
                    "extend": {**_BODY_FIELDS["extend"], "examples": [""]},
                },
                "additionalProperties": False,
            }
        }
    },
}


@router.get(
    "/",
    summary="Show the reconciliation service, or ask it",
    response_model=Manifest | ReconciliationBatch | ReconciliationExtension,
    responses={**REVALIDATED, **_TOO_LARGE},
)
async def get_reconciliation(
    request: Request,
    query: Annotated[ReconcileQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    repository: RepositoryDep,
) -> Response:
    """Show the manifest of the reconciliation service, or answer a batch of queries or a data extension.

    OpenRefine and other clients need only the address of this resource. It speaks version 0.2 of the community group's
    Reconciliation Service API.
    """
    fields = query.model_dump(exclude_none=True)
    if not fields:
        manifest = describe_service(requested_base(request)).model_dump(by_alias=True)
        # Its addresses depend on the Host header, so shared caches must not keep it.
        return Response(to_json(manifest), headers={**JSON.headers, "Cache-Control": "no-cache, private"})
    return await _answer(releases, names, repository, fields)


@router.post("", include_in_schema=False)  # a redirect may lose the body
@router.post(
    "/",
    summary="Reconcile or extend a table",
    response_model=ReconciliationBatch | ReconciliationExtension,
    responses={200: {"headers": OF_RELEASE}, **_TOO_LARGE, **_OF_BODY},
    openapi_extra={"requestBody": _BODY},
)
async def reconcile(
    request: Request,
    query: Annotated[StrictQuery, Query()],  # noqa: ARG001  # refuses every parameter
    releases: ReleasesDep,
    names: NamesDep,
    repository: RepositoryDep,
) -> Response:
    """Answer a batch of reconciliation queries, or a data extension, sent as a form.

    A query that is wrong has an `error` among its results; the others of its batch are answered.
    """
    if request.headers.get("content-type", _FORM).partition(";")[0].strip().lower() != _FORM:
        raise UnsupportedMediaTypeError([_FORM])
    return await _answer(releases, names, repository, _read_form(await read_body(request, MAX_BODY)))


router.include_router(entities.router)


def describe_service(base: str) -> Manifest:
    """Return the manifest; `base` is the absolute address of the service, without a trailing slash."""
    root = f"{base}{RECONCILE.rstrip('/')}"
    width, height = PREVIEW_SIZE

    def endpoint(path: str) -> Endpoint:
        return Endpoint(service_url=root, service_path=path)

    return Manifest(
        versions=["0.2"],
        name="Localidades de México (INEGI)",
        identifier_space=_SPACE,
        schema_space=_SPACE,
        service_version=__version__,
        default_types=list(TYPES.values()),
        view=ViewService(url=f"{root}/view/?id={{{{id}}}}"),
        preview=PreviewService(url=f"{root}/preview/?id={{{{id}}}}", width=width, height=height),
        suggest=SuggestServices(
            entity=endpoint("/suggest/entity/"),
            property=endpoint("/suggest/property/"),
            type=endpoint("/suggest/type/"),
        ),
        extend=ExtendService(propose_properties=endpoint("/properties/"), property_settings=[]),
        batch_size=MAX_BATCH,
    )


def _read_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form, without blank ones; raise InvalidParametersError for a form that is malformed."""
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InvalidParametersError([("body", "The body is not a form in UTF-8.")]) from None
    if unknown := dict.fromkeys(name for name, _ in fields if name not in _FIELDS):
        raise InvalidParametersError([(plain_name(name), refuse_parameter(name, _FIELDS)) for name in unknown])
    counts = Counter(name for name, _ in fields)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise InvalidParametersError([(name, "Give this parameter only once.") for name in repeated])
    return {name: value for name, value in fields if value}


async def _answer(
    releases: ReleaseTracker, names: NameIndexes, repository: CatalogueRepository, fields: Mapping[str, str]
) -> Response:
    """Answer the one field of a request."""
    if len(fields) != 1:
        raise InvalidParametersError([(name, "Send either `queries` or `extend`.") for name in _FIELDS])
    text = fields.get("queries")
    release = await releases.current()
    if text is not None:
        batch = _read_object("queries", text)
        _refuse_too_many(batch, "queries")
        content: object = await answer_batch(names, release, batch)
    else:
        query = _read_extension(fields["extend"])
        content = (await extend(repository, release, query)).model_dump(exclude_none=True)
    # No other client needs the answer, and caches can't distinguish bodies.
    headers = {"Cache-Control": "no-store", "Catalogue-Release": release.name}
    return Response(to_json(content), headers={**headers, **JSON.headers})


def _read_object(name: str, text: str) -> dict[str, object]:
    with suppress(ValueError):
        read = from_json(text)
        if isinstance(read, dict):
            return read
    raise InvalidParametersError([(name, "Give a JSON object.")])


def _read_extension(text: str) -> ExtensionQuery:
    content = _read_object("extend", text)
    _refuse_too_many(content, "members")
    if isinstance(ids := content.get("ids"), list):
        _refuse_too_many(ids, "ids")
    try:
        query = ExtensionQuery.model_validate(content)
    except ValidationError as error:
        fault = error.errors()[0]
        sentence = f"{describe_place(fault['loc'])}: {describe_fault(fault)}"
        raise InvalidParametersError([("extend", sentence)]) from None
    return query


def _refuse_too_many(batch: Sized, unit: str) -> None:
    """Raise ContentTooLargeError for more than the manifest allows."""
    if len(batch) > MAX_BATCH:
        raise ContentTooLargeError(MAX_BATCH, unit)


_Cells = Mapping[str, Sequence[Mapping[str, str | int | float]]]


async def extend(repository: CatalogueRepository, release: Release, query: ExtensionQuery) -> ReconciliationExtension:
    """Return the columns of a query: empty cells for unknown keys and for columns that a type lacks.

    Raises InvalidParametersError for properties that no type has.
    """
    ids_of_columns = list(dict.fromkeys(one.id for one in query.properties))
    if unknown := [plain_name(id_) for id_ in ids_of_columns if id_ not in PROPERTIES]:
        raise InvalidParametersError([("extend", f"There is no property {', '.join(unknown)}.")])
    keys: dict[PlaceKind, list[int]] = defaultdict(list)
    for key in query.ids:
        if (kind := KIND_BY_DIGITS.get(len(key))) and key.isascii() and key.isdecimal():
            keys[kind].append(int(key))
    rows: dict[str, _Cells] = {key: {id_: [] for id_ in ids_of_columns} for key in query.ids}
    for kind, ids in keys.items():
        for record in await _fetch(repository, release, kind, ids):
            key = format_key(kind, record["id"])
            rows[key] = {id_: _cell(id_, record) if id_ in FETCHED[kind] else [] for id_ in ids_of_columns}
    return ReconciliationExtension(meta=[_column(id_) for id_ in ids_of_columns], rows=rows)


async def _fetch(
    repository: CatalogueRepository, release: Release, kind: PlaceKind, ids: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the records of a type, each with every column that can be fetched."""
    if kind == "localidad":
        found = await list_records_with_keys(repository.database, release, ids)
    elif kind == "municipio":
        found = list((await repository.list_municipalities_by_key(release, ids)).values())
    else:
        found = [row for row in await repository.list_states(release) if row.id in ids]
    return [{"cvegeo": format_key(kind, row.id), **row._mapping} for row in found]  # noqa: SLF001  # SQLAlchemy's public name


def _column(id_: str) -> ExtensionColumn:
    return ExtensionColumn(
        id=id_, name=PROPERTIES[id_].name, type=NAMED_TYPES[ENTITIES[id_]] if id_ in ENTITIES else None
    )


def _cell(id_: str, record: Mapping[str, Any]) -> Sequence[Mapping[str, str | int | float]]:
    value = record[id_]
    if value is None:
        return []
    if id_ in ENTITIES:
        return [{"id": format_key(ENTITIES[id_], record[f"{id_}_id"]), "name": value}]
    return [{type(value).__name__: value}]  # `str`, `int`, `float` or `bool`, as the protocol names them
