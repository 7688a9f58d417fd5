"""An oracle for records and responses: it shares the column names with the service and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from json import dumps
from typing import Any

from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from tests.support.catalogue import Place, many

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


PAGE_SIZE = 50


class Truth:
    """The catalogue of each release."""

    def __init__(self, releases: Mapping[str, Sequence[Place]]) -> None:
        self.releases = releases
        self._lists = {name: [listed(place) for place in in_order(places)] for name, places in releases.items()}
        self._details = {name: {int(p.cvegeo): p for p in places} for name, places in releases.items()}

    def common_keys(self) -> list[int]:
        return sorted(set.intersection(*(set(details) for details in self._details.values())))

    def count_pages(self, release: str) -> int:
        return -(-len(self._lists[release]) // PAGE_SIZE)

    def page(self, release: str, number: int, municipio_id: int | None = None) -> bytes:
        records = [r for r in self._lists[release] if municipio_id in {None, r["municipio_id"]}]
        results = records[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]
        envelope = {"quantity": len(records), "total_pages": -(-len(records) // PAGE_SIZE), "results": results}
        return _json(envelope)

    def locality(self, release: str, key: int) -> bytes:
        place = self._details[release][key]
        municipio = municipality_of(place, self.releases[release])
        return _json({**record_of(place), "municipio": municipio, "estado": state_of(place)})


def renamed(release: str, count: int) -> list[Place]:
    """Return the places with the release in their names, so that no response fits another release."""
    return [
        Place(p.cvegeo, f"{p.nombre} {release}", nom_ent=p.nom_ent, nom_abr=p.nom_abr, nom_mun=p.nom_mun)
        for p in many(count)
    ]


def listed(place: Place) -> dict[str, Any]:
    record = record_of(place)
    return {name: record[name] for name in ("id", "municipio_id", "clave", "nombre")}


def _json(value: object) -> bytes:
    return dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
