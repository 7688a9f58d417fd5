"""The roles that columns of a list can have, in one table: headers, cells, and the lists that a column is enough for.

`columns` finds the column of each role in a file.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from localidades_api.catalogue.coordinates import (
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    in_mexico,
    read_degrees,
)
from localidades_api.catalogue.keys import KINDS, PlaceKind, read_written_key
from localidades_api.names.reading.areas import AreaBook, is_state_name
from localidades_api.names.reading.vocabulary import ESTADOS
from localidades_api.names.weights import SAME_UNTITLED_NAME

POINT: tuple[Axis, Axis] = ("latitud", "longitud")
PLACE = ("nombre", "municipio", "estado")  # the columns of a list without a header
VAGUE = frozenset({"clave", "nombre", "name", "x", "y"})  # headers that may be of anything
_NO_VALUE = frozenset({"", "-", "--", "na", "n/a", "nd", "n/d", "sd", "s/d", "null", "none", "nan", "#n/a", "#n/d"})


def read_text(text: str) -> str | None:
    """Read a name; None if the cell is empty."""
    return text.strip() or None


def read_area(text: str) -> str | None:
    """Read the name or the key of an area; a spreadsheet may have made `39.0` of a key."""
    area = text.strip().removeprefix("'").removesuffix(".0")
    return None if area.casefold() in _NO_VALUE else area


def read_key(text: str) -> str | None:
    """Read a key in any form that people and spreadsheets give it; None for no value."""
    key = read_written_key(text)
    return None if key.casefold() in _NO_VALUE else key


def read_coordinate(text: str) -> str | None:
    """Read the text of a coordinate, which only a point gives a meaning; None for no value."""
    return None if text.strip().casefold() in _NO_VALUE else text


def has_letters(text: str) -> bool:
    """Return whether a text has a letter."""
    return any(map(str.isalpha, text))


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) in {8, KINDS["localidad"].digits}


def _is_degrees(axis: Axis, text: str) -> bool:
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        degrees = read_degrees(text, axis)
        return in_mexico(*((degrees, -100.0) if axis == "latitud" else (20.0, degrees))) is not None
    return False


class Role(NamedTuple):
    """The role of a column.

    A folded header says it that matches `headers`, whose groups are in order of preference, because one file can have a
    name and a key of the same area. A cell may have the role if it `looks` so; whether it has, a match says. Any of
    `words` in another header confirms what the cells say. The column alone is enough for lists of some `kinds`.
    """

    headers: re.Pattern[str]
    read: Callable[[str], str | None]
    looks: Callable[[str], bool] | None = None
    words: frozenset[str] = frozenset()
    kinds: Collection[PlaceKind] = ()


Named: TypeAlias = Mapping[str, str]  # a role, and the header that the sender names for it; empty for no column


class Roles(NamedTuple):
    """The roles of a file: it must have one of the sets of columns `needed`; `example` is a header.

    `needed` has the sets for rows about each kind of place; the first kind of which a file has a set is taken. `areas`
    has the estado and the municipio of rows that give none, unless a header of the file is written so.
    """

    by_name: Mapping[str, Role]
    needed: Mapping[PlaceKind, Sequence[frozenset[str]]]
    example: str
    areas: Mapping[str, str] = {}

    def of_kind(self, kind: PlaceKind | None) -> "Roles":
        """Return the roles of a file whose rows are about a kind of place; None leaves it to the columns."""
        return self if kind is None else self._replace(needed={kind: self.needed[kind]})

    def with_areas(self, named: Named, header_row: int | None, areas: AreaBook | None = None) -> tuple["Roles", Named]:
        """Return the roles with the areas that a sender names for all rows, and the headers that are left.

        Without `areas`, those of a release, any text may be a municipio. Numbers are columns of a table without a
        header.
        """
        texts = {role: text for role, text in named.items() if text and not (header_row == 0 and text.isdecimal())}
        given = {role: text for role, text in texts.items() if _is_area(role, text, named, areas)}
        return self._replace(areas=given), {role: text for role, text in named.items() if role not in given}

    def describe_needed(self) -> str:
        """Return, in words, the roles of which a file needs some."""
        every = dict.fromkeys(roles for sets in self.needed.values() for roles in sets)
        return ", or ".join(" and ".join(f"`{role}`" for role in sorted(roles)) for roles in every)


def _is_area(role: str, text: str, named: Named, areas: AreaBook | None) -> bool:
    if role == "estado":
        return is_state_name(text) or text.lstrip("0") in map(str, ESTADOS)
    if role != "municipio" or areas is None:
        return role == "municipio"
    found = areas.find_municipios(text, areas.find_state(named.get("estado", "")))
    return any(area.likeness >= SAME_UNTITLED_NAME for area in found)


def _headers(*by_preference: str) -> re.Pattern[str]:
    return re.compile("|".join(f"({one})" for one in by_preference))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _either(nouns: str) -> str:
    """Return the pattern of a noun or several, such as `ciudad_pueblo_o_localidad`."""
    return f"(?:{nouns})(?:(?:_o)?_(?:{nouns})){{0,2}}"


# Ornaments of headers in forms, registers and databases: `3. Estado (requerido)`, `txtMunicipio`, `MUN_RESIDENCIA`.
_ORNAMENT = re.compile(
    r"^(?:[0-9]{1,3}_|[a-z]_(?=nom|cve|clave)|(?:txt|str|cmb|cbo|ddl)_?)"
    r"|_(?:inegi|requerid[oa]|obligatori[oa]|opcional|texto|required|mandatory|optional|text)$"
    r"|_(?:de_)?(?:res|resid|residencia|ocu|ocurr|ocurrencia|reg|regis|registro)(?:_habitual)?$"
)
_OF = "(?:_?de)?(?:_?la|_?el|l)?_?"
_NAME = f"(?:nom|nombre|nb|d|desc|descripcion){_OF}"
_KEY = f"(?:cve|clave|id){_OF}"
_PLACES = "localidad|poblado|comunidad|pueblo"
_TOWNS = "ciudad|poblacion|colonia"
_MUN, _MUNICIPIO = "mun|mpio|mpo|mnpio|agem", "municipios?|alcaldia|delegacion|demarcacion(?:_territorial)?"
_ENT, _ESTADO = "ent|edo|agee", "estados?|entidad(?:_federativa)?"
_KEY_OF_MUNICIPIO = f"(?:{_KEY}|c_)(?:{_MUN}|{_MUNICIPIO})|municipio_id|cvegeo_?mun"
_COORDINATE = "coord(?:enada)?_"
_EVERY_KIND: tuple[PlaceKind, ...] = ("localidad", "municipio", "estado")

# The roles of a row to match (`names.rows.MatchRow`).
_ROLES: Mapping[str, Role] = {
    "nombre": Role(
        _headers(
            f"{_NAME}(?:loc|localidad)",
            "localidad(?:es)?",
            "nombre",
            f"(?:{_NAME})?{_either(_PLACES)}",
            f"{_either(f'{_PLACES}|{_TOWNS}')}(?<!^poblacion)(?<!^colonia)",
            f"{_NAME}(?:{_TOWNS})",
            "lugar|locality|place",
            "city|town|name",
        ),
        read_text,
        has_letters,
        _words(
            "localidad localidades comunidad comunidades poblado poblacion pueblo rancheria ejido congregacion lugar"
            " ciudad"
        ),
        _EVERY_KIND,
    ),
    "municipio": Role(
        _headers(
            f"{_NAME}(?:{_MUN}|{_either(_MUNICIPIO)})",
            f"{_either(_MUNICIPIO)}|municipality|county",
            _MUN,
            _KEY_OF_MUNICIPIO,
        ),
        read_area,
        has_letters,
        _words("municipio municipios mpio mun alcaldia delegacion demarcacion"),
        ["municipio"],
    ),
    "cve_mun": Role(_headers(_KEY_OF_MUNICIPIO), read_key),
    "estado": Role(
        _headers(
            f"{_NAME}(?:{_ENT}|{_ESTADO})",
            f"{_either(_ESTADO)}|state",
            _ENT,
            f"(?:{_KEY}|c_)(?:{_ENT}|{_ESTADO})|estado_id|nom_abr",
        ),
        read_area,
        is_state_name,
        _words("estado entidad edo"),
        ["estado"],
    ),
    "latitud": Role(
        _headers("lat(?:itud)?_dec(?:imal)?", "lat(?:itude?)?", f"{_COORDINATE}(?:lat|latitud|y)", "y"),
        read_coordinate,
        partial(_is_degrees, "latitud"),
        _words("lat latitud latitude y"),
    ),
    "longitud": Role(
        _headers("lon(?:gitud)?_dec(?:imal)?", "lon(?:gitude?)?|lng|long", f"{_COORDINATE}(?:long?|longitud|x)", "x"),
        read_coordinate,
        partial(_is_degrees, "longitud"),
        _words("lon lng long longitud longitude x"),
    ),
    "cvegeo": Role(_headers("(?:cve|clave)_?(?:geo|geoestadistica|inegi)|mapa"), read_key, _is_key, kinds=_EVERY_KIND),
    "clave": Role(_headers(f"{_KEY}(?:loc|localidad)", "clave", "loc"), read_key, kinds=["localidad"]),
}


def _needed(kind: PlaceKind) -> Sequence[frozenset[str]]:
    enough = [name for name, role in _ROLES.items() if kind in role.kinds]
    return [frozenset({name}) for name in sorted(enough, key=lambda name: name != kind)]


ROLES = Roles(_ROLES, {kind: _needed(kind) for kind in _EVERY_KIND}, ",".join(PLACE))

# The roles of a row with a point.
POINTS = Roles({role: _ROLES[role] for role in POINT}, {"localidad": (frozenset(POINT),)}, ",".join(POINT))


@lru_cache(maxsize=4096)
def rank_header(header: str) -> Mapping[str, tuple[int, bool, int]]:
    """Return the roles that a folded header says, each with how well: the lowest is best."""
    for text in (header, _ORNAMENT.sub("", header)):
        found = {name: role.headers.fullmatch(text) for name, role in _ROLES.items()}
        ranks = {name: (one.lastindex or 0, text != header, len(header)) for name, one in found.items() if one}
        if ranks and (text == header or text not in VAGUE):
            return ranks
    return {}
