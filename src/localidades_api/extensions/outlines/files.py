"""Reads outlines of municipios: shapefiles of INEGI's Marco Geoestadístico, and GeoJSON as its web service answers."""

import itertools
import os
import re
import shutil
import struct
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from localidades_api.catalogue.coordinates import is_in_mexico
from localidades_api.errors import CatalogueError
from localidades_api.extensions.outlines.projection import Unproject, read_projection
from localidades_api.files.archive import DAMAGED_ZIP, find_excess, limit_reads
from localidades_api.importer.checks import BROKEN_LETTER

UNITS = 100_000_000  # of a degree: a millimetre, because rings rounded to 0.1 m may touch or cross themselves
Vertex: TypeAlias = tuple[int, int]  # longitude and latitude, in UNITS
Ring: TypeAlias = Sequence[Vertex]  # its last vertex is the first

_MEGABYTE = 1024**2
# Limits of a file. The whole country has 3.7 million vertices: 60 MB, or 150 MB as GeoJSON.
_MOST = {
    "files": 10_000, "MB of zips": 4096, "MB of shapes": 512,
    "rows": 32 * 999, "rings": 10_000, "vertices": 8_000_000,
}  # fmt: skip
_MAX_PROJECTION = 4096  # bytes; INEGI's has 600
_CHUNK = 512 * 1024  # bytes; `limit_reads` allows a megabyte
_DEGREES = {"4326", "6365", "CRS84"}  # WGS 84 and ITRF2008, which differ by centimetres
_KEY = re.compile(r"(0[1-9]|[12][0-9]|3[0-2])(?!000)[0-9]{3}", re.ASCII)
_GEOJSON = (".geojson", ".json")
# The files of municipios, by how their names end: of those in a zip, the first kind counts.
_OF_MUNICIPIOS = (("00mun.shp",), ("mun.shp",), (".shp",), _GEOJSON)
_PARTS = {".shp": "shapes", ".dbf": "keys and names", ".prj": "projection"}  # of a shapefile
_READ = (*_PARTS, *_GEOJSON, ".zip")
_POLYGONS = (5, 15, 25)  # the shapes of a shapefile that are polygons: plain, with Z, with M
_LETTERS = "áéíóúñüÁÉÍÓÚÑÜ"
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class Outline(NamedTuple):
    """The outline of a municipio: all of its rings, those of holes among them."""

    id: int
    nombre: str
    rings: Sequence[Ring]


_Files: TypeAlias = Mapping[str, Callable[[], bytes]]


class _Amounts(dict[str, float]):
    """Counts what has been read of a file, up to its limits."""

    def add(self, what: str, amount: float) -> None:
        """Add to an amount; raise CatalogueError if it is more than `_MOST`."""
        self[what] = self.get(what, 0) + amount
        if self[what] > _MOST[what]:
            raise CatalogueError(f"The file has more than {_MOST[what]:,} {what}: these are not outlines.")


def read_outlines(file: Path | IO[bytes], unread: list[str] | None = None) -> Iterator[Outline]:
    """Yield the outlines in a file: a zip, also within a zip, a shapefile, or GeoJSON. Raise CatalogueError.

    `unread` gets the names of the files in a zip that may have other outlines.
    """
    amounts, keys = _Amounts(), set[int]()
    with ExitStack() as stack:
        try:
            files = _open(file, stack, amounts)
            found = next(filter(None, (_ending(files, *endings) for endings in _OF_MUNICIPIOS)), [])
            if unread is not None:
                unread += [name for name in _ending(files, ".shp", ".zip", *_GEOJSON) if name not in found]
            for name in found:
                with named(name) if len(found) > 1 else nullcontext():
                    for outline in (_read_shapefile if name.endswith(".shp") else _read_geojson)(name, files):
                        if outline.id in keys:
                            raise CatalogueError(f"The file has two outlines of {outline.id:05}.")
                        keys.add(outline.id)
                        amounts.add("rings", len(outline.rings))
                        amounts.add("vertices", sum(map(len, outline.rings)))
                        yield outline
        except DAMAGED_ZIP as error:
            raise CatalogueError("The zip is damaged: download it again.") from error
        except OSError as error:
            raise CatalogueError(f"The file can't be read ({error.strerror}).") from error
    if not keys:
        raise CatalogueError("The file has no outlines: it must contain a shapefile `…mun.shp`, or GeoJSON.")


@contextmanager
def named(what: str) -> Iterator[None]:
    """Begin an error with what it is about."""
    try:
        yield
    except CatalogueError as error:
        raise CatalogueError(f"{what}: {error}") from error


def _ending(files: _Files, *endings: str) -> list[str]:
    return [name for name in files if name.endswith(endings)]


def _open(file: Path | IO[bytes], stack: ExitStack, amounts: _Amounts) -> _Files:
    """Return what reads each file, by its path in lower case; those beside a shapefile belong to it."""
    parts = [file]
    if isinstance(file, Path) and file.suffix.lower() == ".shp":
        beside = (path for path in file.parent.iterdir() if path != file and path.stem.lower() == file.stem.lower())
        parts += [path for path in beside if path.suffix.lower() in _PARTS]
    files: dict[str, Callable[[], bytes]] = {}
    for path, size, open_ in itertools.chain.from_iterable(_list_files(part, stack, amounts) for part in parts):
        name = path.replace("\\", "/").lower()
        if name in files:
            raise CatalogueError(f"The file has two files that are named {name}.")
        files[name] = partial(_read, open_, size, amounts)
    return files


def _list_files(
    file: Path | IO[bytes], stack: ExitStack, amounts: _Amounts, folder: str = ""
) -> Iterator[tuple[str, int, Callable[[], IO[bytes]]]]:
    """Yield the path of a file, its size and what opens it; of a zip, the files in it and in the zips within it."""
    opened = stack.enter_context(limit_reads(file))
    size = os.fstat(opened.fileno()).st_size
    ending = file.suffix.lower() if isinstance(file, Path) else ""
    if not (folder or ending == ".zip" or zipfile.is_zipfile(opened)):
        opened.seek(0)
        yield file.name if ending in _PARTS else ".json", size, lambda: opened
        return
    archive = zipfile.ZipFile(opened)
    amounts.add("files", len(archive.infolist()))
    for info in archive.infolist():
        path = f"{folder}{info.filename}"
        is_note = re.search(r"(^|/)(__MACOSX/|\._)", info.filename)  # a Mac's, on another file
        if is_note or not path.lower().endswith(_READ):
            continue
        if excess := find_excess([info], size):
            raise CatalogueError(f"The zip {excess}: these are not outlines.")
        if path.lower().endswith(".zip") and not folder:
            amounts.add("MB of zips", info.file_size / _MEGABYTE)
            inner = stack.enter_context(TemporaryFile(prefix="localidades-"))  # noqa: SIM115  # the stack is one
            with archive.open(info) as member:
                shutil.copyfileobj(member, inner, _CHUNK)
            inner.flush()
            yield from _list_files(inner, stack, amounts, f"{path}/")
        else:
            yield path, info.file_size, partial(archive.open, info)


def _read(open_: Callable[[], IO[bytes]], size: int, amounts: _Amounts) -> bytes:
    amounts.add("MB of shapes", size / _MEGABYTE)
    with open_() as file:
        return b"".join(iter(partial(file.read, _CHUNK), b""))


def _outline(key: str, nombre: str, rings: Iterable[Iterable[Sequence[float]]]) -> Outline:
    """Return the outline with these rings, in degrees, of any number of axes; they are read once the key is checked."""
    if not _KEY.fullmatch(key):
        what = "an estado" if len(key) == 2 else "no municipio"  # noqa: PLR2004  # digits
        raise CatalogueError(f"{key[:20]!r} is the key of {what}: the outlines must be those of municipios.")
    if not nombre or not nombre.isprintable():
        raise CatalogueError(f"The outline of {key} has no name.")
    if BROKEN_LETTER.search(nombre):
        raise CatalogueError(f"The name of {key} has broken letters: use INEGI's own file, as it is.")
    units = float(UNITS)  # a text can be multiplied by an integer
    found = [[(round(x * units), round(y * units)) for x, y, *_ in ring] for ring in rings]
    if fault := _find_fault(found):
        raise CatalogueError(f"The outline of {key} {fault}")
    return Outline(int(key), nombre, found)


def _find_fault(rings: Sequence[Ring]) -> str | None:
    if not rings:
        return "is empty."
    if any(len(ring) < 4 or ring[0] != ring[-1] for ring in rings):  # noqa: PLR2004  # a triangle, closed
        return "has a ring that is not closed."
    if any(map(_is_flat, rings)):
        return "has a ring without an area."
    if len({*map(tuple, rings)}) < len(rings):
        return "has the same ring twice."
    if not all(is_in_mexico(y / UNITS, x / UNITS) for ring in rings for x, y in ring):
        return "is not in Mexico: are its coordinates longitude and latitude?"
    return None


def _is_flat(ring: Ring) -> bool:
    (x, y), *_ = ring
    return not any((ax - x) * (by - y) - (ay - y) * (bx - x) for (ax, ay), (bx, by) in itertools.pairwise(ring))


# -- Shapefiles (ESRI's technical description of July 1998)


def _read_shapefile(name: str, files: _Files) -> Iterator[Outline]:
    stem = name.removesuffix(".shp")
    for ending, what in _PARTS.items():
        if f"{stem}{ending}" not in files:
            raise CatalogueError(f"The shapefile has no {PurePosixPath(stem).name}{ending}, which has its {what}.")
    shapes, table, projection = (files[f"{stem}{ending}"]() for ending in _PARTS)
    where, at = "", 100  # the first shape is after the header
    try:
        unproject = read_projection(projection[:_MAX_PROJECTION].decode("latin-1").lower())
        for key, nombre in _read_table(table):
            where = f" within the outline of {key!r}"
            end = at + 8 + 2 * struct.unpack_from(">i", shapes, at + 4)[0]
            yield _outline(key, nombre, _read_shape(key, shapes[at + 8 : end], unproject))
            at = end
    except _MALFORMED as error:
        raise CatalogueError(f"The shapefile is cut off or damaged{where}: download it again.") from error
    if at != len(shapes):
        raise CatalogueError("The shapefile has more shapes than its table has rows: download it again, all of it.")


def _read_table(table: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and names in a dBASE table."""
    count, start, size = struct.unpack_from("<IHH", table, 4)
    _Amounts().add("rows", count)
    cells: dict[bytes, slice] = {}
    begin = 1  # after the mark of a deleted row
    for at in range(32, start - 31, 32):
        name, width = struct.unpack_from("<11s5xB", table, at)
        cells[name.partition(b"\0")[0].upper()] = slice(begin, begin + width)
        begin += width
    if not {b"CVEGEO", b"NOMGEO"} <= cells.keys():
        raise CatalogueError("The shapefile's table lacks CVEGEO or NOMGEO: these are not outlines of INEGI.")
    if len(table) < start + count * size:
        raise CatalogueError("The shapefile's table is cut off: download it again.")
    rows = [table[at : at + size] for at in range(start, start + count * size, size)]
    encoding = _detect_encoding(b"".join(row[cells[b"NOMGEO"]] for row in rows))
    for row in rows:
        key, nombre = (row[cells[name]].strip(b" \0").decode(encoding) for name in (b"CVEGEO", b"NOMGEO"))
        if row[:1] != b" ":
            raise CatalogueError(f"The shapefile's table marks a row as deleted ({key!r}): export it without that row.")
        yield key, nombre


def _detect_encoding(names: bytes) -> str:
    """Return UTF-8, or that of Windows or DOS in which the names have more Spanish letters; `.cpg` is often wrong."""
    try:
        names.decode()
    except UnicodeDecodeError:
        return max(("latin-1", "cp850"), key=lambda encoding: sum(map(names.decode(encoding).count, _LETTERS)))
    return "utf-8"


def _read_shape(key: str, record: bytes, unproject: Unproject) -> Iterator[Sequence[tuple[float, float]]]:
    """Yield the rings of a shape; a null one has none."""
    kind = struct.unpack_from("<i", record)[0]
    if kind == 0:
        return
    if kind not in _POLYGONS:
        raise CatalogueError(f"The shape of {key} is not a polygon: these are not outlines.")
    parts, vertices = struct.unpack_from("<2i", record, 36)
    _Amounts().add("vertices", vertices)
    starts = [*struct.unpack_from(f"<{parts}i", record, 44), vertices]
    begin = 44 + 4 * parts
    points = [unproject(*point) for point in struct.iter_unpack("<2d", record[begin : begin + 16 * vertices])]
    if len(points) != vertices or starts[0] or starts != sorted(starts):
        raise ValueError(starts)
    for first, end in itertools.pairwise(starts):
        yield points[first:end]


# -- GeoJSON (RFC 7946), also with the member `crs` of earlier versions, in the collection or in a geometry


def _read_geojson(name: str, files: _Files) -> Iterator[Outline]:
    try:
        content = files[name]().removeprefix(BOM_UTF8)
        # Each value takes some 30 bytes of memory, an object 200.
        values = content.count(b",") + content.count(b"[") + 4 * content.count(b"{")
        _Amounts().add("vertices", values / 3)  # two numbers and a list
        document = from_json(content)
        _check_crs(document)
        for feature in document["features"]:
            properties = {name.lower(): value for name, value in feature["properties"].items()}
            geometry = feature["geometry"] or {}
            _check_crs(geometry)
            key, nombre = properties["cvegeo"], properties.get("nom_agem") or properties["nomgeo"] or ""
            yield _outline(str(key), nombre, _read_geometry(key, geometry))
    except _MALFORMED as error:
        raise CatalogueError(
            "The GeoJSON can't be read: it must be a FeatureCollection of polygons with `cvegeo`, and `nom_agem` or"
            " `nomgeo`."
        ) from error


def _read_geometry(key: str, geometry: Mapping[str, Any]) -> Iterator[Sequence[Sequence[float]]]:
    """Yield the rings of a geometry; a null one has none."""
    coordinates, kind = geometry.get("coordinates", ()), geometry.get("type", "Polygon")
    if kind not in {"Polygon", "MultiPolygon"}:
        raise CatalogueError(f"The shape of {key} is not a polygon: these are not outlines.")
    for polygon in [coordinates] if kind == "Polygon" else coordinates:
        yield from polygon


def _check_crs(document: Mapping[str, Any]) -> None:
    name = str(document["crs"]["properties"]["name"]) if document.get("crs") else "CRS84"
    if name.upper().rpartition(":")[2] not in _DEGREES:
        raise CatalogueError(f"The GeoJSON is in {name[:40]}: use degrees (EPSG:6365 or EPSG:4326).")
