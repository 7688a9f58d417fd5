"""An oracle for records: it shares the column names with the service and nothing else."""

from collections.abc import Iterable
from typing import Any

from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from tests.support.catalogue import Place

Record = dict[str, Any]


def value_in(place: Place, column: str) -> object:
    """Read a column of a place; INEGI writes `-` or `*` where it has no data."""
    text = place.text_of(column)
    if text in {"-", "*"}:
        return None
    return {"integer": int, "number": float, "text": str}[ATTRIBUTES[column].kind](text)


def position(place: Place) -> tuple[float, float] | tuple[None, None]:
    """Read a place's latitude and longitude; None for both if one is missing."""
    if "-" in {place.latitud, place.longitud}:
        return None, None
    return float(place.latitud), float(place.longitud)


def state_of(place: Place) -> Record:
    clave = place.cvegeo[:2]
    return {"id": int(clave), "clave": clave, "nombre": place.nom_ent, "abreviatura": place.nom_abr}


def municipality_of(place: Place, places: Iterable[Place]) -> Record:
    """Return a place's municipio; `places` are all places of the file."""
    key = place.cvegeo[:5]
    return {
        "id": int(key),
        "estado_id": int(key[:2]),
        "clave": key[2:],
        "nombre": place.nom_mun or f"Municipio {key[2:]}",
        "localidades": sum(other.cvegeo.startswith(key) for other in places),
    }


def record_of(place: Place) -> Record:
    return {
        "id": int(place.cvegeo),
        "municipio_id": int(place.cvegeo[:5]),
        "clave": place.cvegeo[5:],
        "nombre": place.nombre,
        "cvegeo": place.cvegeo,
        **{name: value_in(place, name) for name in ATTRIBUTES},
        **dict(zip(POINT, position(place), strict=True)),
    }


def row_of(place: Place) -> Record:
    """Return a row of a download: the columns of the place and its parents."""
    record, state = record_of(place), state_of(place)
    return {
        **{name: record[name] for name in ("id", "cvegeo", "clave", "nombre", *ATTRIBUTES, "municipio_id")},
        "municipio_clave": place.cvegeo[2:5],
        "municipio": place.nom_mun or f"Municipio {place.cvegeo[2:5]}",
        "estado_id": state["id"],
        "estado_clave": state["clave"],
        "estado": state["nombre"],
        "estado_abreviatura": state["abreviatura"],
        "cve_ent": place.cvegeo[:2],
        "cve_mun": place.cvegeo[2:5],
        "cvegeo_mun": place.cvegeo[:5],
    }


def in_order(places: Iterable[Place]) -> list[Place]:
    """Return places in the order of every list and download: clave, then key."""
    return sorted(places, key=lambda place: (place.cvegeo[5:], place.cvegeo))
