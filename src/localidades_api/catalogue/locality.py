"""A locality as JSON, where Postgres does not write it (`database.queries`)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from localidades_api.catalogue.columns import RECORD
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, label

if TYPE_CHECKING:  # without a server, SQLAlchemy is not imported
    from sqlalchemy import Row


def encode_envelope(quantity: int, total_pages: int, results: str) -> bytes:
    """Return the JSON of a page of a list; `results` is a JSON array without brackets."""
    return f'{{"quantity":{quantity},"total_pages":{total_pages},"results":[{results}]}}'.encode()


def encode_localities(places: Iterable[tuple[int, str]]) -> str:
    """Return localities as a JSON array without brackets, from their keys and names; Postgres writes the same."""
    return ",".join(
        f'{{"id":{id_},"municipio_id":{id_ // KEYS_OF_A_MUNICIPIO},"clave":"{id_ % KEYS_OF_A_MUNICIPIO:04d}"'
        f',"nombre":{to_json(nombre).decode()}}}'
        for id_, nombre in places
    )


def describe_locality(row: "Row[Any]") -> dict[str, Any]:
    """Return a locality with its municipio and its estado."""
    municipio = {
        "id": row.municipio_id,
        "estado_id": row.estado_id,
        "clave": row.municipio_clave,
        "nombre": row.municipio_nombre,
        "localidades": row.municipio_localidades,
    }
    record = {name: getattr(row, name) for name in RECORD}
    return {**record, "municipio": municipio, "estado": describe_state(row)}


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
    return describe_place_near(row.id, row.nombre, written, row.poblacion, row.latitud, row.longitud, row.distance)


def describe_place_near(
    id_: int,
    nombre: str,
    written: str,
    poblacion: int | None,
    latitud: float | None,
    longitud: float | None,
    distance: float,
) -> dict[str, Any]:
    """Return a place with its label `written` and its distance in metres."""
    return {
        "id": id_,
        "municipio_id": id_ // KEYS_OF_A_MUNICIPIO,
        "clave": f"{id_ % KEYS_OF_A_MUNICIPIO:04d}",
        "nombre": nombre,
        "label": written,
        "poblacion": poblacion,
        "latitud": latitud,
        "longitud": longitud,
        "distancia": round(distance, 1),
    }
