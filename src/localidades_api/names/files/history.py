"""The places of an index: the localities of a release, with their names and keys in earlier releases."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

from localidades_api.catalogue.keys import CLAVE_OF_SEAT
from localidades_api.names.places import Former, IndexedPlace, Withdrawn


class Areas(NamedTuple):
    """The areas of a release by key: the name of each estado, and the name and the estado of each municipio."""

    estados: Mapping[int, str]
    municipios: Mapping[int, tuple[str, int]]

    @classmethod
    def of(cls, states: Iterable[Any], municipalities: Iterable[Any]) -> Self:
        """Return the areas in rows of the database or of a file."""
        return cls(
            {row.id: row.nombre for row in states}, {row.id: (row.nombre, row.estado_id) for row in municipalities}
        )


class History:
    """The localities of a release, and what earlier releases had that it does not; add the oldest first.

    Localities are rows of the database or of a file, whose columns have the same names.
    """

    def __init__(self, localities: Sequence[Any], areas: Areas) -> None:
        self._localities = localities
        self._areas = areas
        self._by_id = {row.id: row for row in localities}
        self._gone: dict[int, Withdrawn] = {}
        self._former: dict[int, list[Former]] = defaultdict(list)  # by the key of the current place

    def places(self) -> Iterator[IndexedPlace]:
        """Yield the places of the release with their former names."""
        for row in self._localities:
            municipio, estado_id = self._areas.municipios[row.municipio_id]
            yield IndexedPlace(
                row.id,
                row.nombre,
                row.municipio_id,
                municipio,
                estado_id,
                self._areas.estados[estado_id],
                row.ambito,
                row.poblacion,
                row.latitud,
                row.longitud,
                row.altitud,
                row.viviendas,
                is_seat=row.clave == CLAVE_OF_SEAT,
                former=tuple(self._former.get(row.id, ())),
            )

    def withdrawn(self) -> Iterator[Withdrawn]:
        """Yield the places of earlier releases without a successor."""
        followed = {former.id for found in self._former.values() for former in found}
        return (gone for gone in self._gone.values() if gone.id not in followed)

    def add(self, localities: Iterable[Any], municipalities: Iterable[Any]) -> None:
        """Add an earlier release.

        A place under a new key is the only one with the name and the point of the old one.
        """
        municipios = {row.id: row.nombre for row in municipalities}
        earlier = sorted((row for row in localities if row.municipio_id in municipios), key=attrgetter("id"))
        old = {row.id for row in earlier}
        new: dict[tuple[str, float | None, float | None], list[int]] = defaultdict(list)
        for row in self._localities:
            if row.id not in old and row.latitud is not None:
                new[row.nombre, row.latitud, row.longitud].append(row.id)
        for row in earlier:
            municipio = municipios[row.municipio_id]
            same = self._by_id.get(row.id)
            if same is None:
                self._gone[row.id] = Withdrawn(row.id, row.nombre, municipio)
                successors = new.get((row.nombre, row.latitud, row.longitud), ())
                if len(successors) == 1:
                    self._former[successors[0]].append(Former(row.nombre, municipio, row.id))
            elif (same.nombre, self._areas.municipios[same.municipio_id][0]) != (row.nombre, municipio):
                self._former[row.id].append(Former(row.nombre, municipio, row.id))
