"""The types of entities, and the properties that matching compares and clients can fetch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from localidades_api.catalogue.columns import ATTRIBUTES, COLUMNS
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind


class Term(NamedTuple):
    """A type of entities, or a property of theirs."""

    id: str
    name: str
    description: str

    def identify(self) -> dict[str, str]:
        """Return its id and name, as an answer mentions it."""
        return {"id": self.id, "name": self.name}


TYPES: Mapping[PlaceKind, Term] = {
    "localidad": Term("localidad", "Localidad (locality)", "A settlement of any size, with a key of nine digits."),
    "municipio": Term(
        "municipio",
        "Municipio (municipality)",
        "A municipio, or a demarcación of Mexico City, with a key of five digits.",
    ),
    "estado": Term("estado", "Estado (state)", "One of the 32 federal entities, with a key of two digits."),
}

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


def _describe(name: str) -> Term:
    column = COLUMNS[name]
    return Term(name, column.label, _MEANINGS.get(name, column.meaning))


_PROPERTIES = (
    *map(_describe, ("id", "cvegeo", "clave", "nombre", *ATTRIBUTES)),
    Term("localidades", "Localidades", "Number of localities in the municipio."),
    Term("abreviatura", "Abreviatura", "INEGI's abbreviation of the estado."),
    *map(_describe, ("municipio_id", "municipio_clave", "municipio", *_OF_ESTADO)),
)
PROPERTIES: Mapping[str, Term] = {term.id: term for term in _PROPERTIES}
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


def beginning_with(prefix: str, terms: Iterable[Term]) -> list[Term]:
    """Return the terms whose id, name or description has a word with this beginning.

    Exact names come first, then compared properties: OpenRefine offers one list for comparing and for fetching.
    """
    folded = fold(prefix)

    def begins(term: Term) -> bool:
        return f" {folded}" in f" {term.id} {fold(f'{term.name} {term.id} {term.description}')}"

    return sorted(
        filter(begins, terms), key=lambda term: (folded not in {term.id, fold(term.name)}, term.id not in _COMPARED)
    )
