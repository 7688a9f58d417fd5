"""The open index that suggestions, searches and matches read."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from rapidfuzz import fuzz, process

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, label
from localidades_api.names import weights
from localidades_api.names.files.layout import FIELD, HOMONYM, ITEM, MUNICIPIO_HOMONYM, PART, IndexFiles
from localidades_api.names.files.naming import name_areas
from localidades_api.names.files.query import WordIndex
from localidades_api.names.places import Former, IndexedLocality, NameKind, PlaceName
from localidades_api.names.reading.areas import AreaBook

T = TypeVar("T")

_NAME_KINDS = {kind.value: kind for kind in NameKind}  # a call of the enum takes three times as long
_CACHED_WORDS = 50_000
_CACHED_RARITIES = 5_000
_CACHED_PLACES = 4096
_CACHED_BLOCKS = 512
_HOMONYMS = 6  # places proposed of one name: one more than a result shows
_LEAST_LIKENESS = 60  # of 100, letter by letter: below it two names have nothing in common


class IndexReader:
    """The index in a folder; any number of threads and processes may read it."""

    def __init__(self, folder: Path) -> None:
        """Open it; raise IndexUnreadableError if the folder holds no index, or not all of one."""
        self.layout = IndexFiles(folder)
        meta = self.layout.meta
        # Of each municipio and estado: how many localities it has, and their population as far as it is known.
        self.totals: dict[int, tuple[int, int | None]] = _by_key(meta["totals"])
        self.populations = {id_: population for id_, (_, population) in self.totals.items()}
        self.words = WordIndex(folder)
        self.former: dict[int, str] = _by_key(meta["former"])  # names of municipios in earlier releases
        self.areas = AreaBook(_by_key(meta["estados"]), _by_key(meta["municipios"]), self.former, self.words.count)
        self.area_places = name_areas(self.areas, self.former, _by_key(meta["seats"]), self.populations)
        self._count = lru_cache(_CACHED_WORDS)(self.words.count)
        self.rarity = lru_cache(_CACHED_RARITIES)(self._rarity)
        self.place = lru_cache(_CACHED_PLACES)(self._read_place)
        self.block = lru_cache(_CACHED_BLOCKS)(self._read_block)

    def close(self) -> None:
        """Close the files."""
        self.layout.close()

    def label(self, place: IndexedLocality) -> str:
        """Return the label of a place."""
        return self.label_of(place.id, place.nombre, place.flags)

    def label_of(self, id_: int, nombre: str, flags: int) -> str:
        """Return the label of the place with this key, name and flags."""
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

    def _rarity(self, word: str) -> float:
        """Return the decimal logarithm of the number of places for each place with a word: 5.5 for one of a single."""
        return math.log10(weights.PLACES / (self._count(word) + 1))

    def is_word(self, word: str) -> bool:
        """Return whether the names of several places have a word."""
        return self._count(word) >= weights.MIN_PLACES_OF_WORD

    def _read_place(self, row: int) -> IndexedLocality:
        id_, population, latitude, longitude, _, _, offset, flags = self.layout.record(row)
        poblacion = None if population < 0 else population
        nombre, named, former = self.layout.text(offset).split(PART)
        municipio_id = id_ // KEYS_OF_A_MUNICIPIO
        return IndexedLocality(
            row,
            id_,
            nombre,
            poblacion,
            None if math.isnan(latitude) else latitude,
            None if math.isnan(longitude) else longitude,
            flags,
            tuple([_read_name(item) for item in named.split(ITEM)]),
            tuple([_read_former(item) for item in former.split(ITEM)]) if former else (),
            self.areas.words[municipio_id],
            self.areas.state_words[municipio_id // KEYS_OF_A_STATE],
        )

    def _read_block(self, municipio_id: int) -> "Block":
        return Block(*self.layout.block(municipio_id))


def _by_key(named: dict[str, T]) -> dict[int, T]:
    return {int(key): value for key, value in named.items()}


def _read_name(item: str) -> PlaceName:
    words, _, written = item.partition(FIELD)
    return PlaceName(_NAME_KINDS[words[0]], tuple(words[1:].split(" ")), written)


def _read_former(item: str) -> Former:
    nombre, municipio, id_ = item.split(FIELD)
    return Former(nombre, municipio, int(id_))


class Block:
    """The normalised names in a municipio, and the rows of the places that have each."""

    def __init__(self, names: Iterable[str], rows: Iterable[int]) -> None:
        first_rows: dict[str, int] = {}
        self._homonyms: dict[str, list[int]] = defaultdict(list)  # further rows: most names have none
        for name, row in zip(names, rows, strict=True):
            if name in first_rows:
                self._homonyms[name].append(row)
            else:
                first_rows[name] = row
        self._names = list(first_rows)
        self._first_rows = list(first_rows.values())
        self._lines = " " + "\n ".join(self._names) + "\n"

    def _rows(self, index: int) -> list[int]:
        return [self._first_rows[index], *self._homonyms.get(self._names[index], ())][:_HOMONYMS]

    def most_similar(self, words: Iterable[str], essence: Iterable[str], limit: int) -> dict[int, None]:
        """Return the rows of the names that share most letters with these words, and of the closest spellings.

        `essence` is `words` without those for the kind of a place.
        """
        found = dict.fromkeys(row for index in self._sharing(essence, limit) for row in self._rows(index))
        spelt, bare = " ".join(words), " ".join(essence)
        for text in dict.fromkeys((spelt, bare)):
            for _, _, index in process.extract(
                text, self._names, scorer=fuzz.ratio, limit=limit, score_cutoff=_LEAST_LIKENESS
            ):
                found |= dict.fromkeys(self._rows(index))
        return found

    def most_alike(self, letters: str, limit: int) -> dict[int, None]:
        """Return the rows of the names most like these letters, whatever their spaces."""
        like = process.extract(letters, self._names, scorer=fuzz.ratio, limit=limit, score_cutoff=_LEAST_LIKENESS)
        return dict.fromkeys(row for _, _, index in like for row in self._rows(index))

    def _begun(self, word: str) -> Iterator[int]:
        """Yield the indexes of the names with a word that begins so.

        One text is searched faster than many names, and to keep the words of each would cost more: most blocks are
        searched a few times.
        """
        index, end = 0, 0
        while (at := self._lines.find(f" {word}", end)) >= 0:
            index += self._lines.count("\n", end, at)
            yield index
            end = self._lines.find("\n", at)

    def _sharing(self, essence: Iterable[str], limit: int) -> list[int]:
        shared: dict[int, int] = defaultdict(int)
        letters = 0
        for word in dict.fromkeys(essence):  # a fixed order, which decides between equally similar names
            letters += len(word)
            for index in self._begun(word):  # it may be cut short
                shared[index] += len(word) * max(1, self._names[index].split(" ").count(word))
        likeness = {
            index: same / (letters + len(self._names[index].replace(" ", "")) - same) for index, same in shared.items()
        }
        return sorted(likeness, key=lambda index: -likeness[index])[:limit]
