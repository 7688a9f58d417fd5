"""The columns of a locality: one table for answers, files, the importer and the database."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

ColumnType = Literal["key", "integer", "count", "latitude", "longitude", "ambito", "text", "boolean"]
Kind = Literal["key", "integer", "number", "text", "boolean"]

_TYPES: Mapping[ColumnType, tuple[Kind, Any]] = {
    "key": ("key", str),
    "integer": ("integer", int),
    "count": ("integer", int),
    "latitude": ("number", float),
    "longitude": ("number", float),
    "ambito": ("text", Literal["U", "R"]),
    "text": ("text", str),
    "boolean": ("boolean", bool),
}


class LocalityColumn(NamedTuple):
    """A column of a locality.

    A key is text, because its zeros count. A count is an integer from zero. Downloads are in Spanish whatever language
    a request prefers, and the Spanish OpenAPI document has the same words.
    """

    name: str  # on the wire
    type: ColumnType
    sql: str  # an operand, of a locality (`l`), its municipality (`m`) and its state (`s`): `(l.clave = '0001')`
    label: str  # in Spanish
    meaning: str
    meaning_es: str
    digits: int | None = None  # of a key
    example: str | float | None = None
    nullable: bool = False
    header: str = ""  # in INEGI's file, of a column that is imported as it is
    comment: str | None = None  # on the column in the database

    @property
    def kind(self) -> Kind:
        """The kind of value that JSON, CSV and Parquet distinguish."""
        return _TYPES[self.type][0]

    @property
    def annotation(self) -> Any:  # noqa: ANN401  # a type, or a Literal
        """The type of its values in Python, without null."""
        return _TYPES[self.type][1]


_ROWS = (
    LocalityColumn(
        "id",
        "integer",
        "l.id",
        label="Id",
        meaning="The official key (CVEGEO) read as a number; it never changes.",
        meaning_es="Clave oficial leída como número; nunca cambia",
        example=10010001,
    ),
    LocalityColumn(
        "cvegeo",
        "key",
        "lpad(l.id::text, 9, '0')",
        label="Clave INEGI (CVEGEO)",
        meaning="The official key, with leading zeros.",
        meaning_es="Clave INEGI (CVEGEO): nueve dígitos, con ceros a la izquierda",
        digits=9,
        example="010010001",
    ),
    LocalityColumn(
        "clave",
        "key",
        "l.clave",
        label="Clave",
        meaning="The key within the municipio (CVE_LOC), with leading zeros; many localities share the same one.",
        meaning_es="Clave de la localidad en su municipio (CVE_LOC): cuatro dígitos",
        digits=4,
        example="0001",
    ),
    LocalityColumn(
        "nombre",
        "text",
        "l.nombre",
        label="Nombre",
        meaning="The name, exactly as INEGI publishes it.",
        meaning_es="Nombre de la localidad, tal como lo publica el INEGI",
        example="Aguascalientes",
    ),
    LocalityColumn(
        "ambito",
        "ambito",
        "l.ambito",
        label="Ámbito",
        meaning="U (urban) or R (rural).",
        meaning_es="Ámbito: U (urbano) o R (rural)",
        nullable=True,
        header="AMBITO",
        comment="U (urban) or R (rural)",
    ),
    LocalityColumn(
        "latitud",
        "latitude",
        "l.latitud",
        label="Latitud",
        meaning="Latitude, in degrees north.",
        meaning_es="Latitud en grados decimales, WGS 84",
        example=21.879823,
        nullable=True,
        header="LAT_DECIMAL",
        comment="Degrees north",
    ),
    LocalityColumn(
        "longitud",
        "longitude",
        "l.longitud",
        label="Longitud",
        meaning="Longitude, in degrees east: negative in Mexico.",
        meaning_es="Longitud en grados decimales, WGS 84; negativa en México",
        example=-102.296047,
        nullable=True,
        header="LON_DECIMAL",
        comment="Degrees east: negative in Mexico",
    ),
    LocalityColumn(
        "altitud",
        "integer",
        "l.altitud",
        label="Altitud",
        meaning="Altitude, in metres above sea level.",
        meaning_es="Altitud en metros sobre el nivel del mar",
        example=1878,
        nullable=True,
        header="ALTITUD",
        comment="Metres above sea level",
    ),
    LocalityColumn(
        "carta",
        "text",
        "l.carta",
        label="Carta topográfica",
        meaning="Key of the 1:50,000 topographic map.",
        meaning_es="Clave de la carta topográfica 1:50 000",
        example="F13D19",
        nullable=True,
        header="CVE_CARTA",
        comment="Key of the topographic map 1:50 000",
    ),
    LocalityColumn(
        "poblacion",
        "count",
        "l.poblacion",
        label="Población",
        meaning="Population.",
        meaning_es="Población total",
        example=863893,
        nullable=True,
        header="POB_TOTAL",
    ),
    LocalityColumn(
        "poblacion_masculina",
        "count",
        "l.poblacion_masculina",
        label="Población masculina",
        meaning="Population: men.",
        meaning_es="Población masculina",
        example=419168,
        nullable=True,
        header="POB_MASCULINA",
    ),
    LocalityColumn(
        "poblacion_femenina",
        "count",
        "l.poblacion_femenina",
        label="Población femenina",
        meaning="Population: women.",
        meaning_es="Población femenina",
        example=444725,
        nullable=True,
        header="POB_FEMENINA",
    ),
    LocalityColumn(
        "viviendas",
        "count",
        "l.viviendas",
        label="Viviendas habitadas",
        meaning="Inhabited dwellings.",
        meaning_es="Viviendas habitadas",
        example=246259,
        nullable=True,
        header="TOTAL DE VIVIENDAS HABITADAS",
        comment="Inhabited dwellings",
    ),
    LocalityColumn(
        "municipio_id",
        "integer",
        "l.municipio_id",
        label="Id del municipio",
        meaning="The key of the municipio (CVE_ENT, CVE_MUN) read as a number.",
        meaning_es="Clave del municipio, con la del estado, leída como número",
        example=1001,
    ),
    LocalityColumn(
        "municipio_clave",
        "key",
        "m.clave",
        label="Clave del municipio",
        meaning="The key of the municipio within its estado, three digits.",
        meaning_es="Clave del municipio en su estado: tres dígitos",
        digits=3,
    ),
    LocalityColumn(
        "municipio",
        "text",
        "m.nombre",
        label="Municipio",
        meaning="The name of the municipio.",
        meaning_es="Nombre del municipio",
        example="Aguascalientes",
    ),
    LocalityColumn(
        "estado_id",
        "integer",
        "m.estado_id",
        label="Id del estado",
        meaning="The key of the estado read as a number.",
        meaning_es="Clave del estado leída como número",
    ),
    LocalityColumn(
        "estado_clave",
        "key",
        "s.clave",
        label="Clave del estado",
        meaning="The key of the estado, two digits.",
        meaning_es="Clave del estado: dos dígitos",
        digits=2,
    ),
    LocalityColumn(
        "estado",
        "text",
        "s.nombre",
        label="Estado",
        meaning="The name of the estado.",
        meaning_es="Nombre del estado",
        example="Aguascalientes",
    ),
    LocalityColumn(
        "estado_abreviatura",
        "text",
        "s.abreviatura",
        label="Abreviatura del estado",
        meaning="INEGI's abbreviation of the estado.",
        meaning_es="Abreviatura del nombre del estado",
        nullable=True,
    ),
    LocalityColumn(
        "cve_ent",
        "key",
        "s.clave",
        label="CVE_ENT",
        meaning="The key of the estado (CVE_ENT), with leading zeros.",
        meaning_es="Clave del estado (CVE_ENT): dos dígitos, con ceros a la izquierda",
        digits=2,
        example="01",
    ),
    LocalityColumn(
        "cve_mun",
        "key",
        "m.clave",
        label="CVE_MUN",
        meaning="The key of the municipio within its estado (CVE_MUN), with leading zeros.",
        meaning_es="Clave del municipio en su estado (CVE_MUN): tres dígitos, con ceros a la izquierda",
        digits=3,
        example="001",
    ),
    LocalityColumn(
        "cvegeo_mun",
        "key",
        "lpad(l.municipio_id::text, 5, '0')",
        label="CVEGEO del municipio",
        meaning="The key of the municipio with that of its estado (CVE_ENT, CVE_MUN), with leading zeros.",
        meaning_es="Clave del municipio con la del estado (CVE_ENT, CVE_MUN): cinco dígitos, con ceros a la izquierda",
        digits=5,
        example="01001",
    ),
)

# In the order of a download.
COLUMNS: Mapping[str, LocalityColumn] = {column.name: column for column in _ROWS}
# The columns that are imported as they are, all but keys and the name; any of them can be null.
ATTRIBUTES: Mapping[str, LocalityColumn] = {name: column for name, column in COLUMNS.items() if column.header}
POINT = ("latitud", "longitud")
# The columns of the list, and those of a single record, in the order of an answer.
LISTED = ("id", "municipio_id", "clave", "nombre")
RECORD = (*LISTED, "cvegeo", *ATTRIBUTES)
# Also the column that only a municipio or an estado has.
EVERY_COLUMN: Mapping[str, LocalityColumn] = {
    **COLUMNS,
    "localidades": LocalityColumn(
        "localidades",
        "count",
        sql="",
        label="Número de localidades",
        meaning="Number of localities of a municipio or an estado.",
        meaning_es="Número de localidades del municipio o del estado",
        example=616,
    ),
}
# The columns that a match can return, of a place or an area, in the order of an answer; the index of names has them.
MATCHED = (
    "nombre", "municipio", "estado", "clave", "cve_ent", "cve_mun", "cvegeo_mun", "ambito", "latitud", "longitud",
    "altitud", "poblacion", "viviendas", "localidades",
)  # fmt: skip
MATCHED_BY_DEFAULT = ("nombre", "municipio", "estado")


class LocalityRow(NamedTuple):
    """A row of the table of localities, without the columns that the importer computes."""

    id: int
    municipio_id: int
    clave: str
    nombre: str
    ambito: str | None
    latitud: float | None
    longitud: float | None
    altitud: int | None
    carta: str | None
    poblacion: int | None
    poblacion_masculina: int | None
    poblacion_femenina: int | None
    viviendas: int | None
