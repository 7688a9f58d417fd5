"""The names and keys that places had in earlier releases, compared as `database.queries.names` compares them."""

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

from localidades_api.importer.transform import CatalogueRecords
from localidades_api.name_indexes.places import Areas, index_places
from localidades_api.names.places import Former, IndexedPlace, Withdrawn


class History:
    """A release, and what earlier ones had that it does not; add the oldest first."""

    def __init__(self, current: CatalogueRecords) -> None:
        self._current = current
        self._by_id = {row.id: row for row in current.localities}
        self._gone: dict[int, Withdrawn] = {}
        self._former: dict[int, list[Former]] = defaultdict(list)  # by the key of the current place

    def places(self) -> Iterator[IndexedPlace]:
        """Yield the places of the current release with their former names."""
        areas = Areas(
            {id_: state.nombre for id_, state in self._current.states.items()},
            {id_: (area.nombre, area.estado_id) for id_, area in self._current.municipalities.items()},
        )
        return index_places(self._current.localities, areas, self._former)

    def withdrawn(self) -> Iterator[Withdrawn]:
        """Yield the places of earlier releases without a successor."""
        followed = {former.id for found in self._former.values() for former in found}
        return (gone for gone in self._gone.values() if gone.id not in followed)

    def add(self, earlier: CatalogueRecords) -> None:
        """Add a release. A place under a new key is the only one with the name and the point of the old one."""
        old = {row.id for row in earlier.localities}
        new: dict[tuple[str, float | None, float | None], list[int]] = defaultdict(list)
        for row in self._current.localities:
            if row.id not in old and row.latitud is not None:
                new[row.nombre, row.latitud, row.longitud].append(row.id)
        municipios = {id_: area.nombre for id_, area in self._current.municipalities.items()}
        for row in sorted(earlier.localities, key=itemgetter(0)):
            municipio = earlier.municipalities[row.municipio_id].nombre
            former = Former(row.nombre, municipio, row.id)
            if same := self._by_id.get(row.id):
                if (same.nombre, municipios[same.municipio_id]) != (row.nombre, municipio):
                    self._former[row.id].append(former)
                continue
            self._gone[row.id] = Withdrawn(row.id, row.nombre, municipio)
            successors = new.get((row.nombre, row.latitud, row.longitud), ())
            if len(successors) == 1:
                self._former[successors[0]].append(former)
