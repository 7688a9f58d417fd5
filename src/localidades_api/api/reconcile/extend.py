"""Data extension: the columns of localities, municipios and estados, by key."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from localidades_api.api.reconcile.schemas import Extension, ExtensionColumn, ExtensionQuery
from localidades_api.api.reconcile.vocabulary import ENTITIES, FETCHED, PROPERTIES, kind_of, named_type
from localidades_api.api.services import Services
from localidades_api.catalogue.keys import PlaceKind, written
from localidades_api.catalogue.messages import plain_name
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import InvalidParametersError

_Cells = Mapping[str, Sequence[Mapping[str, str | int | float]]]


async def extend(services: Services, release: Release, query: ExtensionQuery) -> Extension:
    """Return the columns asked for: empty cells for unknown keys, and for columns that a type does not have.

    Raises InvalidParametersError for properties that no type has.
    """
    asked = list(dict.fromkeys(one.id for one in query.properties))
    if unknown := [plain_name(id_) for id_ in asked if id_ not in PROPERTIES]:
        raise InvalidParametersError([("extend", f"There is no property {', '.join(unknown)}.")])
    keys: dict[PlaceKind, list[int]] = defaultdict(list)
    for key in query.ids:
        if kind := kind_of(key):
            keys[kind].append(int(key))
    rows: dict[str, _Cells] = {key: {id_: [] for id_ in asked} for key in query.ids}
    for kind, ids in keys.items():
        for record in await _fetch(services, release, kind, ids):
            key = written(kind, record["id"])
            rows[key] = {id_: _cell(id_, record) if id_ in FETCHED[kind] else [] for id_ in asked}
    return Extension(meta=[_column(id_) for id_ in asked], rows=rows)


async def _fetch(services: Services, release: Release, kind: PlaceKind, ids: Sequence[int]) -> list[dict[str, Any]]:
    """Return the records of a type, each with every column that can be fetched."""
    if kind == "localidad":
        found = await services.records.list_by_key(release, ids)
    elif kind == "municipio":
        found = list((await services.repository.name_municipalities(release, ids)).values())
    else:
        found = [row for row in await services.repository.list_states(release) if row.id in ids]
    return [{"cvegeo": written(kind, row.id), **row._mapping} for row in found]  # noqa: SLF001  # SQLAlchemy's public name


def _column(id_: str) -> ExtensionColumn:
    type_ = named_type(ENTITIES[id_]) if id_ in ENTITIES else None
    return ExtensionColumn(id=id_, name=PROPERTIES[id_].name, type=type_)


def _cell(id_: str, record: Mapping[str, Any]) -> Sequence[Mapping[str, str | int | float]]:
    value = record[id_]
    if value is None:
        return []
    if id_ in ENTITIES:
        return [{"id": written(ENTITIES[id_], record[f"{id_}_id"]), "name": value}]
    if isinstance(value, str):
        return [{"str": value}]
    return [{"int" if isinstance(value, int) else "float": value}]
