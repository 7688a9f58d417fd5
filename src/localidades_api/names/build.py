"""Builds an index: ranks the places, writes the files of `layout`, and indexes words with tantivy."""

import json
import math
import shutil
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import tantivy

from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, label
from localidades_api.names import layout
from localidades_api.names.naming import Naming, ShortNames
from localidades_api.names.places import IndexedPlace, NameKind, PlaceName, Withdrawn, ranked_population
from localidades_api.names.query import MAX_BEGINNING, MAX_START, schema
from localidades_api.names.text import canonical, forms_of_state
from localidades_api.names.vocabulary import ARTICLES

_OWN = frozenset({NameKind.OWN, NameKind.BRACKET})
_AMBITOS: Mapping[str | None, int] = {None: 0, "U": layout.URBAN, "R": layout.RURAL}
_SHARE_BITS = 6
_SHARE_SHIFT = 64 - _SHARE_BITS
_CHUNK = 5000  # places between two reports of progress
_HEAP = 64_000_000  # bytes that tantivy may hold before it writes a segment


def build_index(folder: Path, places: Iterable[IndexedPlace], withdrawn: Iterable[Withdrawn] = ()) -> None:
    """Write the index of a release's places into a new folder; see `write_index` and `new_folder`."""
    with new_folder(folder) as working:
        write_index(working, places, withdrawn)


def write_index(
    folder: Path,
    places: Iterable[IndexedPlace],
    withdrawn: Iterable[Withdrawn] = (),
    advance: Callable[[int], None] = lambda _rows: None,
) -> None:
    """Write the index of a release's places into an empty folder; `advance` is called with numbers of places.

    `withdrawn` are the places of earlier releases without a successor: a row with the name of one must not be matched
    to another place.
    """
    _Builder(folder, sorted(places, key=_rank_key)).build(withdrawn, advance)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Lend an empty folder that gets the name of `folder` at the end; other processes see all of it or nothing.

    An index that another process has written in the meantime is kept.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield working
        try:
            working.rename(folder)
        except OSError:
            if not (folder / layout.META).exists():
                raise
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _rank_key(place: IndexedPlace) -> tuple[int, int]:
    """Return the sort key that puts the highest-ranked place first."""
    return -ranked_population(place.poblacion, is_urban=place.ambito == "U", is_seat=place.is_seat), place.id


def _writer(folder: Path) -> tantivy.IndexWriter:
    folder.mkdir()
    # One thread writes one segment, so that ranks are compared once.
    return tantivy.Index(schema(), str(folder)).writer(heap_size=_HEAP, num_threads=1)


def _list_key(place: IndexedPlace) -> tuple[int, int]:
    """Return the sort key of the list: clave, then id."""
    return place.id % KEYS_OF_A_MUNICIPIO, place.id


class _Builder:
    def __init__(self, folder: Path, places: Sequence[IndexedPlace]) -> None:
        self._folder = folder
        self._places = places
        self._naming = Naming(places)
        self._short_names = ShortNames(places)
        self._order = array("I", sorted(range(len(places)), key=lambda row: _list_key(places[row])))
        self._positions = array("I", self._order)  # of each row, the inverse of the order
        for position, row in enumerate(self._order, 1):
            self._positions[row] = position
        self._table = _Table()
        self._blocks = _Blocks()
        self._homonyms = Counter((place.municipio_id, fold(place.nombre)) for place in places)
        self._municipios = {place.municipio_id: place.municipio for place in places}
        self._namesakes = Counter((id_ // KEYS_OF_A_STATE, nombre) for id_, nombre in self._municipios.items())
        self._former_areas: dict[int, str] = {}
        self._municipio_words: dict[int, set[str]] = {}
        self._area_words: dict[int, set[str]] = {}

    def build(self, withdrawn: Iterable[Withdrawn], advance: Callable[[int], None]) -> None:
        writer, top = [_writer(self._folder / name) for name in (layout.WORDS, layout.TOP_WORDS)]
        records = _Records(self._folder)
        for row, place in enumerate(self._places):
            names, folded = self._naming.names(place), fold(place.nombre)
            flags = self._flags(place, names, folded)
            records.add(place, names, flags)
            self._add_names(_checked(row), place, names, folded, flags)
            document = self._document(row, place, names, folded)
            writer.add_document(document)
            if row < layout.MAX_TOP:
                top.add_document(document)
            if (row + 1) % _CHUNK == 0:
                advance(_CHUNK)
        advance(len(self._places) % _CHUNK)
        for row, gone in enumerate(withdrawn, len(self._places)):
            records.add_key(gone.id)
            self._add_withdrawn(_checked(row), gone)
        records.close()
        for each in (writer, top):
            each.commit()
            each.wait_merging_threads()
        (self._folder / layout.ORDER).write_bytes(self._order.tobytes())
        self._table.write(self._folder)
        self._write_meta(self._blocks.write(self._folder))

    def _flags(self, place: IndexedPlace, names: Sequence[PlaceName], folded: str) -> int:
        return (
            (layout.SEAT if place.is_seat else 0)
            | _AMBITOS[place.ambito]
            | (layout.HOMONYM if self._homonyms[place.municipio_id, folded] > 1 else 0)
            | (layout.MUNICIPIO_HOMONYM if self._namesakes[place.estado_id, place.municipio] > 1 else 0)
            | (layout.SHORT_OF_TOWN if self._short_names.is_of_town(place, place.municipio_id, folded) else 0)
            | (layout.SHORT_OF_TOWN_IN_STATE if self._short_names.is_of_town(place, place.estado_id, folded) else 0)
            | (layout.PART_OF_MUNICIPIO if self._is_part_of_municipio(place, names) else 0)
        )

    def _is_part_of_municipio(self, place: IndexedPlace, names: Sequence[PlaceName]) -> bool:
        return not place.is_seat and all(
            self._words_of_municipio(place).issuperset(name.words) for name in names if name.kind in _OWN
        )

    def _add_names(self, row: int, place: IndexedPlace, names: Sequence[PlaceName], folded: str, flags: int) -> None:
        """Make a place findable by its names in its present and former areas, by its keys, and by its label."""
        found = {" ".join(words) for _, words, _ in names}
        municipios = {place.municipio_id}
        for former in place.former:
            municipio_id = former.id // KEYS_OF_A_MUNICIPIO
            if former.municipio != place.municipio or municipio_id != place.municipio_id:
                self._former_areas.setdefault(municipio_id, former.municipio)
                municipios.add(municipio_id)
        scopes = {layout.EVERYWHERE, *municipios, *(id_ // KEYS_OF_A_STATE for id_ in municipios)}
        self._table.add(row, scopes, {*found, folded, *(fold(former.nombre) for former in place.former)})
        self._table.add(row, [layout.KEY], {str(place.id), *(str(former.id) for former in place.former)})
        written = label(
            place.id,
            place.nombre,
            place.municipio,
            place.estado,
            has_homonym=bool(flags & layout.HOMONYM),
            municipio_has_homonym=bool(flags & layout.MUNICIPIO_HOMONYM),
        )
        self._table.add(row, [layout.LABEL], [fold(written)])
        if row < layout.MAX_JOINED:
            spaced = {name for name in (folded, fold(place.municipio) if place.is_seat else "") if " " in name}
            self._table.add(row, [layout.JOINED], {name.replace(" ", "") for name in spaced})
        for municipio_id in municipios:
            self._blocks.add(row, municipio_id, found)

    def _add_withdrawn(self, row: int, gone: Withdrawn) -> None:
        municipio_id = gone.id // KEYS_OF_A_MUNICIPIO
        self._former_areas.setdefault(municipio_id, gone.municipio)
        self._table.add(row, [layout.WITHDRAWN], [str(gone.id), f"{municipio_id}/{fold(gone.nombre)}"])

    def _document(self, row: int, place: IndexedPlace, names: Sequence[PlaceName], folded: str) -> tantivy.Document:
        own = {word for _, words, _ in names for word in words}
        text = own.union(self._words_of_area(place), *(canonical(former.municipio) for former in place.former))
        document = tantivy.Document()
        document.add_text("name", " ".join(own))
        written = {word for name in (place.nombre, *(name.written for name in names)) for word in fold(name).split(" ")}
        document.add_text("raw", " ".join(written - own))
        document.add_text("text", " ".join(text))
        document.add_text("begin", " ".join({word[:length] for word in text for length in range(1, MAX_BEGINNING + 1)}))
        document.add_text("start", " ".join(_starts(folded, names)))
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
            "sizes": {name: (self._folder / name).stat().st_size for name in layout.FILES},
            "rows": len(self._places),
            "blocks": blocks,
            "estados": dict(sorted({place.estado_id: place.estado for place in self._places}.items())),
            "municipios": dict(sorted(self._municipios.items())),
            "former": dict(sorted(former.items())),
        }
        (self._folder / layout.META).write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def _starts(folded: str, names: Iterable[PlaceName]) -> set[str]:
    """Return the beginnings by which a few typed letters find a place, with its article and without."""
    written = {folded, *(" ".join(words) for _, words, _ in names)}
    article, _, rest = folded.partition(" ")
    if rest and article in ARTICLES:
        written.add(rest)
    return {name[:length].strip().replace(" ", "_") for name in written for length in range(1, MAX_START + 1)}


def _checked(row: int) -> int:
    if row >= layout.MAX_ROWS:
        raise ValueError(f"An index holds at most {layout.MAX_ROWS:,} places.")
    return row


# -- The files


class _Records:
    """Writes the records of places, and their texts."""

    def __init__(self, folder: Path) -> None:
        self._records = (folder / layout.RECORDS).open("wb")
        self._texts = (folder / layout.TEXTS).open("wb")
        self._offset = 0

    def add(self, place: IndexedPlace, names: Sequence[PlaceName], flags: int) -> None:
        """Write the next row."""
        population = -1 if place.poblacion is None else place.poblacion
        latitude = math.nan if place.latitud is None else place.latitud
        longitude = math.nan if place.longitud is None else place.longitud
        altitude = layout.UNKNOWN_ALTITUDE if place.altitud is None else place.altitud
        dwellings = -1 if place.viviendas is None else place.viviendas
        values = place.id, population, latitude, longitude, altitude, dwellings, self._offset, flags
        self._records.write(layout.RECORD.pack(*values))
        text = _text_of(place, names)
        self._texts.write(text)
        self._offset += len(text)

    def add_key(self, id_: int) -> None:
        """Write the next row for a key without any other data."""
        self._records.write(layout.RECORD.pack(id_, -1, math.nan, math.nan, layout.UNKNOWN_ALTITUDE, -1, 0, 0))

    def close(self) -> None:
        """Complete the files; only a file with at least one byte can be mapped."""
        self._texts.write(b"\n")
        self._records.close()
        self._texts.close()


def _text_of(place: IndexedPlace, names: Sequence[PlaceName]) -> bytes:
    """Return the text of a place as a line; INEGI's names contain no control characters."""
    named = layout.ITEM.join(f"{kind}{' '.join(words)}{layout.FIELD}{written}" for kind, words, written in names)
    former = layout.ITEM.join(
        f"{former.nombre}{layout.FIELD}{former.municipio}{layout.FIELD}{former.id}" for former in place.former
    )
    return f"{place.nombre}{layout.PART}{named}{layout.PART}{former}".replace("\n", " ").encode() + b"\n"


class _Table:
    """Collects the rows of names within scopes, and writes them sorted."""

    def __init__(self) -> None:
        self._shares = [array("Q") for _ in range(1 << _SHARE_BITS)]  # of the entries, by their first bits

    def add(self, row: int, scopes: Iterable[int], names: Iterable[str]) -> None:
        """Make a row findable under names in scopes."""
        for name in names:
            name_digest = layout.digest(name)
            for scope in scopes:
                entry = layout.entry_prefix(scope, name_digest) | row
                self._shares[entry >> _SHARE_SHIFT].append(entry)

    def write(self, folder: Path) -> None:
        """Write the file one share at a time: all entries as Python integers would take 300 MB."""
        with (folder / layout.LOOKUP).open("wb") as file:
            for entries in self._shares:
                array("Q", sorted(set(entries))).tofile(file)


class _Blocks:
    """Collects the names of each municipio and writes them, one municipio after another."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))

    def add(self, row: int, municipio_id: int, names: Iterable[str]) -> None:
        """Add a row's names within a municipio."""
        names_of, rows_of = self._blocks[municipio_id]
        before = len(names_of)
        names_of.extend(sorted(names))
        rows_of.extend([row] * (len(names_of) - before))

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
