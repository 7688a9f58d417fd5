"""The types of entities, and the properties that matching compares and clients can fetch."""

from collections.abc import Iterable, Mapping, Sequence

from localidades_api.catalogue.columns import ATTRIBUTES, COLUMNS
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.extensions.reconcile.schemas import Described, Named

TYPES: Mapping[PlaceKind, Described] = {
    "localidad": Described(
        id="localidad", name="Localidad (locality)", description="A settlement of any size, with a key of nine digits."
    ),
    "municipio": Described(
        id="municipio",
        name="Municipio (municipality)",
        description="A municipio, or a demarcación of Mexico City, with a key of five digits.",
    ),
    "estado": Described(
        id="estado", name="Estado (state)", description="One of the 32 federal entities, with a key of two digits."
    ),
}
NAMED_TYPES: Mapping[PlaceKind, Named] = {kind: Named(id=type_.id, name=type_.name) for kind, type_ in TYPES.items()}

# The meanings of properties that entities of several types have, or whose values are entities.
_MEANINGS: Mapping[str, str] = {
    "id": "The official key read as a number.",
    "cvegeo": "The official key (CVEGEO), with leading zeros.",
    "clave": "The last part of the key, with leading zeros.",
    "municipio_id": "The key of the municipio read as a number.",
    "municipio": "The municipio, as an entity.",
    "estado": "The estado, as an entity.",
}
_OF_ESTADO = ("estado_id", "estado_clave", "estado", "estado_abreviatura")


def _describe(name: str) -> Described:
    column = COLUMNS[name]
    return Described(id=name, name=column.label, description=_MEANINGS.get(name, column.meaning))


_PROPERTIES = (
    *map(_describe, ("id", "cvegeo", "clave", "nombre", *ATTRIBUTES)),
    Described(id="localidades", name="Localidades", description="Number of localities in the municipio."),
    Described(id="abreviatura", name="Abreviatura", description="INEGI's abbreviation of the estado."),
    *map(_describe, ("municipio_id", "municipio_clave", "municipio", *_OF_ESTADO)),
)
PROPERTIES: Mapping[str, Described] = {described.id: described for described in _PROPERTIES}
FETCHED: Mapping[PlaceKind, Sequence[str]] = {
    "localidad": tuple(id_ for id_ in PROPERTIES if id_ not in {"localidades", "abreviatura"}),
    "municipio": ("id", "cvegeo", "clave", "nombre", "localidades", *_OF_ESTADO),
    "estado": ("id", "cvegeo", "clave", "nombre", "abreviatura"),
}
ENTITIES: Mapping[str, PlaceKind] = {"municipio": "municipio", "estado": "estado"}  # properties with entities as values
# Compared in addition to the name.
COMPARED: Mapping[PlaceKind, Sequence[str]] = {
    "localidad": ("municipio", "estado", "latitud", "longitud", "ambito", "cvegeo", "clave"),
    "municipio": ("estado", "cvegeo"),
    "estado": ("cvegeo",),
}
# Other names of compared properties: short ones, and columns with the same content.
ALIASES: Mapping[str, str] = {
    "lat": "latitud",
    "lon": "longitud",
    "id": "cvegeo",
    "municipio_id": "municipio",
    "municipio_clave": "municipio",
    "estado_id": "estado",
    "estado_clave": "estado",
    "estado_abreviatura": "estado",
}
_COMPARED = {id_ for ids in COMPARED.values() for id_ in ids}


def beginning_with(prefix: str, items: Iterable[Described]) -> list[Described]:
    """Return the items whose id, name or description has a word with this beginning.

    Exact names come first, then compared properties: OpenRefine offers one list for comparing and for fetching.
    """
    folded = fold(prefix)
    found = [one for one in items if f" {folded}" in f" {one.id} {fold(f'{one.name} {one.id} {one.description}')}"]
    return sorted(found, key=lambda one: (folded not in {one.id, fold(one.name)}, one.id not in _COMPARED))
