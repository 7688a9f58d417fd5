"""Rows of a file: the roles that its columns can have, which column has which, and how cells are read.

A column is named by the sender, or guessed from the headers that Mexican spreadsheets have.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from localidades_api.catalogue.coordinates import (
    BOUNDS,
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    read_degrees,
    read_point,
)
from localidades_api.catalogue.folding import fold_header
from localidades_api.catalogue.keys import PlaceKind, read_written_key
from localidades_api.catalogue.messages import did_you_mean
from localidades_api.errors import UnreadableBodyError
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reading.areas import Area, AreaBook, is_state_name
from localidades_api.names.reading.vocabulary import ESTADOS
from localidades_api.names.weights import SAME_UNTITLED_NAME

POINT: tuple[Axis, Axis] = ("latitud", "longitud")
_MAX_NUMBER = 1e15
_NO_VALUE = frozenset({"", "-", "--", "na", "n/a", "nd", "n/d", "sd", "s/d", "null", "none", "nan", "#n/a", "#n/d"})


class RowError(ValueError):
    """A row can't be answered; its text is a sentence for whoever sent the row. The next row is not affected."""


def unquoted(text: str) -> str:
    """Return the text of a cell such as `="010010001"`, the formula that keeps zeros in CSV for Excel."""
    return text[2:-1].replace('""', '"') if text.startswith('="') and text.endswith('"') else text


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


def _point_of(texts: Sequence[str | float | None]) -> tuple[Sequence[float | None], str | None]:
    """Return the degrees of a point, None for one that is not given, and a sentence if they can't be read."""
    with suppress(UnreadableDegreesError, DegreesOutOfRangeError):
        return read_point(*("" if text is None else str(text) for text in texts)), None
    if note := next(filter(None, map(_refuse_degrees, texts, POINT)), None):
        return (None, None), note
    axes = zip(texts, POINT, strict=True)
    return [None if text is None else read_degrees(str(text), axis) for text, axis in axes], None


def _refuse_degrees(text: str | float | None, axis: Axis) -> str | None:
    """Return the reason why a text is not the degrees of an axis; None if it is, or is empty."""
    try:
        read_degrees("0" if text is None else str(text), axis)
    except UnreadableDegreesError:
        return f"`{axis}` can't be read as degrees, such as 20.6736."
    except DegreesOutOfRangeError:
        return f"`{axis}` must be decimal degrees from {-BOUNDS[axis]} to {BOUNDS[axis]}, such as 20.6736."
    return None


def as_text(role: str, value: object) -> str:
    """Return a value of JSON as the text that a cell of CSV would have; raise RowError if it is neither."""
    if value is None or value != value:  # noqa: PLR0124  # NaN, which programs write for a missing value
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"`{role}` must be a text or a number.")
    if not -_MAX_NUMBER < value < _MAX_NUMBER:
        raise RowError(f"`{role}` is a number beyond any key or degree.")
    return str(int(value)) if value == int(value) else str(value)


Cells: TypeAlias = Mapping[str, str | float | None]
# A row as it was sent: members of an object, cells of a line of CSV, or any JSON value in its place.
Sent: TypeAlias = Mapping[str, Any] | Sequence[str] | object

Answer: TypeAlias = Mapping[str, Any]  # the members of an answer on the wire, without the row that was sent


class Row(NamedTuple):
    """A row: its number; what was sent; its cells by role; or a sentence that says why it can't be read.

    People count as its number says: it is that of the sheet's row, or of the line where the row begins, or its place
    among the rows of JSON. `note` says which cells of a readable row are ignored. `kind` is what the row is about; None
    if its key says it.
    """

    number: int
    sent: Sent
    cells: Cells
    problem: str | None = None
    note: str | None = None
    kind: PlaceKind | None = None


class Role(NamedTuple):
    """The role of a column: the folded headers that it is recognized by, and the reader of its cells.

    The headers are in order of preference, because one file can have a name and a key of the same area. Any of `words`
    in another header confirms what the cells say (`sampled_cells`).
    """

    headers: Sequence[str]
    read: Callable[[str], str | None]
    words: frozenset[str] = frozenset()


Named: TypeAlias = Mapping[str, str]  # a role, and the header that the sender names for it; empty for no column


class Roles(NamedTuple):
    """The roles of a file: it must have one of the sets of columns `needed`; `example` is a header.

    `needed` has the sets for rows about each kind of place; the first kind of which a file has a set is taken. The
    columns of `together` are guessed only all at once: an `x` alone is not a longitude. `areas` has the estado and the
    municipio of rows that give none, unless a header of the file is written so. If no
    municipio has the name that the sender gives, `near` has similar ones, for the error.
    """

    by_name: Mapping[str, Role]
    needed: Mapping[PlaceKind, Sequence[frozenset[str]]]
    together: frozenset[str]
    example: str
    areas: Mapping[str, str] = {}
    near: Sequence[str] = ()

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
        near: Sequence[str] = ()
        if areas is not None and "municipio" in texts.keys() - given:
            near = [areas.municipios[one.id] for one in _like_municipios(named, areas)]
        return self._replace(areas=given, near=near), {role: text for role, text in named.items() if role not in given}


def _is_area(role: str, text: str, named: Named, areas: AreaBook | None) -> bool:
    """Return whether a text in the place of a header is the name or the key of an estado or municipio."""
    if role == "estado":
        return is_state_name(text) or text.lstrip("0") in map(str, ESTADOS)
    if role != "municipio" or areas is None:
        return role == "municipio"
    return any(one.likeness >= SAME_UNTITLED_NAME for one in _like_municipios(named, areas))


def _like_municipios(named: Named, areas: AreaBook) -> Sequence[Area]:
    return areas.find_municipios(named["municipio"], areas.find_state(named.get("estado", "")))


_NOMBRE = """
    nom_loc nombre_localidad nombre_de_la_localidad nombre_de_localidad nombre_de_la_loc localidad nombre nomloc
    nom_localidad nb_localidad desc_localidad descripcion_localidad localidad_inegi
    ciudad_o_localidad localidad_o_ciudad ciudad_localidad localidad_ciudad ciudad_pueblo_o_localidad
    ciudad_o_poblacion poblacion_o_ciudad poblado_o_localidad localidad_o_poblado pueblo_o_localidad localidad_o_pueblo
    comunidad_o_localidad localidad_o_comunidad comunidad_localidad localidad_comunidad localidad_o_colonia
    localidad_colonia colonia_o_localidad colonia_localidad
    nombre_de_la_comunidad nombre_comunidad nombre_del_poblado nombre_poblado nombre_de_la_ciudad nombre_ciudad
    nombre_del_pueblo nombre_pueblo nombre_de_la_poblacion
    poblado comunidad pueblo ciudad d_ciudad localidades lugar locality place city town name
"""
_MUNICIPIO = """
    nom_mun nombre_municipio nombre_del_municipio nombre_de_municipio municipio nommun nom_municipio nb_municipio mun
    mpio mpo nom_mpio nombre_mpio nombre_mun d_mnpio desc_municipio desc_mun descripcion_municipio municipio_inegi
    alcaldia municipio_o_alcaldia municipio_alcaldia alcaldia_o_municipio alcaldia_municipio delegacion
    delegacion_o_municipio delegacion_municipio municipio_o_delegacion municipio_delegacion
    nombre_del_municipio_o_delegacion nombre_del_municipio_o_alcaldia nombre_del_municipio_o_demarcacion_territorial
    municipio_o_demarcacion_territorial demarcacion demarcacion_territorial municipios municipality county nom_agem
"""
_ESTADO = """
    nom_ent nombre_entidad nombre_estado nombre_de_la_entidad nombre_del_estado estado entidad entidad_federativa
    nombre_entidad_federativa nombre_de_la_entidad_federativa noment nom_edo edo ent nom_entidad nom_estado nb_entidad
    nb_estado d_estado desc_entidad desc_estado descripcion_entidad estado_o_entidad entidad_o_estado estados state
    cve_ent clave_entidad clave_estado clave_de_la_entidad clave_del_estado clave_entidad_federativa
    clave_de_la_entidad_federativa clave_ent cve_entidad cve_estado cveent estado_id id_estado id_entidad cve_edo
    c_estado nom_abr nom_agee cve_agee ent_resid ent_ocurr ent_regis
"""
_LATITUD = """
    lat_decimal lat_dec latitud_decimal latitud_dec latitud latitude lat coordenada_latitud coord_lat coordenada_y
    coord_y y
"""
_LONGITUD = """
    lon_decimal lon_dec longitud_decimal longitud_dec longitud longitude lon lng long coordenada_longitud coord_lon
    coord_long coordenada_x coord_x x
"""
_KEY_OF_MUNICIPIO = """
    cve_mun clave_municipio clave_del_municipio clave_mun cve_municipio cvemun municipio_id id_municipio c_mnpio
    cvegeo_mun cvegeomun cve_agem cve_mpo cve_mpio cve_mnpio clave_mpio mun_resid mun_ocurr
    mun_regis
"""
_CVEGEO = "cvegeo cve_geo clave_geoestadistica cve_geoestadistica clave_inegi cve_inegi clavegeo clave_geo mapa"
_CLAVE = """
    cve_loc clave_localidad clave_de_la_localidad clave_loc cve_localidad cveloc clave id_localidad loc
    loc_resid loc_ocurr loc_regis
"""

_PLACES = """
    localidad localidades comunidad comunidades poblado poblacion pueblo rancheria ejido congregacion lugar ciudad
"""
_MUNICIPIOS = "municipio municipios mpio mun alcaldia delegacion demarcacion"

# The roles of a row to match (`names.rows.MatchRow`).
ROLES = Roles(
    {
        "nombre": Role(_NOMBRE.split(), read_text, frozenset(_PLACES.split())),
        "municipio": Role([*_MUNICIPIO.split(), *_KEY_OF_MUNICIPIO.split()], read_area, frozenset(_MUNICIPIOS.split())),
        "cve_mun": Role(_KEY_OF_MUNICIPIO.split(), read_key),
        "estado": Role(_ESTADO.split(), read_area, frozenset({"estado", "entidad", "edo"})),
        "latitud": Role(_LATITUD.split(), read_coordinate, frozenset({"lat", "latitud", "latitude", "y"})),
        "longitud": Role(
            _LONGITUD.split(), read_coordinate, frozenset({"lon", "lng", "long", "longitud", "longitude", "x"})
        ),
        "cvegeo": Role(_CVEGEO.split(), read_key),
        "clave": Role(_CLAVE.split(), read_key),
    },
    {
        "localidad": (frozenset({"nombre"}), frozenset({"cvegeo"}), frozenset({"clave"})),
        "municipio": (frozenset({"municipio"}), frozenset({"nombre"}), frozenset({"cvegeo"})),
        "estado": (frozenset({"estado"}), frozenset({"nombre"}), frozenset({"cvegeo"})),
    },
    frozenset(POINT),
    "nombre,municipio,estado",
)

# The roles of a row with a point.
POINTS = Roles(
    {role: ROLES.by_name[role] for role in POINT}, {"localidad": (frozenset(POINT),)}, frozenset(), "latitud,longitud"
)

# The areas that rows of a kind have around them.
_AREAS_AROUND: Mapping[PlaceKind, tuple[str, ...]] = {
    "localidad": ("municipio", "estado"), "municipio": ("estado",), "estado": (),
}  # fmt: skip

# The columns of a list without a header.
PLACE = ("nombre", "municipio", "estado")


class Assignment(NamedTuple):
    """The column of each role that was found: its index among the headers, and the reader of its cells."""

    width: int  # the number of headers
    by_role: Mapping[str, tuple[int, Callable[[str], str | None]]]
    kind: PlaceKind | None = None  # of the first set of needed columns that was found
    is_keyed: bool = False  # whether each row's `cvegeo` may be the key of another kind, since nothing else says it
    unused: Mapping[int, str] = {}  # the other headers of a table that may be one of estados only for lack of a role
    areas: Mapping[str, str] = {}  # the estado and the municipio of rows that give none
    is_clave_of_any: bool = False  # whether digits in the column of `clave` may be the key of a municipio

    def read(self, number: int, sent: Sent, values: Sequence[Any]) -> Row:
        """Read the cells of a row that has a value for every header; its `problem` says why it can't be read."""
        try:
            cells, note = self._read_cells(values)
        except RowError as error:
            return Row(number, sent, {}, str(error))
        return Row(number, sent, cells, note=note, kind=None if self.is_keyed or self.is_clave_of_any else self.kind)

    def _read_cells(self, values: Sequence[Any]) -> tuple[Cells, str | None]:
        """Return the cells by role, and a note about those that are ignored; raise RowError if one can't be read."""
        for at, header in self.unused.items():
            if (other := values[at]) and isinstance(other, str) and _is_name(other[:MAX_TEXT]):
                raise RowError(
                    f"Only its estado was recognized. If `{header}` has the localities, say so with `nombre`; if the"
                    " rows are about estados, with `kind=estado`."
                )
        cells: dict[str, str | float | None] = {}
        note = None
        for role, (at, read) in self.by_role.items():
            value = values[at]
            text = unquoted(value) if type(value) is str else as_text(role, value)
            cells[role] = read(text.strip()[:MAX_TEXT])
            if role == "clave" and cells[role] and "nombre" not in self.by_role and is_worded(text[:MAX_TEXT]):
                cells |= {"nombre": read_text(text[:MAX_TEXT]), "clave": None}  # `LOC.` heads names, too
        if not cells.keys().isdisjoint(POINT):
            point, note = _point_of([cells.get(axis) for axis in POINT])
            cells |= zip(POINT, point, strict=True)
        for role, area in self.areas.items():
            if cells.get(role) is None and not (role == "municipio" and cells.get("cve_mun")):
                cells[role] = area
        return cells, note


_MAX_HEADER = 100  # characters
# Only these say nothing: in `Clave (SEP)` the bracket says what it is, and `Clave INEGI (CVEGEO)` is of an answer.
_BRACKET = re.compile(
    r"[(\[]\s*(?:requerid[oa]|obligatori[oa]|opcional|texto|required|mandatory|optional|text|\*)\s*[)\]]", re.IGNORECASE
)
_NUMBER_AT_START = re.compile(r"^\W*[0-9]{1,3}\s*[.):-]\s*")
_WORD_OF_CAMEL_CASE = re.compile(r"(?<=[a-záéíóúñ])(?=[A-ZÁÉÍÓÚÑ])")
_PREFIX = re.compile(r"^(?:[a-z]_(?=nom|cve|clave)|(?:txt|str|cmb|cbo|ddl)_)")
_EVENT = re.compile(r"_(?:de_)?(?:res|resid|residencia|ocu|ocurr|ocurrencia|reg|regis|registro)(?:_habitual)?$")
_VAGUE = frozenset({"clave", "nombre", "name", "x", "y"})


def _fold_headers(headers: Sequence[str], roles: Roles) -> list[str]:
    """Return folded headers; an unknown one in its plain form if that is known.

    That is without its number, its bracket, camel case, a prefix, and the event that registers have places of.
    """
    folded = _fold(headers)
    taken = {*folded}
    known = {one for role in roles.by_name.values() for one in role.headers}
    for at, header in enumerate(headers):
        if folded[at] and folded[at] not in known and len(header) <= _MAX_HEADER:
            bare = _NUMBER_AT_START.sub("", _BRACKET.sub(" ", header))
            plain = _PREFIX.sub("", fold_header(_WORD_OF_CAMEL_CASE.sub(" ", bare)))
            plain = plain if plain in known else _EVENT.sub("", plain)
            if plain in known and plain not in _VAGUE and plain not in taken:
                taken.add(plain)
                folded[at] = plain
    return folded


def assign(headers: Sequence[str], roles: Roles, named: Named, by_cells: Mapping[str, int] = {}) -> Assignment:
    """Find the column of each role: named, found by its cells, or guessed from its header.

    Raise UnreadableBodyError if a named one is missing.
    """
    folded = _fold_headers(headers, roles)
    end = begin_of_answers(headers)
    first = {header: at for at, header in reversed([*enumerate(folded[:end])])}
    columns = _find_named(headers, folded, named, roles.near)
    as_headers = {role: _find(text, headers, folded) for role, text in roles.areas.items()}
    columns |= {role: at for role, at in as_headers.items() if at is not None}
    columns |= by_cells
    for role, (known, *_) in roles.by_name.items():
        if role not in named and role not in columns:
            at = next((first[one] for one in known if one in first), None)
            if at is not None and at not in columns.values():
                columns[role] = at
    if not roles.together <= columns.keys():
        columns = {role: at for role, at in columns.items() if role in named or role not in roles.together}
    kinds = (kind for kind, needed in roles.needed.items() if any(one <= columns.keys() for one in needed))
    by_role = {role: (at, roles.by_name[role].read) for role, at in columns.items()}
    kind = next(kinds, None)
    is_guessed = len(roles.needed) > 1
    if is_guessed and kind == "estado" and any(header.endswith("_localidad") for header in folded):
        kind = None  # a list of places with an unknown column of names, such as the SAT's with c_Localidad
    is_keyed = is_guessed and "cvegeo" in by_role and by_role.keys().isdisjoint({"nombre", "clave"})
    # With an estado alone, five digits may be the last seven of a locality's key without their zeros.
    is_alone = by_role.keys().isdisjoint({"nombre", "cvegeo"}) and ("municipio" in by_role or "estado" not in by_role)
    is_clave_of_any = is_guessed and is_alone and "clave" in by_role and folded[by_role["clave"][0]] == "clave"
    is_of_states = is_guessed and kind == "estado" and not named
    others = headers[:end] if is_of_states else []
    unused = {at: header for at, header in enumerate(others) if at not in columns.values()}
    around = _AREAS_AROUND[kind or "localidad"]
    areas = {role: text for role, text in roles.areas.items() if role in around and as_headers[role] is None}
    return Assignment(len(headers), by_role, kind, is_keyed, unused, areas, is_clave_of_any)


_FIRST_ANSWERS = (
    re.compile(r"(?:Resultado|match\d*_outcome)(?: \(\d+\))?"),
    re.compile(r"(?:Clave INEGI \(CVEGEO\)|match\d*_cvegeo)(?: \(\d+\))?"),
)


def begin_of_answers(headers: Sequence[str]) -> int | None:
    """Return the index of the first column that an earlier answer has added to a table; None if there is none."""
    pairs = enumerate(pairwise(headers))
    return next((at for at, (one, other) in pairs if all(map(re.fullmatch, _FIRST_ANSWERS, (one, other)))), None)


def _is_name(text: str) -> bool:
    """Return whether a text may be the name of a locality: letters without a digit, and no estado."""
    return is_worded(text) and not is_state_name(text)


def is_worded(text: str) -> bool:
    """Return whether a text has letters and no digit."""
    return any(map(str.isalpha, text)) and not any(map(str.isdigit, text))


def _fold(headers: Sequence[str]) -> list[str]:
    return [fold_header(header[:MAX_TEXT]) for header in headers]


def require(assignment: Assignment, roles: Roles, headers: Sequence[str], named: Named) -> None:
    """Raise UnreadableBodyError unless the columns that were found are enough and none of them is ambiguous."""
    if header := repeated(assignment, headers, named):
        raise UnreadableBodyError(f"The first line has the column `{header}` twice: rename or remove one of them.")
    if assignment.kind is None:
        raise UnreadableBodyError(
            f"The first line names no column for {describe_needed(roles)}: begin the file with a line such as"
            f" `{roles.example}`, or say which of its headers stands for what."
        )


def repeated(assignment: Assignment, headers: Sequence[str], named: Named) -> str | None:
    """Return a header that was found and that another column has as well; None if there is none."""
    folded = _fold(headers)  # looser forms are taken only once
    for role, (at, _) in assignment.by_role.items():
        is_literal = named.get(role) == headers[at]
        if named.get(role) not in headers and named.get(role) == unique(headers)[at]:
            continue
        if (headers.count(headers[at]) if is_literal else folded.count(folded[at])) > 1:
            return headers[at]
    return None


def describe_needed(roles: Roles) -> str:
    """Return, in words, the roles of which a file needs some."""
    every = dict.fromkeys(needed for sets in roles.needed.values() for needed in sets)
    return ", or ".join(" and ".join(f"`{role}`" for role in sorted(needed)) for needed in every)


def is_place_without_header(first: Sequence[str], roles: Roles, named: Named) -> bool:
    """Return whether the first row of a table is evidently a place: a column alone, or one that ends with an estado."""
    if named or "nombre" not in roles.by_name or assign(first, roles, {}).kind is not None:
        return False
    return len(first) == 1 or (len(first) <= len(PLACE) and is_state_name(first[-1]))


def columns_without_header(first: Sequence[str], named: Named) -> list[str]:
    """Return the roles of columns without a header, empty for none: as the sender numbers them, or by what they have.

    Raise UnreadableBodyError for a number that there is not, and for more columns than a place has.
    """
    width = len(first)
    if numbers := {role: number for role, number in named.items() if number}:
        columns = [""] * width
        for role, number in numbers.items():
            if not (number.isdecimal() and number.isascii() and 1 <= int(number) <= width):
                raise UnreadableBodyError(
                    f"Without a header, name the column of `{role}` by its number, from 1 to {width}."
                )
            columns[int(number) - 1] = role
        return columns
    if width > len(PLACE):
        raise UnreadableBodyError(
            f"The file has {width} columns and no header: say the number of each column, such as `nombre=1`."
        )
    if width > 1 and is_state_name(first[-1]):
        return [*PLACE[: width - 1], PLACE[-1]]
    return list(PLACE[:width])


def _find_named(headers: Sequence[str], folded: Sequence[str], named: Named, near: Sequence[str]) -> dict[str, int]:
    """Return the index of each header that the sender names; raise UnreadableBodyError if one is missing."""
    found = {role: _find(header, headers, folded) for role, header in named.items() if header}
    for role, at in found.items():
        if at is None:
            area = f", and no {role} has this name" if role in _AREAS_AROUND["localidad"] else ""
            question = did_you_mean(named[role], [*headers, *near])
            raise UnreadableBodyError(
                f"The first line does not have the header that was named for `{role}`{area}. {question}".rstrip()
            )
    return {role: at for role, at in found.items() if at is not None}


def _find(header: str, headers: Sequence[str], folded: Sequence[str]) -> int | None:
    """Return the index of a header as it is written, folded, or named by `unique`; None if there is none."""
    if header in headers:
        return headers.index(header)
    if (name := fold_header(header)) and name in folded:
        return folded.index(name)
    names = unique(headers)
    return names.index(header) if header in names else None


def name_columns(assignment: Assignment, headers: Sequence[str]) -> dict[str, str]:
    """Return the name of the column of each role, as `unique` names it."""
    names = unique(headers)
    return {role: names[at] for role, (at, _) in assignment.by_role.items()}


def unique(headers: Iterable[str]) -> list[str]:
    """Return headers as names of members: none empty, none twice."""
    seen: dict[str, None] = {}
    repeats = Counter[str]()
    for number, header in enumerate(headers, 1):
        name = plain = header or f"column {number}"
        while name in seen:
            repeats[plain] += 1
            name = f"{plain} ({repeats[plain] + 1})"
        seen[name] = None
    return list(seen)
