"""Columns of a locality, municipio or estado, read from the index by key."""

import math
from collections.abc import Iterable
from typing import Any

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, PlaceKind, format_key, kind_of_key, state_of
from localidades_api.names.files.layout import RURAL, UNKNOWN_ALTITUDE, URBAN
from localidades_api.names.files.reader import IndexReader


def read_fields(index: IndexReader, id_: int, fields: Iterable[str], row: int | None = None) -> dict[str, Any]:
    """Return columns of `MATCHED` for a key; those that only a locality or an area has are null.

    `row` is that of the locality in the index, if it is known. Raises KeyError if the index has no such key.
    """
    kind = kind_of_key(id_)
    if kind == "localidad":
        known = _read_locality(index, id_, index.layout.row_of(id_) if row is None else row)
    else:
        known = _read_area(index, kind, id_)
    return {name: known.get(name) for name in fields}


def _read_locality(index: IndexReader, id_: int, row: int) -> dict[str, Any]:
    layout = index.layout
    _, population, latitude, longitude, altitude, dwellings, offset, flags = layout.record(row)
    known = _read_area(index, "municipio", id_ // KEYS_OF_A_MUNICIPIO)
    known["nombre"] = layout.name_at(offset)
    known["clave"] = f"{id_ % KEYS_OF_A_MUNICIPIO:04d}"
    known["ambito"] = "U" if flags & URBAN else "R" if flags & RURAL else None
    known["latitud"] = _degrees(latitude)
    known["longitud"] = _degrees(longitude)
    known["altitud"] = None if altitude == UNKNOWN_ALTITUDE else altitude
    known["poblacion"] = None if population < 0 else population
    known["viviendas"] = None if dwellings < 0 else dwellings
    known["localidades"] = None
    return known


def _read_area(index: IndexReader, kind: PlaceKind, id_: int) -> dict[str, Any]:
    key = format_key(kind, id_)
    localities, population = index.totals[id_]
    totals = {"poblacion": population, "localidades": localities}
    if kind == "estado":
        nombre = index.areas.estados[id_]
        return {"nombre": nombre, "estado": nombre, "cve_ent": key, **totals}
    nombre = index.areas.municipios[id_]
    return {
        "nombre": nombre,
        "municipio": nombre,
        "estado": index.areas.estados[state_of(id_)],
        "cve_ent": key[:2],
        "cve_mun": key[2:],
        "cvegeo_mun": key,
        **totals,
    }


def _degrees(stored: float) -> float | None:
    """Return degrees as Postgres writes them in the list: without a fraction if they are whole."""
    if math.isnan(stored):
        return None
    return int(stored) if stored.is_integer() else stored
