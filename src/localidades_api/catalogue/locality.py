"""The columns of a locality, declared once.

The importer, the table, the SQL of the service, the downloads and reconciliation take theirs from `LocalityRow`. A new
column is a field there, a field of `schemas.LocalityRecord`, whose texts are the OpenAPI document's, and a migration.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, get_args, get_type_hints

Content = Literal["ambito", "latitude", "longitude", "integer", "count", "text"]
Kind = Literal["integer", "number", "text"]

_KINDS: Mapping[Content, Kind] = {
    "ambito": "text",
    "latitude": "number",
    "longitude": "number",
    "integer": "integer",
    "count": "integer",
    "text": "text",
}


class Attribute(NamedTuple):
    """What INEGI says about a locality besides its key and its name; any of it can be missing."""

    header: str  # of the column in INEGI's file
    content: Content  # a count is an integer from zero
    label: str  # in Spanish, as the data are
    meaning: str | None = None  # in Spanish; None where the label says all
    comment: str | None = None  # of the column in the database

    @property
    def kind(self) -> Kind:
        """The kind of value that JSON, CSV and Parquet tell apart."""
        return _KINDS[self.content]


class LocalityRow(NamedTuple):
    """A locality, its fields in the order of the table's columns."""

    id: int
    municipio_id: int
    clave: str
    nombre: str
    ambito: Annotated[
        str | None, Attribute("AMBITO", "ambito", "Ámbito", "Ámbito: U (urbano) o R (rural)", "U (urban) or R (rural)")
    ]
    latitud: Annotated[
        float | None,
        Attribute("LAT_DECIMAL", "latitude", "Latitud", "Latitud en grados decimales, WGS 84", "Degrees north"),
    ]
    longitud: Annotated[
        float | None,
        Attribute(
            "LON_DECIMAL",
            "longitude",
            "Longitud",
            "Longitud en grados decimales, WGS 84; negativa en México",
            "Degrees east: negative in Mexico",
        ),
    ]
    altitud: Annotated[
        int | None,
        Attribute(
            "ALTITUD", "integer", "Altitud", "Altitud en metros sobre el nivel del mar", "Metres above sea level"
        ),
    ]
    carta: Annotated[
        str | None,
        Attribute(
            "CVE_CARTA",
            "text",
            "Carta topográfica",
            "Clave de la carta topográfica 1:50 000",
            "Key of the topographic map 1:50 000",
        ),
    ]
    poblacion: Annotated[int | None, Attribute("POB_TOTAL", "count", "Población", "Población total")]
    poblacion_masculina: Annotated[int | None, Attribute("POB_MASCULINA", "count", "Población masculina")]
    poblacion_femenina: Annotated[int | None, Attribute("POB_FEMENINA", "count", "Población femenina")]
    viviendas: Annotated[
        int | None,
        Attribute("TOTAL DE VIVIENDAS HABITADAS", "count", "Viviendas habitadas", comment="Inhabited dwellings"),
    ]


ATTRIBUTES: Mapping[str, Attribute] = {
    name: argument
    for name, hint in get_type_hints(LocalityRow, include_extras=True).items()
    for argument in get_args(hint)
    if isinstance(argument, Attribute)
}
POINT = ("latitud", "longitud")
