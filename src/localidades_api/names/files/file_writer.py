"""Writes the mapped files of an index (see `layout`)."""

import json
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, label, state_of
from localidades_api.names.files import layout
from localidades_api.names.files.naming import Names, ShortNames
from localidades_api.names.places import IndexedPlace, NameKind, Withdrawn
from localidades_api.names.reading.text import canonical

_OWN = frozenset({NameKind.OWN, NameKind.BRACKET})
_AMBITOS: Mapping[str | None, int] = {None: 0, "U": layout.URBAN, "R": layout.RURAL}


class FileWriter:
    """Writes the files of ranked places, and the keys and names of withdrawn ones."""

    def __init__(
        self, folder: Path, places: Sequence[IndexedPlace], order: "array[int]", withdrawn: Iterable[Withdrawn]
    ) -> None:
        self._folder = folder
        self._places = places
        self._order = order
        self._withdrawn = withdrawn
        self._records = _Records(folder)
        self._table = _Table()
        self._blocks = _Blocks()
        self._short_names = ShortNames(places)
        folded = {nombre: fold(nombre) for nombre in {place.nombre for place in places}}
        self._homonyms = Counter((place.municipio_id, folded[place.nombre]) for place in places)
        self._municipios = {place.municipio_id: place.municipio for place in places}
        self._namesakes = Counter((id_ // KEYS_OF_A_STATE, nombre) for id_, nombre in self._municipios.items())
        self._areas: dict[int, _Area] = {}
        self._former_areas: dict[int, str] = {}
        self._seats: dict[int, list[str]] = {}  # the name of each municipio's cabecera, and everyday names of it
        self._shared: dict[str, _Forms] = {}

    def add(self, row: int, place: IndexedPlace, names: Names) -> None:
        """Write the next row."""
        forms, area = self._forms(place, names), self._area(place)
        is_homonym = self._homonyms[place.municipio_id, names.folded] > 1
        self._records.add(place, forms.line, self._flags(place, names, forms, area, is_homonym=is_homonym))
        self._add_names(_checked(row), place, names, forms, area, is_homonym=is_homonym)
        if place.is_seat:
            everyday = dict.fromkeys(name.written for name in names.names if name.kind is NameKind.EVERYDAY)
            self._seats[place.municipio_id] = [place.nombre, *everyday]

    def close(self) -> None:
        """Complete the files."""
        for row, gone in enumerate(self._withdrawn, len(self._places)):
            self._records.add_key(gone.id)
            municipio_id = gone.id // KEYS_OF_A_MUNICIPIO
            self._former_areas.setdefault(municipio_id, gone.municipio)
            texts = str(gone.id), f"{municipio_id}/{fold(gone.nombre)}"
            self._table.add(_checked(row), (layout.WITHDRAWN,), [layout.digest(text) for text in texts])
        self._records.close()
        (self._folder / layout.ORDER).write_bytes(self._order.tobytes())
        self._table.write(self._folder)
        self._write_meta(self._blocks.write(self._folder))

    def _forms(self, place: IndexedPlace, names: Names) -> "_Forms":
        if not names.are_shared:
            return _Forms.of(place, names)
        if place.nombre not in self._shared:
            self._shared[place.nombre] = _Forms.of(place, names)
        return self._shared[place.nombre]

    def _area(self, place: IndexedPlace) -> "_Area":
        if place.municipio_id not in self._areas:
            has_homonym = self._namesakes[place.estado_id, place.municipio] > 1
            self._areas[place.municipio_id] = _Area.of(place, has_homonym=has_homonym)
        return self._areas[place.municipio_id]

    def _flags(self, place: IndexedPlace, names: Names, forms: "_Forms", area: "_Area", *, is_homonym: bool) -> int:
        is_of_town = self._short_names.is_of_town
        return (
            (layout.SEAT if place.is_seat else 0)
            | _AMBITOS[place.ambito]
            | (layout.HOMONYM if is_homonym else 0)
            | (layout.MUNICIPIO_HOMONYM if area.has_homonym else 0)
            | (layout.SHORT_OF_TOWN if is_of_town(place, place.municipio_id, names.folded) else 0)
            | (layout.SHORT_OF_TOWN_IN_STATE if is_of_town(place, place.estado_id, names.folded) else 0)
            | (layout.PART_OF_MUNICIPIO if not place.is_seat and area.words.issuperset(forms.own) else 0)
        )

    def _add_names(
        self, row: int, place: IndexedPlace, names: Names, forms: "_Forms", area: "_Area", *, is_homonym: bool
    ) -> None:
        """Make a place findable by its names in its present and former areas, by its keys, and by its label."""
        municipios = self._municipios_of(place)
        self._table.add(row, _scopes(tuple(municipios)), forms.digests)
        for municipio_id in municipios:
            self._blocks.add(row, municipio_id, forms.words)
        keys = {place.id, *(former.id for former in place.former)}
        self._table.add(row, (layout.KEY,), [layout.digest(str(key)) for key in keys])
        folded = names.folded
        if is_homonym:
            folded = fold(label(place.id, place.nombre, "", "", has_homonym=True, municipio_has_homonym=False))
        self._table.add(row, (layout.LABEL,), [layout.digest(f"{folded} {area.label}".strip())])
        if row < layout.MAX_JOINED:
            spaced = {name for name in (names.folded, area.folded if place.is_seat else "") if " " in name}
            self._table.add(row, (layout.JOINED,), [layout.digest(name.replace(" ", "")) for name in spaced])

    def _municipios_of(self, place: IndexedPlace) -> set[int]:
        municipios = {place.municipio_id}
        for former in place.former:
            municipio_id = former.id // KEYS_OF_A_MUNICIPIO
            if former.municipio != place.municipio or municipio_id != place.municipio_id:
                self._former_areas.setdefault(municipio_id, former.municipio)
                municipios.add(municipio_id)
        return municipios

    def _write_meta(self, blocks: dict[str, tuple[int, int, int]]) -> None:
        former = {id_: name for id_, name in self._former_areas.items() if self._municipios.get(id_) != name}
        meta = {
            "sizes": {name: (self._folder / name).stat().st_size for name in layout.FILES},
            "rows": len(self._places),
            "blocks": blocks,
            "estados": dict(sorted({place.estado_id: place.estado for place in self._places}.items())),
            "municipios": dict(sorted(self._municipios.items())),
            "former": dict(sorted(former.items())),
            "totals": self._totals(),
            "seats": dict(sorted(self._seats.items())),
        }
        (self._folder / layout.META).write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")

    def _totals(self) -> dict[int, tuple[int, int | None]]:
        localities, population = Counter[int](), Counter[int]()
        for place in self._places:
            for id_ in (place.municipio_id, place.estado_id):
                localities[id_] += 1
                if place.poblacion is not None:
                    population[id_] += place.poblacion
        return {id_: (count, population.get(id_)) for id_, count in sorted(localities.items())}


class _Forms(NamedTuple):
    """The names of a place as the files hold them."""

    words: list[str]  # of each name, canonical
    digests: list[int]  # of the texts that find the place in its areas
    own: frozenset[str]  # the canonical words of `nombre`, in brackets or not
    line: str  # the beginning of its text

    @classmethod
    def of(cls, place: IndexedPlace, names: Names) -> Self:
        """Write the names of a place."""
        words = {" ".join(name.words) for name in names.names}
        texts = {*words, names.folded, *(fold(former.nombre) for former in place.former)}
        own = frozenset(word for name in names.names if name.kind in _OWN for word in name.words)
        return cls(sorted(words), [layout.digest(text) for text in texts], own, _line(place.nombre, names))


class _Area(NamedTuple):
    """The municipio of places: its name, folded and as canonical words, and the end of their labels, folded."""

    folded: str
    words: frozenset[str]
    label: str
    has_homonym: bool

    @classmethod
    def of(cls, place: IndexedPlace, *, has_homonym: bool) -> Self:
        """Return the municipio of a place."""
        written = label(
            place.id, "", place.municipio, place.estado, has_homonym=False, municipio_has_homonym=has_homonym
        )
        return cls(fold(place.municipio), frozenset(canonical(place.municipio)), fold(written), has_homonym)


def _line(nombre: str, names: Names) -> str:
    named = layout.ITEM.join(f"{name.kind}{' '.join(name.words)}{layout.FIELD}{name.written}" for name in names.names)
    return f"{nombre}{layout.PART}{named}{layout.PART}"


@lru_cache(4096)
def _scopes(municipios: tuple[int, ...]) -> tuple[int, ...]:
    """Return municipios, their estados and everywhere."""
    return tuple({layout.EVERYWHERE, *municipios, *map(state_of, municipios)})


def _checked(row: int) -> int:
    if row >= layout.MAX_ROWS:
        raise ValueError(f"An index holds at most {layout.MAX_ROWS:,} places.")
    return row


class _Records:
    def __init__(self, folder: Path) -> None:
        self._records = (folder / layout.RECORDS).open("wb")
        self._texts = (folder / layout.TEXTS).open("wb")
        self._offset = 0

    def add(self, place: IndexedPlace, line: str, flags: int) -> None:
        """Write the next row; INEGI's names contain no control characters."""
        population = -1 if place.poblacion is None else place.poblacion
        latitude = math.nan if place.latitud is None else place.latitud
        longitude = math.nan if place.longitud is None else place.longitud
        altitude = layout.UNKNOWN_ALTITUDE if place.altitud is None else place.altitud
        dwellings = -1 if place.viviendas is None else place.viviendas
        values = place.id, population, latitude, longitude, altitude, dwellings, self._offset, flags
        self._records.write(layout.FIXED_PART.pack(*values))
        former = layout.ITEM.join(
            f"{former.nombre}{layout.FIELD}{former.municipio}{layout.FIELD}{former.id}" for former in place.former
        )
        text = f"{line}{former}".replace("\n", " ").encode() + b"\n"
        self._texts.write(text)
        self._offset += len(text)

    def add_key(self, id_: int) -> None:
        """Write the next row for a key without any other data."""
        self._records.write(layout.FIXED_PART.pack(id_, -1, math.nan, math.nan, layout.UNKNOWN_ALTITUDE, -1, 0, 0))

    def close(self) -> None:
        """Complete the files; only a file with at least one byte can be mapped."""
        self._texts.write(b"\n")
        self._records.close()
        self._texts.close()


class _Table:
    """Collects the rows of names within scopes, and writes them sorted."""

    def __init__(self) -> None:
        # The digests of names, and the row of each, by the scopes that have them.
        self._rows: dict[tuple[int, ...], tuple[array[int], array[int]]] = defaultdict(lambda: (array("Q"), array("I")))

    def add(self, row: int, scopes: tuple[int, ...], digests: Sequence[int]) -> None:
        """Make a row findable by the digests of names within each scope."""
        digests_of, rows_of = self._rows[scopes]
        digests_of.extend(digests)
        rows_of.extend([row] * len(digests))

    def write(self, folder: Path) -> None:
        """Write the file."""
        # Imported when needed: pyarrow takes 33 MB of each worker that uses it.
        from localidades_api.names.files.lookup_writer import write_table  # noqa: PLC0415

        entries = ((scope, *rows) for scopes, rows in self._rows.items() for scope in scopes)
        write_table(folder / layout.LOOKUP, entries)


class _Blocks:
    def __init__(self) -> None:
        self._blocks: dict[int, tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))

    def add(self, row: int, municipio_id: int, names: Sequence[str]) -> None:
        """Add a row's names within a municipio."""
        names_of, rows_of = self._blocks[municipio_id]
        names_of.extend(names)
        rows_of.extend([row] * len(names))

    def write(self, folder: Path) -> dict[str, tuple[int, int, int]]:
        """Write the files; return the first byte, the end and the first row of each municipio's names."""
        spans: dict[str, tuple[int, int, int]] = {}
        at = first = 0
        with (folder / layout.BLOCKS).open("wb") as file, (folder / layout.BLOCK_ROWS).open("wb") as rows_file:
            for municipio_id, (names, rows) in sorted(self._blocks.items()):
                block = "\n".join(names).encode()
                file.write(block + b"\n")
                array("I", rows).tofile(rows_file)
                spans[str(municipio_id)] = (at, at + len(block), first)
                at += len(block) + 1
                first += len(rows)
        return spans
