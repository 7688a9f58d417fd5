"""Official keys, labels of places, and names of releases."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from localidades_api.catalogue.messages import matching

PlaceKind = Literal["localidad", "municipio", "estado"]


class KindOfPlace(NamedTuple):
    """The digits of a key, how many of them are the clave, and the plural, which is the folder of its resources."""

    digits: int
    clave_digits: int
    plural: str


KINDS: Mapping[PlaceKind, KindOfPlace] = {
    "estado": KindOfPlace(2, 2, "estados"),
    "municipio": KindOfPlace(5, 3, "municipios"),
    "localidad": KindOfPlace(9, 4, "localidades"),
}
KIND_BY_DIGITS: Mapping[int, PlaceKind] = {key.digits: kind for kind, key in KINDS.items()}

STATE_KEYS = range(1, 33)
KEYS_OF_A_STATE = 1000  # a municipio's key is its estado's key and three digits
KEYS_OF_A_MUNICIPIO = 10_000  # a locality's key is its municipio's key and four digits
CLAVE_OF_SEAT = "0001"  # of the cabecera of a municipio, by INEGI's convention


def municipalities_of(estado_id: int) -> tuple[int, int]:
    """Return the lowest and the highest key that a municipio of an estado can have."""
    return estado_id * KEYS_OF_A_STATE, (estado_id + 1) * KEYS_OF_A_STATE - 1


def state_of(municipio_id: int) -> int:
    """Return the key of a municipio's estado."""
    return municipio_id // KEYS_OF_A_STATE


def format_key(kind: PlaceKind, id_: int) -> str:
    """Return a key with its leading zeros."""
    return f"{id_:0{KINDS[kind].digits}d}"


def kind_of_key(id_: int) -> PlaceKind:
    """Return what a key belongs to, by its size: keys of the three kinds don't overlap."""
    if id_ < KEYS_OF_A_STATE:
        return "estado"
    return "municipio" if id_ < KEYS_OF_A_STATE * KEYS_OF_A_STATE else "localidad"


_FRACTION = re.compile(r"([0-9]+)[.,]0+")  # a number with decimals: 140390001.00
_GROUPS = re.compile(r"[0-9]{1,3}(?:[,. ][0-9]{3})+")  # a number with separators: 140,390,001
_PARTS = re.compile(
    r"([0-9]{1,2})[-/]([0-9]{1,3})[-/]([0-9]{1,4})|([0-9]{2})[. ]([0-9]{3})[. ]([0-9]{4})"
)  # 14-039-0001
_POWER = re.compile(r"([0-9])(?:[.,]([0-9]{1,15}))?e(\+?)0?([0-9]{1,2})", re.IGNORECASE)  # 1.40390001E8
_SHOWN_DECIMALS = 5  # of a long number in a narrow cell of Excel, which saves as CSV what it shows
_OF_AGEB = re.compile(r"([0-9]{8,9})[0-9]{3}[0-9A](?:[0-9]{3})?")  # 13 digits, or 16 with the block


def read_written_key(text: str) -> str:
    """Return the digits of a key in any form that loses none, as spreadsheets and people write it.

    Any other text is returned without invisible characters and blanks around it.
    """
    if text.isascii() and text.isdecimal():
        return text
    visible = "".join(char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf")
    written = visible.strip().removeprefix("'")  # which turns a number into text
    if found := _FRACTION.fullmatch(written):
        return found[1]
    if _GROUPS.fullmatch(written):
        return re.sub("[,. ]", "", written)
    if found := _PARTS.fullmatch(written):
        estado, municipio, localidad = filter(None, found.groups())
        return f"{estado:0>2}{municipio:0>3}{localidad:0>4}"
    if (found := _POWER.fullmatch(written)) and not is_rounded_key(written):
        digits, power = found[1] + (found[2] or ""), int(found[4])
        if len(digits) - 1 <= power:
            return digits.ljust(power + 1, "0")
    return written


def is_rounded_key(text: str) -> bool:
    """Return whether a text is a key that a spreadsheet has rounded, such as `1.4039E+08`."""
    found = _POWER.fullmatch(text)
    return found is not None and bool(found[3]) and len(found[2] or "") <= min(_SHOWN_DECIMALS, int(found[4]) - 1)


def locality_of_ageb(key: str) -> str | None:
    """Return the key of the locality that the key of an urban AGEB or block begins with; None for any other key."""
    found = _OF_AGEB.fullmatch(key.upper())
    return found[1].zfill(KINDS["localidad"].digits) if found else None


def label(id_: int, nombre: str, municipio: str, estado: str, *, has_homonym: bool, municipio_has_homonym: bool) -> str:
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

KEY_PATTERN = "^([0-9]{2}|[0-9]{5}|[0-9]{9})$"  # of the key of a place of any kind
KeyOfPlace = Annotated[
    str,
    Field(json_schema_extra={"pattern": KEY_PATTERN}),
    matching(KEY_PATTERN, "A key has its leading zeros: nine digits, five for a municipio, two for an estado."),
]
