"""A locality: its columns, declared once, and its JSON.

The importer, the table, the SQL of the service, the downloads and reconciliation take theirs from `LocalityRow`. A new
column is a field there, a field of `schemas.LocalityRecord`, whose texts are the OpenAPI document's, and a migration.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from pydantic_core import to_json
from sqlalchemy import Row

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, label

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


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of one page of a list; `results` is a JSON array without its brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


def encode_localities(places: Iterable[tuple[int, str]]) -> str:
    """Return the localities with these keys and names as Postgres writes them (`database.queries.catalogue`)."""
    return ",".join(
        f'{{"id":{id_},"municipio_id":{id_ // KEYS_OF_A_MUNICIPIO},"clave":"{id_ % KEYS_OF_A_MUNICIPIO:04d}"'
        f',"nombre":{to_json(nombre).decode()}}}'
        for id_, nombre in places
    )


def describe_locality(row: Row[Any]) -> dict[str, Any]:
    """Return a locality with its municipio and its estado."""
    municipio = {
        "id": row.municipio_id,
        "estado_id": row.estado_id,
        "clave": row.municipio_clave,
        "nombre": row.municipio_nombre,
        "localidades": row.municipio_localidades,
    }
    record = {name: value for name, value in row._asdict().items() if not name.startswith(("municipio_", "estado_"))}
    head = {"id": row.id, "municipio_id": row.municipio_id}
    return {**head, **record, "municipio": municipio, "estado": describe_state(row)}


def describe_state(row: Row[Any]) -> dict[str, Any]:
    """Return the estado in the `estado_` columns of a row."""
    return {name: getattr(row, f"estado_{name}") for name in ("id", "clave", "nombre", "abreviatura")}


def describe_near(row: Row[Any]) -> dict[str, Any]:
    """Return a place and its distance in metres."""
    return {**_place(row), "distancia": round(row.distance, 1)}


def _place(row: Row[Any]) -> dict[str, Any]:
    """Return a place with a label that distinguishes it from others of the same name."""
    return {
        "id": row.id,
        "municipio_id": row.municipio_id,
        "clave": row.clave,
        "nombre": row.nombre,
        "label": label(
            row.id,
            row.nombre,
            row.municipio,
            row.estado,
            has_homonym=row.has_homonym,
            municipio_has_homonym=row.municipio_has_homonym,
        ),
        "poblacion": row.poblacion,
        "latitud": row.latitud,
        "longitud": row.longitud,
    }
