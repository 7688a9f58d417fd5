"""Writes the index of words with tantivy: one document for each place (see `query.schema`)."""

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

import tantivy

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.files import layout
from localidades_api.names.files.naming import Names
from localidades_api.names.files.query import MAX_BEGINNING, MAX_START, schema
from localidades_api.names.places import IndexedPlace, PlaceName
from localidades_api.names.reading.text import canonical, forms_of_state
from localidades_api.names.reading.vocabulary import ARTICLES

_HEAP = 64_000_000  # bytes that tantivy may hold before it writes a segment


class WordWriter:
    """Writes the folders of words."""

    def __init__(self, folder: Path, order: "array[int]") -> None:
        self._positions = array("I", order)  # of each row, the inverse of the order
        for position, row in enumerate(order, 1):
            self._positions[row] = position
        self._words, self._top = [_writer(folder / name) for name in (layout.WORDS, layout.TOP_WORDS)]
        self._shared: dict[str, _TextFields] = {}
        self._areas: dict[int, _TextFields] = {}

    def add(self, row: int, place: IndexedPlace, names: Names) -> None:
        """Index the words of the next row."""
        document = self._document(row, place, names)
        self._words.add_document(document)
        if row < layout.MAX_TOP:
            self._top.add_document(document)

    def close(self) -> None:
        """Complete the folders."""
        for writer in (self._words, self._top):
            writer.commit()
            writer.wait_merging_threads()

    def _document(self, row: int, place: IndexedPlace, names: Names) -> tantivy.Document:
        """Return a place's words; a word that a field has twice is indexed once."""
        own, area = self._own(place, names), self._area(place)
        clave = place.id % KEYS_OF_A_MUNICIPIO
        document = tantivy.Document()
        document.add_text("name", own.name)
        document.add_text("raw", own.raw)
        document.add_text("text", f"{own.text} {area.text}")
        document.add_text("begin", f"{own.begin} {area.begin}")
        document.add_text("start", own.start)
        document.add_text("scope", f"e{place.estado_id} m{place.municipio_id} c{clave:04d} a{place.ambito}")
        document.add_unsigned("rank", row)
        document.add_unsigned("position", self._positions[row])
        return document

    def _own(self, place: IndexedPlace, names: Names) -> "_TextFields":
        if not names.are_shared:
            return _TextFields.of_place(place, names)
        if place.nombre not in self._shared:
            self._shared[place.nombre] = _TextFields.of_place(place, names)
        return self._shared[place.nombre]

    def _area(self, place: IndexedPlace) -> "_TextFields":
        if place.municipio_id not in self._areas:
            self._areas[place.municipio_id] = _TextFields.of_area(place)
        return self._areas[place.municipio_id]


class _TextFields(NamedTuple):
    """Fields of a document, as text."""

    text: str
    begin: str
    name: str = ""
    raw: str = ""
    start: str = ""

    @classmethod
    def of_place(cls, place: IndexedPlace, names: Names) -> Self:
        """Return the words of a place's names, and of the municipios that it was in."""
        words = {word for name in names.names for word in name.words}
        written = set(names.folded.split(" ")).union(
            *(fold(name.written).split(" ") for name in names.names if name.written)
        )
        text = words.union(*(canonical(former.municipio) for former in place.former)) if place.former else words
        start = " ".join(_starts(names.folded, names.names))
        return cls(" ".join(text), _beginnings(text), " ".join(words), " ".join(written - words), start)

    @classmethod
    def of_area(cls, place: IndexedPlace) -> Self:
        """Return the words of a place's municipio and estado."""
        text = set(canonical(place.municipio)).union(*forms_of_state(place.estado_id, place.estado))
        return cls(" ".join(text), _beginnings(text))


def _writer(folder: Path) -> tantivy.IndexWriter:
    folder.mkdir()
    # One thread writes one segment, so that ranks are compared once.
    return tantivy.Index(schema(), str(folder)).writer(heap_size=_HEAP, num_threads=1)


def _beginnings(words: Iterable[str]) -> str:
    return " ".join({word[:length] for word in words for length in range(1, MAX_BEGINNING + 1)})


def _starts(folded: str, names: Iterable[PlaceName]) -> set[str]:
    """Return the beginnings by which a few typed letters find a place, with its article and without."""
    written = {folded, *(" ".join(name.words) for name in names)}
    article, _, rest = folded.partition(" ")
    if rest and article in ARTICLES:
        written.add(rest)
    return {name[:length].strip().replace(" ", "_") for name in written for length in range(1, MAX_START + 1)}
