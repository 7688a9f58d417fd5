"""A row as it was sent, and the columns that it may have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from localidades_api.bulk.cells import degrees, read_area, read_key, read_text

Cells: TypeAlias = Mapping[str, str | float | None]
# What was sent: the members of an object, the cells of a line of CSV, or whatever stood where a row was expected.
Sent: TypeAlias = Mapping[str, Any] | Sequence[str] | object

Answer: TypeAlias = Mapping[str, Any]  # the members of an answer on the wire, without what was sent


class Row(NamedTuple):
    """A row: its number, from 1; what was sent; its cells by role; or a sentence that says why it can't be read.

    `note` says what of a row that can be read is left out.
    """

    number: int
    sent: Sent
    cells: Cells
    problem: str | None = None
    note: str | None = None


class Role(NamedTuple):
    """What a column can be: the headers it is recognized by, folded, and how its cells are read.

    The headers stand in order of preference, because one file can have a name and a key of the same area.
    """

    headers: Sequence[str]
    read: Callable[[str], str | float | None]


class Roles(NamedTuple):
    """The roles of a file: it must have one of the sets of columns `needed`; `example` is a header.

    The columns of `together` are guessed only all at once: an `x` alone is not a longitude.
    """

    by_name: Mapping[str, Role]
    needed: Sequence[frozenset[str]]
    together: frozenset[str]
    example: str


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
    mpio nom_mpio nombre_mpio nombre_mun d_mnpio desc_municipio desc_mun descripcion_municipio municipio_inegi alcaldia
    municipio_o_alcaldia municipio_alcaldia alcaldia_o_municipio alcaldia_municipio delegacion delegacion_o_municipio
    delegacion_municipio municipio_o_delegacion municipio_delegacion nombre_del_municipio_o_delegacion
    nombre_del_municipio_o_alcaldia nombre_del_municipio_o_demarcacion_territorial municipio_o_demarcacion_territorial
    demarcacion demarcacion_territorial municipios municipality county
    cve_mun clave_municipio clave_del_municipio clave_mun cve_municipio cvemun municipio_id id_municipio c_mnpio
"""
_ESTADO = """
    nom_ent nombre_entidad nombre_estado nombre_de_la_entidad nombre_del_estado estado entidad entidad_federativa
    nombre_entidad_federativa nombre_de_la_entidad_federativa noment nom_edo edo ent nom_entidad nom_estado nb_entidad
    nb_estado d_estado desc_entidad desc_estado descripcion_entidad estado_o_entidad entidad_o_estado estados state
    cve_ent clave_entidad clave_estado clave_de_la_entidad clave_del_estado clave_entidad_federativa
    clave_de_la_entidad_federativa clave_ent cve_entidad cve_estado cveent estado_id id_estado id_entidad cve_edo
    c_estado nom_abr
"""
POINT = ("latitud", "longitud")
_LATITUD = """
    lat_decimal lat_dec latitud_decimal latitud_dec latitud latitude lat coordenada_latitud coord_lat coordenada_y
    coord_y y
"""
_LONGITUD = """
    lon_decimal lon_dec longitud_decimal longitud_dec longitud longitude lon lng long coordenada_longitud coord_lon
    coord_long coordenada_x coord_x x
"""
_CVEGEO = "cvegeo cve_geo clave_geoestadistica cve_geoestadistica clave_inegi cve_inegi clavegeo clave_geo mapa"
_CLAVE = "cve_loc clave_localidad clave_de_la_localidad clave_loc cve_localidad cveloc clave id_localidad loc"

# What a row to be matched can have (search.rows.MatchRow).
ROLES = Roles(
    {
        "nombre": Role(_NOMBRE.split(), read_text),
        "municipio": Role(_MUNICIPIO.split(), read_area),
        "estado": Role(_ESTADO.split(), read_area),
        "latitud": Role(_LATITUD.split(), degrees("latitud")),
        "longitud": Role(_LONGITUD.split(), degrees("longitud")),
        "cvegeo": Role(_CVEGEO.split(), read_key),
        "clave": Role(_CLAVE.split(), read_key),
    },
    (frozenset({"nombre"}), frozenset({"cvegeo"}), frozenset({"clave"})),
    frozenset(POINT),
    "nombre,municipio,estado",
)

# What a row with a point has.
POINTS = Roles(
    {role: ROLES.by_name[role] for role in POINT},
    (frozenset(POINT),),
    frozenset(),
    "latitud,longitud",
)
