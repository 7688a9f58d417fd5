"""Reads outlines of municipios: shapefiles of INEGI's Marco Geoestadístico, and GeoJSON as its web service answers."""

import itertools
import math
import re
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from localidades_api.errors import CatalogueError
from localidades_api.files.archive import DAMAGED_ZIP, MAX_MEMBERS, MAX_RATIO, limit_reads

UNITS = 100_000_000  # of a degree: a millimetre, because rings rounded to 0.1 m may touch or cross themselves
Vertex: TypeAlias = tuple[int, int]  # longitude and latitude, in UNITS
Ring: TypeAlias = Sequence[Vertex]  # its last vertex is the first

_MAX_MEMBER = 512 * 1024**2  # bytes; INEGI's shapefile has 60 MB
_MAX_ZIP = 4 * 1024**3  # bytes of a zip within a zip; INEGI's has 3 GB
_CHUNK = 512 * 1024  # bytes; `limit_reads` allows a megabyte
_SMALL = 64 * 1024**2  # bytes that a member may have at any ratio
_DEGREES = {"4326", "6365", "CRS84"}  # WGS 84 and ITRF2008, which differ by centimetres
_KEY = re.compile(r"(0[1-9]|[12][0-9]|3[0-2])[0-9]{3}", re.ASCII)
_PARTS = {".shp": "shapes", ".dbf": "keys and names", ".prj": "projection"}  # of a shapefile
_POLYGONS = (5, 15, 25)  # the shapes of a shapefile that are polygons: plain, with Z, with M
_OF_LAMBERT = (
    "false_easting", "false_northing", "central_meridian", "standard_parallel_1", "standard_parallel_2",
    "latitude_of_origin",
)  # fmt: skip
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)


class Outline(NamedTuple):
    """The outline of a municipio: all of its rings, those of holes among them."""

    id: int
    nombre: str
    rings: Sequence[Ring]


_Members: TypeAlias = Mapping[str, Callable[[], bytes]]
_Unproject: TypeAlias = Callable[[float, float], tuple[float, float]]


def read_outlines(path: Path) -> Iterator[Outline]:
    """Yield the outlines in a file: a zip, also within a zip, a shapefile, or GeoJSON. Raise CatalogueError."""
    with ExitStack() as stack:
        try:
            members = _open(path, stack)
            shapes = _ending(members, "mun.shp") or _ending(members, ".shp")
            documents = _ending(members, ".geojson", ".json")
            if not shapes and not documents:
                raise CatalogueError("The file has no outlines: it must contain a shapefile `…mun.shp`, or GeoJSON.")
            for name in _ending(members, "00mun.shp") or shapes:
                yield from _read_shapefile(name.removesuffix(".shp"), members)
            for name in () if shapes else documents:
                yield from _read_geojson(members[name]())
        except DAMAGED_ZIP as error:
            raise CatalogueError("The zip is damaged: download it again.") from error
        except OSError as error:
            raise CatalogueError(f"The file can't be read ({error.strerror}).") from error


def _ending(members: _Members, *endings: str) -> list[str]:
    return [name for name in members if name.endswith(endings)]


def _open(path: Path, stack: ExitStack) -> _Members:
    """Return what reads each file, by its name in lower case; those beside a shapefile belong to it."""
    if path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
        return _open_zip(zipfile.ZipFile(stack.enter_context(limit_reads(path))), stack)
    if path.suffix.lower() != ".shp":
        return {".geojson": partial(_read_file, path)}
    return {one.name.lower(): partial(_read_file, one) for one in path.parent.iterdir() if one.stem == path.stem}


def _open_zip(archive: zipfile.ZipFile, stack: ExitStack, *, is_inner: bool = False) -> _Members:
    members: dict[str, Callable[[], bytes]] = {}
    if len(archive.infolist()) > MAX_MEMBERS:
        raise CatalogueError(f"The zip has more than {MAX_MEMBERS} files: these are not outlines.")
    for info in archive.infolist():
        name = info.filename.lower()
        if name.endswith(".zip") and not is_inner:
            inner = stack.enter_context(TemporaryFile(prefix="localidades-"))  # noqa: SIM115  # the stack is one
            _unpack(archive, info, inner, _MAX_ZIP)
            inner.flush()
            members |= _open_zip(zipfile.ZipFile(stack.enter_context(limit_reads(inner))), stack, is_inner=True)
        else:
            members[name] = partial(_read_member, archive, info)
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    content = BytesIO()
    _unpack(archive, info, content, _MAX_MEMBER)
    return content.getvalue()


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: IO[bytes], limit: int) -> None:
    _check_size(info.filename, info.file_size, limit)
    if info.file_size > max(_SMALL, MAX_RATIO * info.compress_size):
        raise CatalogueError(f"The zip unpacks to more than {MAX_RATIO} times its size: these are not outlines.")
    with archive.open(info) as member:
        shutil.copyfileobj(member, file, _CHUNK)


def _read_file(path: Path) -> bytes:
    _check_size(path.name, path.stat().st_size, _MAX_MEMBER)
    return path.read_bytes()


def _check_size(name: str, size: int, limit: int) -> None:
    if size > limit:
        name = PurePosixPath(name).name
        raise CatalogueError(f"{name} is larger than {limit // 1024**2:,} MB: these are not outlines of municipios.")


def _outline(key: str, nombre: str, rings: Iterable[Iterable[Sequence[float]]]) -> Outline:
    """Return the outline with these rings, in degrees, of any number of axes; they are read once the key is checked."""
    if not _KEY.fullmatch(key):
        what = "an estado" if len(key) == 2 else "no municipio"  # noqa: PLR2004  # digits
        raise CatalogueError(f"{key[:20]!r} is the key of {what}: the outlines must be those of municipios.")
    if not nombre or not nombre.isprintable():
        raise CatalogueError(f"The outline of {key} has no name.")
    found = [[(round(x * UNITS), round(y * UNITS)) for x, y, *_ in ring] for ring in rings]
    if not found:
        raise CatalogueError(f"The outline of {key} is empty.")
    if any(len(ring) < 4 or ring[0] != ring[-1] for ring in found):  # noqa: PLR2004  # a triangle, closed
        raise CatalogueError(f"The outline of {key} has a ring that is not closed.")
    return Outline(int(key), nombre, found)


# -- Shapefiles (ESRI's technical description of July 1998)


def _read_shapefile(stem: str, members: _Members) -> Iterator[Outline]:
    for ending, what in _PARTS.items():
        if f"{stem}{ending}" not in members:
            raise CatalogueError(f"The shapefile has no {PurePosixPath(stem).name}{ending}, which has its {what}.")
    shapes, table, projection = (members[f"{stem}{ending}"]() for ending in _PARTS)
    where, at = "", 100  # the first shape is after the header
    try:
        unproject = _read_projection(projection.decode("latin-1").lower())
        for key, nombre in _read_table(table):
            where = f" within the outline of {key!r}"
            end = at + 8 + 2 * struct.unpack_from(">i", shapes, at + 4)[0]
            yield _outline(key, nombre, _read_shape(key, shapes[at + 8 : end], unproject))
            at = end
    except _MALFORMED as error:
        raise CatalogueError(f"The shapefile is cut off or damaged{where}: download it again.") from error


def _read_table(table: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys and names in a dBASE table."""
    count, start, size = struct.unpack_from("<IHH", table, 4)
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
    for at in range(start, start + count * size, size):
        key, nombre = (table[at : at + size][cells[name]].strip(b" \0") for name in (b"CVEGEO", b"NOMGEO"))
        yield key.decode("latin-1"), _decode(nombre)


def _decode(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _read_shape(key: str, record: bytes, unproject: _Unproject) -> Iterator[Sequence[tuple[float, float]]]:
    """Yield the rings of a shape; a null one has none."""
    kind = struct.unpack_from("<i", record)[0]
    if kind == 0:
        return
    if kind not in _POLYGONS:
        raise CatalogueError(f"The shape of {key} is not a polygon: these are not outlines.")
    parts, vertices = struct.unpack_from("<2i", record, 36)
    starts = [*struct.unpack_from(f"<{parts}i", record, 44), vertices]
    begin = 44 + 4 * parts
    points = [unproject(*point) for point in struct.iter_unpack("<2d", record[begin : begin + 16 * vertices])]
    if len(points) != vertices or starts[0] or starts != sorted(starts):
        raise ValueError(starts)
    for first, end in itertools.pairwise(starts):
        yield points[first:end]


def _read_projection(text: str) -> _Unproject:
    """Return what turns coordinates into degrees: Lambert's conformal conic, by its parameters, or degrees already."""
    spheroid = re.search(r'spheroid\["[^"]*",\s*([0-9.]+),\s*([0-9.]+)', text)
    named = re.search(r'projection\["([^"]*)"', text)
    if spheroid is None or not 6_378_136 < float(spheroid[1]) < 6_378_138:  # noqa: PLR2004  # metres: GRS 80, WGS 84
        raise CatalogueError("The shapefile's .prj does not name ITRF2008 or WGS 84, whose degrees the catalogue has.")
    if named is None:
        return lambda x, y: (x, y)
    given = {name: float(value) for name, value in re.findall(r'parameter\["([^"]*)",\s*(-?[0-9.e+]+)', text)}
    if not named[1].startswith("lambert_conformal_conic") or not given.keys() >= {*_OF_LAMBERT}:
        raise CatalogueError(f"The shapefile is in the projection {named[1][:40]}: use INEGI's, or degrees.")
    flattening = 1 / float(spheroid[2])
    return _lambert(math.sqrt(flattening * (2 - flattening)), *(given[name] for name in _OF_LAMBERT))


def _lambert(
    e: float, east: float, north: float, meridian: float, south: float, other: float, zero: float
) -> _Unproject:
    """Return the inverse of Lambert's projection (Snyder, Map Projections, 1987: 14-15, 15-1 to 15-11 and 7-9)."""

    def bend(phi: float) -> float:
        return float(((1 - e * math.sin(phi)) / (1 + e * math.sin(phi))) ** (e / 2))

    def isometric(phi: float) -> float:
        return math.tan(math.pi / 4 - phi / 2) / bend(phi)

    def scale(phi: float) -> float:
        return math.cos(phi) / math.sqrt(1 - (e * math.sin(phi)) ** 2)

    one, two = math.radians(south), math.radians(other)
    n = math.log(scale(one) / scale(two)) / math.log(isometric(one) / isometric(two)) if one != two else math.sin(one)
    radius = 6_378_137 * scale(one) / (n * isometric(one) ** n)
    top = north + radius * isometric(math.radians(zero)) ** n

    def unproject(x: float, y: float) -> tuple[float, float]:
        x, y = x - east, top - y
        t = (math.hypot(x, y) / radius) ** (1 / n)
        phi = math.pi / 2 - 2 * math.atan(t)
        for _ in range(4):  # each is nearer by a factor of 150
            phi = math.pi / 2 - 2 * math.atan(t * bend(phi))
        return math.degrees(math.atan2(x, y) / n) + meridian, math.degrees(phi)

    return unproject


# -- GeoJSON (RFC 7946), also with the member `crs` of earlier versions, in the collection or in a geometry


def _read_geojson(content: bytes) -> Iterator[Outline]:
    try:
        document = from_json(content)
        _check_crs(document)
        for feature in document["features"]:
            properties, geometry = feature["properties"], feature["geometry"] or {}
            _check_crs(geometry)
            key, nombre = properties["cvegeo"], properties.get("nom_agem") or properties["nomgeo"]
            yield _outline(str(key), str(nombre), _read_geometry(key, geometry))
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
