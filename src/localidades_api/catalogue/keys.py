"""Official keys, labels of places, and names of releases."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from localidades_api.catalogue.messages import matching

PlaceKind = Literal["localidad", "municipio", "estado"]

STATE_KEYS = range(1, 33)
KEYS_OF_A_STATE = 1000  # a municipio's key is its estado's key and three digits
KEYS_OF_A_MUNICIPIO = 10_000  # a locality's key is its municipio's key and four digits
KEY_DIGITS: Mapping[PlaceKind, int] = {"estado": 2, "municipio": 5, "localidad": 9}
CLAVE_OF_SEAT = "0001"  # of the cabecera of a municipio, by INEGI's convention
CLAVE_DIGITS: Mapping[PlaceKind, int] = {"estado": 2, "municipio": 3, "localidad": 4}


def municipalities_of(estado_id: int) -> tuple[int, int]:
    """Return the lowest and the highest key that a municipio of an estado can have."""
    return estado_id * KEYS_OF_A_STATE, (estado_id + 1) * KEYS_OF_A_STATE - 1


def state_of(municipio_id: int) -> int:
    """Return the key of a municipio's estado."""
    return municipio_id // KEYS_OF_A_STATE


def format_key(kind: PlaceKind, id_: int) -> str:
    """Return a key with its leading zeros."""
    return f"{id_:0{KEY_DIGITS[kind]}d}"


def kind_of_key(id_: int) -> PlaceKind:
    """Return what a key belongs to, by its size: keys of the three kinds don't overlap."""
    if id_ < KEYS_OF_A_STATE:
        return "estado"
    return "municipio" if id_ < KEYS_OF_A_STATE * KEYS_OF_A_STATE else "localidad"


def misspellings(kind: PlaceKind, typed: str) -> set[int]:
    """Return the keys that differ from the digits by a missing zero, a doubled digit, or two swapped digits."""
    digits = KEY_DIGITS[kind]
    found = {typed[:place] + "0" + typed[place:] for place in range(1, len(typed) + 1)}
    found |= {typed[:place] + typed[place + 1 :] for place in range(len(typed))}
    found |= {typed[:place] + typed[place : place + 2][::-1] + typed[place + 2 :] for place in range(len(typed) - 1)}
    return {int(one) for one in found if one and len(one.lstrip("0")) in {digits - 1, digits}}


def label(
    id_: int,
    nombre: str,
    municipio: str,
    estado: str,
    *,
    has_homonym: bool,
    municipio_has_homonym: bool,
) -> str:
    """Return the label of a locality; a clave in brackets distinguishes homonyms within a municipio or an estado."""
    if has_homonym:
        nombre = f"{nombre} ({id_ % KEYS_OF_A_MUNICIPIO:04d})"
    if municipio_has_homonym:
        municipio = f"{municipio} ({id_ // KEYS_OF_A_MUNICIPIO % KEYS_OF_A_STATE:03d})"
    return f"{nombre}, {municipio}, {estado}"


RELEASE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
NameOfRelease = Annotated[
    str,
    Field(json_schema_extra={"pattern": RELEASE_NAME}),
    matching(
        RELEASE_NAME,
        "The name of a release has up to 64 letters, digits, dots, hyphens and underscores, and begins with a letter or"
        " a digit, such as 2018-09.",
    ),
]

_KEY = "^([0-9]{2}|[0-9]{5}|[0-9]{9})$"
KeyOfPlace = Annotated[
    str,
    Field(json_schema_extra={"pattern": _KEY}),
    matching(_KEY, "A key has its leading zeros: nine digits, five for a municipio, two for an estado."),
]
