"""Turns a file into rows: finds the encoding, the separator and the columns.

The layout is INEGI's AGEEML (Catálogo Único de Claves de Áreas Geoestadísticas): every value is quoted, and the
seconds of LATITUD and LONGITUD end with an unescaped quote, so CSV readers fail on it.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.catalogue.folding import fold_header
from localidades_api.errors import CatalogueError
from localidades_api.files.archive import DAMAGED_ZIP, open_text
from localidades_api.importer.demo.generate import generate_demo
from localidades_api.importer.source import Source

# Bounds on memory for files that are not catalogues.
MAX_LINES = 4_000_000
MAX_LINE = 1024**2  # characters
_SAMPLE_BYTES = 256 * 1024
# Letters outside ASCII that suffice to detect the encoding; each of INEGI's rows has four signs of degrees and minutes.
_MIN_LETTERS = 100
# A text is windows-1252 if it has this many invalid bytes for each valid UTF-8 letter: of INEGI's 1.4 million, no two
# form valid UTF-8 by chance. Below that it is read as UTF-8, and refused at its first invalid byte.
_WINDOWS_RATIO = 10
_ESCAPED = re.compile("[\udc80-\udcff]")  # surrogates, to which `surrogateescape` decodes invalid bytes
# Errors of zipfile and zlib for a bad zip, and of the system for a bad disk.
_DAMAGE = (*DAMAGED_ZIP, OSError)

_SEPARATORS = ",\t;|"
REQUIRED = ("cve_ent", "nom_ent", "cve_mun", "nom_mun", "cve_loc", "nom_loc")


# Degrees, minutes and seconds, where a file has no decimal degrees.
_ALTERNATIVES = {name: (name,) for name in POINT}
# Columns, each with INEGI's headers for it, folded; the first that a file has counts.
COLUMNS: Mapping[str, Sequence[str]] = {
    "cvegeo": ("cvegeo", "mapa"),
    "estatus": ("estatus",),
    "cve_ent": ("cve_ent",),
    "nom_ent": ("nom_ent",),
    "nom_abr": ("nom_abr",),
    "cve_mun": ("cve_mun",),
    "nom_mun": ("nom_mun",),
    "cve_loc": ("cve_loc",),
    "nom_loc": ("nom_loc",),
    **{name: (fold_header(column.header), *_ALTERNATIVES.get(name, ())) for name, column in ATTRIBUTES.items()},
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a file: the separator, the number of values in a line, and the index of each column."""

    separator: str
    width: int
    indexes: dict[str, int]

    @classmethod
    def parse(cls, header: str) -> "Layout":
        """Read a header line; raise CatalogueError if it is not that of a catalogue."""
        separator = max(_SEPARATORS, key=header.count)
        names = [fold_header(name) for name in split_line(header, separator)]
        indexes = {
            column: names.index(spelling)
            for column, spellings in COLUMNS.items()
            for spelling in reversed(spellings)
            if spelling in names
        }
        missing = [name.upper() for name in REQUIRED if name not in indexes]
        if missing:
            raise CatalogueError(
                f"This is not a catalogue of localities: its first line does not name {', '.join(missing)}. Use the"
                " file of INEGI's catun_localidad.zip."
            )
        return cls(separator, len(names), indexes)


def split_line(line: str, separator: str) -> list[str]:
    """Split a line into values; a quote inside a quoted value needs no escape."""
    if line[:1] == '"' == line[-1:]:
        return line[1:-1].split(f'"{separator}"')
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a value over 128 kB: the line isn't a row
        return [line]


def split_lines(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Split lines, each with its line end, as `split_line` does, but INEGI's lines in half the time."""
    between = f'"{separator}"'
    return [
        line[1:-2].split(between)
        if line[:1] == '"' and line[-2:] == '"\n'
        else split_line(line.rstrip("\n"), separator)
        for line in lines
    ]


class CatalogueText(NamedTuple):
    """The text of a catalogue: its layout and its lines after the header, each with its line end."""

    member: str
    layout: Layout
    lines: Iterable[str]


@contextmanager
def open_table(source: Path | IO[bytes]) -> Iterator[CatalogueText]:
    """Open a zip, csv or txt, gzipped or not, from a path or an open file.

    Raises CatalogueError if it is not a catalogue, here or while its lines are read.
    """
    with ExitStack() as stack:
        with _translate_damage():
            member, file = open_text(source, stack)
            text = stack.enter_context(io.TextIOWrapper(file, encoding=_detect_encoding(file)))
            table = read_table(member, _read_lines(text))
        yield table


@contextmanager
def open_catalogue(file: Source) -> Iterator[CatalogueText]:
    """Open the table of a source; raises as `open_table` does."""
    if file.file is None:
        yield read_table(file.name, generate_demo())
    else:
        with open_table(file.file) as table:
            yield table


@contextmanager
def _translate_damage() -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise CatalogueError(f"The file is damaged, cut short or locked ({error}): download it again.") from error


def read_table(member: str, lines: Iterable[str]) -> CatalogueText:
    """Make a table of decoded lines; the first is the header."""
    remaining = iter(lines)
    layout = Layout.parse(next(remaining, "").rstrip("\r\n"))
    return CatalogueText(member, layout, remaining)


def _read_lines(text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    with _translate_damage():
        try:
            for number, line in enumerate(iter(partial(text.readline, MAX_LINE), ""), 1):
                if len(line) == MAX_LINE:
                    raise CatalogueError(f"Line {number} has more than a million characters: this is not a catalogue.")
                if number > MAX_LINES + 1:
                    raise CatalogueError(f"The file has more than {MAX_LINES:,} lines: this is not a catalogue.")
                yield line
        except UnicodeDecodeError as error:
            # Every line before the byte that could not be decoded has been counted.
            number += 1 + error.object[: error.start].count(b"\n")
            encoding = "windows-1252" if text.encoding == "windows-1252" else "UTF-8"
            raise CatalogueError(
                f"Line {number} has a byte that is not valid {encoding}, the encoding of this file:"
                " download the file again, or save it as UTF-8."
            ) from error


def _detect_encoding(file: IO[bytes]) -> str:
    """Return the encoding, UTF-8 or windows-1252, by a BOM or by the first letters outside ASCII."""
    begins_with_bom = file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    file.seek(0)
    if begins_with_bom:
        return "utf-8-sig"
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    letters = foreign = 0
    while letters + foreign < _MIN_LETTERS and (sample := file.read(_SAMPLE_BYTES)):
        decoded = decoder.decode(sample)
        foreign += (escaped := len(_ESCAPED.findall(decoded)))
        letters += len(decoded) - len(decoded.encode("ascii", "ignore")) - escaped
    if letters + foreign < _MIN_LETTERS:
        foreign += len(decoder.decode(b"", final=True))  # a letter cut by the end of the file
    file.seek(0)
    return "windows-1252" if foreign > _WINDOWS_RATIO * letters else "utf-8"
