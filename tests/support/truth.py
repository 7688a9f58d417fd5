"""The expected responses, computed from the imported files alone."""

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from tests.support.catalogue import Place, many
from tests.support.records import in_order, municipality_of, record_of, state_of

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
