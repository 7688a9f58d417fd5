"""The places of an index: the localities of a release, with their names in earlier releases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

from localidades_api.catalogue.keys import CLAVE_OF_SEAT
from localidades_api.names.places import Former, IndexedPlace


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


def index_places(
    localities: Iterable[Any], areas: Areas, former: Mapping[int, Sequence[Former]]
) -> Iterator[IndexedPlace]:
    """Yield the places of localities: rows of the database or of a file, whose columns have the same names."""
    for row in localities:
        municipio, estado_id = areas.municipios[row.municipio_id]
        yield IndexedPlace(
            row.id,
            row.nombre,
            row.municipio_id,
            municipio,
            estado_id,
            areas.estados[estado_id],
            row.ambito,
            row.poblacion,
            row.latitud,
            row.longitud,
            row.altitud,
            row.viviendas,
            is_seat=row.clave == CLAVE_OF_SEAT,
            former=tuple(former.get(row.id, ())),
        )
