"""The types of entities and their properties: those that matching compares, and those that can be fetched."""

from collections.abc import Iterable, Mapping, Sequence

from localidades_api.api.reconcile.schemas import Described, Named
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEY_DIGITS, PlaceKind
from localidades_api.catalogue.locality import ATTRIBUTES
from localidades_api.catalogue.schemas import LocalityRecord

_KIND_OF_DIGITS: Mapping[int, PlaceKind] = {digits: kind for kind, digits in KEY_DIGITS.items()}

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
_NAMED_TYPES: Mapping[PlaceKind, Named] = {kind: Named(id=one.id, name=one.name) for kind, one in TYPES.items()}

_PROPERTIES: Mapping[str, tuple[str, str]] = {
    "id": ("Id", "The official key read as a number."),
    "cvegeo": ("Clave geoestadística", "The official key (CVEGEO), with leading zeros."),
    "clave": ("Clave", "The last part of the key, with leading zeros."),
    "nombre": ("Nombre", "The name, exactly as INEGI publishes it."),
    **{name: (one.label, LocalityRecord.model_fields[name].description or "") for name, one in ATTRIBUTES.items()},
    "localidades": ("Localidades", "Number of localities in the municipio."),
    "abreviatura": ("Abreviatura", "INEGI's abbreviation of the estado."),
    "municipio_id": ("Id del municipio", "The key of the municipio read as a number."),
    "municipio_clave": ("Clave del municipio", "The key of the municipio within its estado, three digits."),
    "municipio": ("Municipio", "The municipio, as an entity."),
    "estado_id": ("Id del estado", "The key of the estado read as a number."),
    "estado_clave": ("Clave del estado", "The key of the estado, two digits."),
    "estado": ("Estado", "The estado, as an entity."),
    "estado_abreviatura": ("Abreviatura del estado", "INEGI's abbreviation of the estado."),
}
PROPERTIES: Mapping[str, Described] = {
    id_: Described(id=id_, name=name, description=description) for id_, (name, description) in _PROPERTIES.items()
}
_OF_MUNICIPIO = ("id", "cvegeo", "clave", "nombre", "localidades")
_PARENT = ("estado_id", "estado_clave", "estado", "estado_abreviatura")
FETCHED: Mapping[PlaceKind, Sequence[str]] = {
    "localidad": tuple(id_ for id_ in PROPERTIES if id_ not in {"localidades", "abreviatura"}),
    "municipio": (*_OF_MUNICIPIO, *_PARENT),
    "estado": ("id", "cvegeo", "clave", "nombre", "abreviatura"),
}
ENTITIES: Mapping[str, PlaceKind] = {
    "municipio": "municipio",
    "estado": "estado",
}  # properties whose values are entities
# The properties that matching compares, in addition to the name.
COMPARED: Mapping[PlaceKind, Sequence[str]] = {
    "localidad": ("municipio", "estado", "latitud", "longitud", "ambito", "cvegeo", "clave"),
    "municipio": ("estado", "cvegeo"),
    "estado": ("cvegeo",),
}
# Other names of these properties: short ones, and equivalent columns.
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


def kind_of(key: str) -> PlaceKind | None:
    """Return the type of entity that a key belongs to; None if it isn't a key."""
    return _KIND_OF_DIGITS.get(len(key)) if key.isascii() and key.isdecimal() else None


def named_type(kind: PlaceKind) -> Named:
    """Return a type as candidates show it."""
    return _NAMED_TYPES[kind]


def known_kind(name: str) -> PlaceKind | None:
    """Return the type with an id, or None."""
    return next((kind for kind in TYPES if kind == name), None)


def beginning_with(prefix: str, items: Iterable[Described]) -> list[Described]:
    """Return the items whose id, name or description has a word with this beginning.

    Exact names come first, then the properties that matching compares: OpenRefine offers one list for both uses.
    """
    folded = fold(prefix)
    found = [one for one in items if f" {folded}" in f" {one.id} {fold(f'{one.name} {one.id} {one.description}')}"]
    return sorted(found, key=lambda one: (folded not in {one.id, fold(one.name)}, one.id not in _COMPARED))
