"""The endpoint of the reconciliation service: its manifest, batches of queries, and data extension."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Sized
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field, StrictStr, ValidationError
from pydantic_core import from_json, to_json
from starlette.responses import Response

from localidades_api import __version__
from localidades_api.api.params import StrictQuery, check_request
from localidades_api.api.public_address import requested_base
from localidades_api.api.services import NamesDep, ReleasesDep, RepositoryDep
from localidades_api.caches.name_indexes import NameIndexes
from localidades_api.catalogue.filters import Omittable
from localidades_api.catalogue.keys import KIND_BY_DIGITS, PlaceKind, format_key
from localidades_api.catalogue.messages import describe_fault, describe_place, plain_name, refuse_parameter
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.downloads import list_records_with_keys
from localidades_api.errors import ContentTooLargeError, InvalidParametersError, UnsupportedMediaTypeError
from localidades_api.extensions.reconcile import entities
from localidades_api.extensions.reconcile.batch import MAX_LISTED, answer_batch
from localidades_api.extensions.reconcile.entities import RECONCILE
from localidades_api.extensions.reconcile.vocabulary import ENTITIES, FETCHED, PROPERTIES, TYPES
from localidades_api.html.renderer import JSON
from localidades_api.http.body import read_body
from localidades_api.releases.tracker import ReleaseTracker

_MAX_BATCH = 500  # queries, or keys to extend
_MAX_BODY = 1_000_000  # bytes
_MAX_FIELDS = 10
_FORM = "application/x-www-form-urlencoded"
# The page about keys and columns; every deployment has the same, so that matched cells stay matched.
_SPACE = "https://www.inegi.org.mx/app/ageeml/"
_FIELDS = ("queries", "extend")

router = APIRouter(prefix=RECONCILE.rstrip("/"), include_in_schema=False, dependencies=[Depends(check_request)])


class ReconcileQuery(StrictQuery):
    """The parameters of the endpoint; without any, the answer is the manifest."""

    queries: Omittable[str] = None
    extend: Omittable[str] = None


@router.get("/")
async def get_reconciliation(
    request: Request,
    query: Annotated[ReconcileQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    repository: RepositoryDep,
) -> Response:
    """Show the manifest of the reconciliation service, or answer a batch of queries or a data extension."""
    fields = query.model_dump(exclude_none=True)
    if not fields:
        # Its addresses depend on the Host header, so shared caches must not keep it.
        headers = {**JSON.headers, "Cache-Control": "no-cache, private"}
        return Response(to_json(_manifest(requested_base(request))), headers=headers)
    return await _answer(releases, names, repository, fields)


@router.post("")  # a redirect may lose the body
@router.post("/")
async def reconcile(
    request: Request,
    query: Annotated[StrictQuery, Query()],  # noqa: ARG001  # refuses every parameter
    releases: ReleasesDep,
    names: NamesDep,
    repository: RepositoryDep,
) -> Response:
    """Answer a batch of queries, or a data extension, sent as a form.

    A query that is wrong has an `error` among its results; the others of its batch are answered.
    """
    if request.headers.get("content-type", _FORM).partition(";")[0].strip().lower() != _FORM:
        raise UnsupportedMediaTypeError([_FORM])
    return await _answer(releases, names, repository, _read_form(await read_body(request, _MAX_BODY)))


router.include_router(entities.router)


def _manifest(base: str) -> dict[str, Any]:
    """Return the manifest; `base` is the absolute address of the service, without a trailing slash."""
    root = f"{base}{RECONCILE.rstrip('/')}"

    def endpoint(path: str) -> dict[str, str]:
        return {"service_url": root, "service_path": path}

    return {
        "versions": ["0.2"],
        "name": "Localidades de México (INEGI)",
        "identifierSpace": _SPACE,
        "schemaSpace": _SPACE,
        "serviceVersion": __version__,
        "defaultTypes": [type_._asdict() for type_ in TYPES.values()],
        "view": {"url": f"{root}/view/?id={{{{id}}}}"},
        "preview": {"url": f"{root}/preview/?id={{{{id}}}}", "width": 400, "height": 200},
        "suggest": {what: endpoint(f"/suggest/{what}/") for what in ("entity", "property", "type")},
        "extend": {"propose_properties": endpoint("/properties/"), "property_settings": []},
        "batchSize": _MAX_BATCH,
    }


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
    [(name, text)] = fields.items()
    release = await releases.current()
    members = _read_object(name, text)
    if name == "queries":
        _refuse_too_many(members, "queries")
        content = await answer_batch(names, release, members)
    else:
        content = await extend(repository, release, _read_extension(members))
    # No other client needs the answer, and caches can't distinguish bodies.
    headers = {"Cache-Control": "no-store", "Catalogue-Release": release.name}
    return Response(to_json(content), headers={**headers, **JSON.headers})


def _read_object(name: str, text: str) -> dict[str, object]:
    with suppress(ValueError):
        read = from_json(text)
        if isinstance(read, dict):
            return read
    raise InvalidParametersError([(name, "Give a JSON object.")])


def _refuse_too_many(batch: Sized, unit: str) -> None:
    """Raise ContentTooLargeError for more than the manifest allows."""
    if len(batch) > _MAX_BATCH:
        raise ContentTooLargeError(_MAX_BATCH, unit)


# -- Data extension


class _Property(BaseModel):
    """A property to fetch."""

    id: StrictStr


class ExtensionQuery(BaseModel):
    """The entities and the properties to fetch for them."""

    ids: list[StrictStr]
    properties: list[_Property] = Field(max_length=MAX_LISTED)


def _read_extension(members: Mapping[str, object]) -> ExtensionQuery:
    if isinstance(ids := members.get("ids"), list):
        _refuse_too_many(ids, "ids")
    try:
        return ExtensionQuery.model_validate(members)
    except ValidationError as error:
        fault = error.errors()[0]
        sentence = f"{describe_place(fault['loc'])}: {describe_fault(fault)}"
        raise InvalidParametersError([("extend", sentence)]) from None


async def extend(repository: CatalogueRepository, release: Release, query: ExtensionQuery) -> dict[str, Any]:
    """Return the columns of a query: empty cells for unknown keys and for columns that a type lacks.

    Raises InvalidParametersError for properties that no type has.
    """
    names = list(dict.fromkeys(column.id for column in query.properties))
    if unknown := [plain_name(name) for name in names if name not in PROPERTIES]:
        raise InvalidParametersError([("extend", f"There is no property {', '.join(unknown)}.")])
    keys: dict[PlaceKind, list[int]] = defaultdict(list)
    for key in query.ids:
        if (kind := KIND_BY_DIGITS.get(len(key))) and key.isascii() and key.isdecimal():
            keys[kind].append(int(key))
    rows: dict[str, Any] = {key: {name: [] for name in names} for key in query.ids}
    for kind, ids in keys.items():
        for record in await _fetch(repository, release, kind, ids):
            rows[record["cvegeo"]] = {name: _cell(name, record) if name in FETCHED[kind] else [] for name in names}
    return {"meta": list(map(_describe_column, names)), "rows": rows}


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
    return [{**row._mapping, "cvegeo": format_key(kind, row.id)} for row in found]  # noqa: SLF001  # SQLAlchemy's public name


def _describe_column(name: str) -> dict[str, Any]:
    of_entities = {"type": TYPES[ENTITIES[name]].identify()} if name in ENTITIES else {}
    return {**PROPERTIES[name].identify(), **of_entities}


def _cell(name: str, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    value = record[name]
    if value is None:
        return []
    if name in ENTITIES:
        return [{"id": format_key(ENTITIES[name], record[f"{name}_id"]), "name": value}]
    return [{type(value).__name__: value}]  # `str`, `int`, `float` or `bool`, as the protocol names them
