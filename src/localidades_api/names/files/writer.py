"""Builds an index: ranks the places, names them, and writes their files and their words.

The files and the words are written by two processes if the machine has the cores: names are made twice then, which
takes a tenth of the time.
"""

import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from secrets import token_hex

from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.files import layout
from localidades_api.names.files.file_writer import FileWriter
from localidades_api.names.files.naming import Naming
from localidades_api.names.files.word_writer import WordWriter
from localidades_api.names.places import IndexedPlace, Withdrawn, ranked_population

_CHUNK = 5000  # places between two reports of progress


def build_index(
    folder: Path, places: Iterable[IndexedPlace], withdrawn: Iterable[Withdrawn] = (), *, in_parallel: bool = False
) -> None:
    """Write the index of a release's places into a new folder; see `write_index` and `new_folder`."""
    with new_folder(folder) as working:
        write_index(working, places, withdrawn, in_parallel=in_parallel)


def write_index(
    folder: Path,
    places: Iterable[IndexedPlace],
    withdrawn: Iterable[Withdrawn] = (),
    advance: Callable[[int], None] = lambda _rows: None,
    *,
    in_parallel: bool = False,
) -> None:
    """Write the index of a release's places into an empty folder; `advance` is called with numbers of places.

    `withdrawn` are the places of earlier releases without a successor: a row with the name of one must not be matched
    to another place. With `in_parallel`, a fork of this process, which must have no other threads, writes the words;
    raises ChildProcessError if it fails, after it has printed the reason on stderr.
    """
    ranked = sorted(places, key=_rank_key)
    naming = Naming(ranked)
    order = array("I", sorted(range(len(ranked)), key=lambda row: _list_key(ranked[row])))
    if not in_parallel:
        _write(ranked, naming, advance, FileWriter(folder, ranked, order, withdrawn), WordWriter(folder, order))
        return
    words = get_context("fork").Process(target=_write_words, args=(folder, ranked, naming, order))
    words.start()
    try:
        _write(ranked, naming, advance, FileWriter(folder, ranked, order, withdrawn))
        words.join()
    finally:
        words.kill()
    if words.exitcode:
        raise ChildProcessError(f"The process that indexes words ended with exit code {words.exitcode}.")


def _write_words(folder: Path, ranked: Sequence[IndexedPlace], naming: Naming, order: "array[int]") -> None:
    _write(ranked, naming, lambda _rows: None, WordWriter(folder, order))


def _write(
    ranked: Sequence[IndexedPlace], naming: Naming, advance: Callable[[int], None], *writers: FileWriter | WordWriter
) -> None:
    for row, place in enumerate(ranked):
        names = naming.name(place)
        for writer in writers:
            writer.add(row, place, names)
        if (row + 1) % _CHUNK == 0:
            advance(_CHUNK)
    advance(len(ranked) % _CHUNK)
    for writer in writers:
        writer.close()


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Lend an empty folder that gets the name of `folder` at the end; other processes see all of it or nothing.

    An index that another process has written in the meantime is kept.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    working = folder.with_name(f".{folder.name}-{token_hex(4)}")
    working.mkdir()
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
    return -ranked_population(place.poblacion, is_urban=place.ambito == "U", is_seat=place.is_seat), place.id


def _list_key(place: IndexedPlace) -> tuple[int, int]:
    """Return the sort key of the list: clave, then id."""
    return place.id % KEYS_OF_A_MUNICIPIO, place.id
