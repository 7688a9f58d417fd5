"""A locality as JSON, where Postgres does not write it (`database.queries`)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from localidades_api.catalogue.columns import RECORD
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, label

if TYPE_CHECKING:  # without a server, SQLAlchemy is not imported
    from sqlalchemy import Row


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of a page of a list; `results` is a JSON array without brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


def describe_listed(id_: int, nombre: str) -> dict[str, Any]:
    """Return a locality as the list shows it."""
    clave = f"{id_ % KEYS_OF_A_MUNICIPIO:04d}"
    return {"id": id_, "municipio_id": id_ // KEYS_OF_A_MUNICIPIO, "clave": clave, "nombre": nombre}


def encode_localities(places: Iterable[tuple[int, str]]) -> str:
    """Return localities as a JSON array without brackets, from their keys and names; Postgres writes the same."""
    return to_json([describe_listed(*place) for place in places])[1:-1].decode()


def describe_locality(row: "Row[Any]") -> dict[str, Any]:
    """Return a locality with its municipio and its estado."""
    municipio = {
        "id": row.municipio_id,
        "estado_id": row.estado_id,
        "clave": row.municipio_clave,
        "nombre": row.municipio_nombre,
        "localidades": row.municipio_localidades,
    }
    columns = {name: getattr(row, name) for name in RECORD}  # `_asdict` takes longer
    return describe_record(columns, municipio, describe_state(row))


def describe_record(
    columns: Mapping[str, Any], municipio: Mapping[str, Any], estado: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a locality from its columns and what it is in."""
    return {**{name: columns[name] for name in RECORD}, "municipio": municipio, "estado": estado}


def describe_state(row: "Row[Any]") -> dict[str, Any]:
    """Return the estado in the `estado_` columns of a row."""
    return {name: getattr(row, f"estado_{name}") for name in ("id", "clave", "nombre", "abreviatura")}


def describe_near(row: "Row[Any]") -> dict[str, Any]:
    """Return a place with its distance in metres."""
    written = label(
        row.id,
        row.nombre,
        row.municipio,
        row.estado,
        has_homonym=row.has_homonym,
        municipio_has_homonym=row.municipio_has_homonym,
    )
    return {
        **describe_listed(row.id, row.nombre),
        "label": written,
        "poblacion": row.poblacion,
        "latitud": row.latitud,
        "longitud": row.longitud,
        "distancia": round(row.distance, 1),
    }
