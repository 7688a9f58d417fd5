"""Columns of a locality, municipio or estado, read from the index by key."""

import math
from collections.abc import Iterable
from typing import Any

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, format_key, kind_of_key, state_of
from localidades_api.names.layout import KEY, RURAL, UNKNOWN_ALTITUDE, URBAN
from localidades_api.names.reader import IndexReader


def read_fields(index: IndexReader, id_: int, fields: Iterable[str]) -> dict[str, Any]:
    """Return columns of `MATCHED` for a key of the index; those that only a locality has are null for an area."""
    known = _read_locality(index, id_) if kind_of_key(id_) == "localidad" else _read_area(index, id_)
    return {name: known.get(name) for name in fields}


def _read_locality(index: IndexReader, id_: int) -> dict[str, Any]:
    layout = index.layout
    # Former keys lead to their successors, which have other keys.
    row, nombre = next(
        (row, nombre) for row in layout.find(KEY, str(id_)) for found, nombre, _ in (layout.name(row),) if found == id_
    )
    _, population, latitude, longitude, altitude, dwellings, _, flags = layout.record(row)
    return {
        **_read_area(index, id_ // KEYS_OF_A_MUNICIPIO),
        "nombre": nombre,
        "clave": f"{id_ % KEYS_OF_A_MUNICIPIO:04d}",
        "ambito": "U" if flags & URBAN else "R" if flags & RURAL else None,
        "latitud": _degrees(latitude),
        "longitud": _degrees(longitude),
        "altitud": None if altitude == UNKNOWN_ALTITUDE else altitude,
        "poblacion": None if population < 0 else population,
        "viviendas": None if dwellings < 0 else dwellings,
    }


def _read_area(index: IndexReader, id_: int) -> dict[str, Any]:
    areas = index.areas
    if kind_of_key(id_) == "estado":
        return {"nombre": areas.estados[id_], "estado": areas.estados[id_], "cve_ent": format_key("estado", id_)}
    estado, cvegeo = areas.estados[state_of(id_)], format_key("municipio", id_)
    nombre = areas.municipios[id_]
    return {
        "nombre": nombre,
        "municipio": nombre,
        "estado": estado,
        "cve_ent": cvegeo[:2],
        "cve_mun": cvegeo[2:],
        "cvegeo_mun": cvegeo,
    }


def _degrees(stored: float) -> float | None:
    """Return degrees as Postgres writes them in the list: without a fraction if they are whole."""
    if math.isnan(stored):
        return None
    return int(stored) if stored.is_integer() else stored
