"""An index of names, opened: suggestions and matches without a database."""

import math
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, PlaceKind, label
from localidades_api.names.areas import AreaBook
from localidades_api.names.certainty import SURE
from localidades_api.names.find import Finder
from localidades_api.names.layout import FIELD, HOMONYM, ITEM, MUNICIPIO_HOMONYM, PART, SEAT, URBAN, IndexFiles
from localidades_api.names.match import Matcher
from localidades_api.names.one_line import readings
from localidades_api.names.places import Suggested, prominent_population
from localidades_api.names.query import WordIndex
from localidades_api.names.ranking import PROMINENCE, IndexedLocality
from localidades_api.names.rows import MatchResult, MatchRow
from localidades_api.names.suggest import Suggester

_LOCALITIES: frozenset[PlaceKind] = frozenset({"localidad"})
_CACHED_PLACES = 4096


class NameIndex:
    """The index in a folder; any number of threads and processes may read it."""

    def __init__(self, folder: Path) -> None:
        """Open it; raise IndexUnreadableError if the folder holds no index, or not all of one."""
        self.layout = IndexFiles(folder)
        self.digest = folder.name[:12]  # of all that the index is made from, as `caches.names` calls the folder
        meta = self.layout.meta
        self.areas = AreaBook(_by_key(meta["estados"]), _by_key(meta["municipios"]), _by_key(meta["former"]))
        self.words = WordIndex(folder)
        self.place = lru_cache(_CACHED_PLACES)(self._read_place)
        self._suggester = Suggester(self)
        self._finder = Finder(self)
        self._matcher = Matcher(self)

    def close(self) -> None:
        """Close the files."""
        self.layout.close()

    def suggest(
        self,
        text: str,
        *,
        kinds: Collection[PlaceKind] = _LOCALITIES,
        estado_id: int | None = None,
        municipio_id: int | None = None,
        limit: int = 10,
    ) -> list[Suggested]:
        """Return what a text may mean, the likeliest first; its last word may be unfinished."""
        return self._suggester.suggest(text, kinds, estado_id, municipio_id, limit)

    def find(self, filters: LocalityFilters) -> list[int]:
        """Return the positions of the places that a search and the other filters select, in the list's order."""
        return self._finder.find(filters)

    def at(self, positions: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield the key and the name of the place at each position of the list."""
        return map(self.layout.at, positions)

    def match(self, row: MatchRow, sure: float = SURE) -> MatchResult:
        """Return the place that a row means, what differs, and how certain it is: `sure` is the bound of certainty."""
        if not (row.municipio or row.estado or row.cvegeo or row.clave):
            *by_area, row = readings(self.areas, row)
            for reading in by_area:
                # What a reading with areas leaves in doubt, another may not make certain.
                if (result := self._matcher.match(reading, sure)).outcome != "none":
                    return result
        return self._matcher.match(row, sure)

    def candidates(self, row: MatchRow) -> tuple[list[int], list[dict[str, float]]]:
        """Return the keys of a named row's candidates, and the evidence for each."""
        return self._matcher.candidates(row)

    def label(self, place: IndexedLocality) -> str:
        """Return the label of a place, as the service writes it."""
        return self.label_of(place.id, place.nombre, place.flags)

    def label_of(self, id_: int, nombre: str, flags: int) -> str:
        """Return the label of a place of that key, name and flags."""
        municipio_id = id_ // KEYS_OF_A_MUNICIPIO
        municipio, estado = self.areas.municipios[municipio_id], self.areas.estados[municipio_id // KEYS_OF_A_STATE]
        return label(
            id_,
            nombre,
            municipio,
            estado,
            has_homonym=bool(flags & HOMONYM),
            municipio_has_homonym=bool(flags & MUNICIPIO_HOMONYM),
        )

    def _read_place(self, row: int) -> IndexedLocality:
        id_, population, latitude, longitude, offset, flags = self.layout.record(row)
        poblacion = None if population < 0 else population
        prominence = prominent_population(poblacion, is_urban=bool(flags & URBAN), is_seat=bool(flags & SEAT))
        nombre, told, former = self.layout.text(offset).split(PART)
        municipio_id = id_ // KEYS_OF_A_MUNICIPIO
        return IndexedLocality(
            row,
            id_,
            nombre,
            poblacion,
            None if math.isnan(latitude) else latitude,
            None if math.isnan(longitude) else longitude,
            flags,
            PROMINENCE * math.log10(1 + prominence),
            tuple(_read_name(item) for item in told.split(ITEM)),
            tuple(_read_former(item) for item in former.split(ITEM)) if former else (),
            self.areas.words[municipio_id],
            self.areas.state_words[municipio_id // KEYS_OF_A_STATE],
        )


def _by_key(names: dict[str, str]) -> dict[int, str]:
    return {int(key): name for key, name in names.items()}


def _read_name(item: str) -> tuple[str, tuple[str, ...], str]:
    words, _, written = item.partition(FIELD)
    return words[0], tuple(words[1:].split(" ")), written


def _read_former(item: str) -> tuple[str, str, int]:
    nombre, municipio, id_ = item.split(FIELD)
    return nombre, municipio, int(id_)
