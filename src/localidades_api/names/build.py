"""Builds an index: sorts the places by prominence, writes the files, and indexes words with tantivy."""

import json
import shutil
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tantivy

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, label
from localidades_api.names.areas import forms_of_state
from localidades_api.names.fields import MAX_BEGINNING, schema, starts
from localidades_api.names.layout import (
    EVERYWHERE,
    FILES,
    HOMONYM,
    JOINED,
    KEY,
    LABEL,
    MAX_JOINED,
    MAX_PROMINENT,
    MAX_ROWS,
    META,
    MUNICIPIO_HOMONYM,
    ORDER,
    PART_OF_MUNICIPIO,
    PROMINENT_WORDS,
    SEAT,
    SHORT_OF_TOWN,
    SHORT_OF_TOWN_IN_STATE,
    URBAN,
    WITHDRAWN,
    WORDS,
)
from localidades_api.names.naming import Naming, PlaceName, ShortNames
from localidades_api.names.normalize import canonical
from localidades_api.names.places import IndexedPlace, Withdrawn, prominent_population
from localidades_api.names.tables import Blocks, Records, Table

_OWN = frozenset({"n", "b"})  # kinds of names
_HEAP = 64_000_000  # bytes that tantivy may hold before it writes a segment


def build_index(folder: Path, places: Iterable[IndexedPlace], withdrawn: Iterable[Withdrawn] = ()) -> None:
    """Write the index of a release's places into a folder that does not exist yet; other processes see all or nothing.

    `withdrawn` are the places of earlier releases that have no successor: rows that name them must not be taken for
    others. If another process has written the index meanwhile, that one stays.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _Builder(working, sorted(places, key=_rank)).build(withdrawn)
        try:
            working.rename(folder)
        except OSError:
            if not (folder / META).exists():
                raise
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _rank(place: IndexedPlace) -> tuple[int, int]:
    """Return what places are sorted by: the most prominent first."""
    return -prominent_population(place.poblacion, is_urban=place.ambito == "U", is_seat=place.is_seat), place.id


def _writer(folder: Path) -> tantivy.IndexWriter:
    folder.mkdir()
    # One segment, so that ranks are compared once.
    return tantivy.Index(schema(), str(folder)).writer(heap_size=_HEAP, num_threads=1)


def _in_list(place: IndexedPlace) -> tuple[int, int]:
    """Return what the list is sorted by: clave, then id."""
    return place.id % KEYS_OF_A_MUNICIPIO, place.id


class _Builder:
    def __init__(self, folder: Path, places: Sequence[IndexedPlace]) -> None:
        self._folder = folder
        self._places = places
        self._naming = Naming(places)
        self._short_names = ShortNames(places)
        self._order = array("I", sorted(range(len(places)), key=lambda row: _in_list(places[row])))
        self._positions = array("I", self._order)  # of each row, the inverse of the order
        for position, row in enumerate(self._order, 1):
            self._positions[row] = position
        self._table = Table()
        self._blocks = Blocks()
        self._homonyms = Counter((place.municipio_id, fold(place.nombre)) for place in places)
        self._municipios = {place.municipio_id: place.municipio for place in places}
        self._namesakes = Counter((id_ // KEYS_OF_A_STATE, nombre) for id_, nombre in self._municipios.items())
        self._former_areas: dict[int, str] = {}
        self._municipio_words: dict[int, set[str]] = {}
        self._area_words: dict[int, set[str]] = {}

    def build(self, withdrawn: Iterable[Withdrawn]) -> None:
        writer, prominent = [_writer(self._folder / name) for name in (WORDS, PROMINENT_WORDS)]
        records = Records(self._folder)
        for row, place in enumerate(self._places):
            names, folded = self._naming.names(place), fold(place.nombre)
            flags = self._flags(place, names, folded)
            records.add(place, names, flags)
            self._add_names(_checked(row), place, names, folded, flags)
            document = self._document(row, place, names, folded)
            writer.add_document(document)
            if row < MAX_PROMINENT:
                prominent.add_document(document)
        for row, gone in enumerate(withdrawn, len(self._places)):
            records.add_key(gone.id)
            self._add_withdrawn(_checked(row), gone)
        records.close()
        for each in (writer, prominent):
            each.commit()
            each.wait_merging_threads()
        (self._folder / ORDER).write_bytes(self._order.tobytes())
        self._table.write(self._folder)
        self._write_meta(self._blocks.write(self._folder))

    def _flags(self, place: IndexedPlace, names: Sequence[PlaceName], folded: str) -> int:
        return (
            (SEAT if place.is_seat else 0)
            | (URBAN if place.ambito == "U" else 0)
            | (HOMONYM if self._homonyms[place.municipio_id, folded] > 1 else 0)
            | (MUNICIPIO_HOMONYM if self._namesakes[place.estado_id, place.municipio] > 1 else 0)
            | (SHORT_OF_TOWN if self._short_names.is_of_town(place, place.municipio_id, folded) else 0)
            | (SHORT_OF_TOWN_IN_STATE if self._short_names.is_of_town(place, place.estado_id, folded) else 0)
            | (PART_OF_MUNICIPIO if self._is_part_of_municipio(place, names) else 0)
        )

    def _is_part_of_municipio(self, place: IndexedPlace, names: Sequence[PlaceName]) -> bool:
        return not place.is_seat and all(
            self._words_of_municipio(place).issuperset(name.words) for name in names if name.kind in _OWN
        )

    def _add_names(self, row: int, place: IndexedPlace, names: Sequence[PlaceName], folded: str, flags: int) -> None:
        """Let a place be found by its names, here and where it was before, by its keys, and by its label."""
        found = {" ".join(words) for _, words, _ in names}
        municipios = {place.municipio_id}
        for former in place.former:
            municipio_id = former.id // KEYS_OF_A_MUNICIPIO
            if former.municipio != place.municipio or municipio_id != place.municipio_id:
                self._former_areas.setdefault(municipio_id, former.municipio)
                municipios.add(municipio_id)
        scopes = {EVERYWHERE, *municipios, *(id_ // KEYS_OF_A_STATE for id_ in municipios)}
        self._table.add(row, scopes, {*found, folded, *(fold(former.nombre) for former in place.former)})
        self._table.add(row, [KEY], {str(place.id), *(str(former.id) for former in place.former)})
        written = label(
            place.id,
            place.nombre,
            place.municipio,
            place.estado,
            has_homonym=bool(flags & HOMONYM),
            municipio_has_homonym=bool(flags & MUNICIPIO_HOMONYM),
        )
        self._table.add(row, [LABEL], [fold(written)])
        if row < MAX_JOINED:
            spaced = {name for name in (folded, fold(place.municipio) if place.is_seat else "") if " " in name}
            self._table.add(row, [JOINED], {name.replace(" ", "") for name in spaced})
        for municipio_id in municipios:
            self._blocks.add(row, municipio_id, found)

    def _add_withdrawn(self, row: int, gone: Withdrawn) -> None:
        municipio_id = gone.id // KEYS_OF_A_MUNICIPIO
        self._former_areas.setdefault(municipio_id, gone.municipio)
        self._table.add(row, [WITHDRAWN], [str(gone.id), f"{municipio_id}/{fold(gone.nombre)}"])

    def _document(self, row: int, place: IndexedPlace, names: Sequence[PlaceName], folded: str) -> tantivy.Document:
        own = {word for _, words, _ in names for word in words}
        text = own.union(self._words_of_area(place), *(canonical(former.municipio) for former in place.former))
        document = tantivy.Document()
        document.add_text("name", " ".join(own))
        written = {word for name in (place.nombre, *(name.written for name in names)) for word in fold(name).split(" ")}
        document.add_text("raw", " ".join(written - own))
        document.add_text("text", " ".join(text))
        document.add_text("begin", " ".join({word[:length] for word in text for length in range(1, MAX_BEGINNING + 1)}))
        document.add_text("start", " ".join(starts(folded, names)))
        clave = place.id % KEYS_OF_A_MUNICIPIO
        document.add_text("scope", f"e{place.estado_id} m{place.municipio_id} c{clave:04d} a{place.ambito}")
        document.add_unsigned("rank", row)
        document.add_unsigned("position", self._positions[row])
        return document

    def _words_of_municipio(self, place: IndexedPlace) -> set[str]:
        if place.municipio_id not in self._municipio_words:
            self._municipio_words[place.municipio_id] = set(canonical(place.municipio))
        return self._municipio_words[place.municipio_id]

    def _words_of_area(self, place: IndexedPlace) -> set[str]:
        """Return the words of a place's municipio and estado."""
        if place.municipio_id not in self._area_words:
            forms = forms_of_state(place.estado_id, place.estado)
            self._area_words[place.municipio_id] = self._words_of_municipio(place).union(*forms)
        return self._area_words[place.municipio_id]

    def _write_meta(self, blocks: dict[str, tuple[int, int, int]]) -> None:
        former = {id_: name for id_, name in self._former_areas.items() if self._municipios.get(id_) != name}
        meta = {
            "sizes": {name: (self._folder / name).stat().st_size for name in FILES},
            "rows": len(self._places),
            "blocks": blocks,
            "estados": dict(sorted({place.estado_id: place.estado for place in self._places}.items())),
            "municipios": dict(sorted(self._municipios.items())),
            "former": dict(sorted(former.items())),
        }
        (self._folder / META).write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def _checked(row: int) -> int:
    if row >= MAX_ROWS:
        raise ValueError(f"An index holds at most {MAX_ROWS:,} places.")
    return row
