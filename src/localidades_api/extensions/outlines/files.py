"""Reads outlines of municipios: shapefiles of INEGI's Marco Geoestadístico, and GeoJSON as its web service answers."""

import itertools
import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from localidades_api.errors import CatalogueError
from localidades_api.files.archive import DAMAGED_ZIP, MAX_MEMBERS, MAX_RATIO, limit_reads

UNITS = 1_000_000  # of a degree; outlines have six decimals, 0.1 m
Vertex: TypeAlias = tuple[int, int]  # longitude and latitude, in UNITS
Ring: TypeAlias = Sequence[Vertex]  # its last vertex is the first

_MAX_MEMBER = 512 * 1024**2  # bytes; INEGI's shapefile has 60 MB
_MAX_ZIP = 4 * 1024**3  # bytes of a zip within a zip; INEGI's has 3 GB
_CHUNK = 512 * 1024  # bytes; `limit_reads` allows a megabyte
_SMALL = 64 * 1024**2  # bytes that a member may have at any ratio
_DEGREES = {"4326", "6365", "CRS84"}  # WGS 84 and ITRF2008, which differ by centimetres
_KEY = re.compile(r"(0[1-9]|[12][0-9]|3[0-2])[0-9]{3}", re.ASCII)
_POLYGONS = (5, 15, 25)  # the shapes of a shapefile that are polygons: plain, with Z, with M


class Outline(NamedTuple):
    """The outline of a municipio: all of its rings, those of holes among them."""

    id: int
    nombre: str
    rings: list[Ring]


_Members: TypeAlias = Mapping[str, Callable[[], bytes]]
_Unproject: TypeAlias = Callable[[float, float], tuple[float, float]]


def read_outlines(path: Path) -> Iterator[Outline]:
    """Yield the outlines in a file: a zip, also within a zip, a shapefile, or GeoJSON. Raise CatalogueError."""
    with ExitStack() as stack:
        try:
            members = _open(path, stack)
            shapes = [name for name in members if name.endswith("mun.shp")] or _ending(members, ".shp")
            country = [name for name in shapes if PurePosixPath(name).name == "00mun.shp"]
            documents = _ending(members, ".geojson", ".json")
            if not shapes and not documents:
                raise CatalogueError("The file has no outlines: it must contain a shapefile `…mun.shp`, or GeoJSON.")
            for name in country or shapes:
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
    with path.open("rb") as file:
        is_zip = zipfile.is_zipfile(file) or path.suffix.lower() == ".zip"
    if is_zip:
        return _open_zip(zipfile.ZipFile(stack.enter_context(limit_reads(path))), stack)
    files = path.parent.glob(f"{path.stem}.*") if path.suffix.lower() == ".shp" else [path]
    if path.stat().st_size > _MAX_MEMBER:
        raise CatalogueError(_too_large(path.name, _MAX_MEMBER))
    name = path.name if path.suffix.lower() == ".shp" else f"{path.stem}.geojson"
    return {(one.name if one != path else name).lower(): one.read_bytes for one in files}


def _open_zip(archive: zipfile.ZipFile, stack: ExitStack, *, is_inner: bool = False) -> _Members:
    members: dict[str, Callable[[], bytes]] = {}
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise CatalogueError(f"The zip has more than {MAX_MEMBERS} files: these are not outlines.")
    for info in infos:
        name = info.filename.lower()
        if name.endswith(".zip") and not is_inner:
            _check(info, _MAX_ZIP)
            inner = stack.enter_context(TemporaryFile(prefix="localidades-"))  # noqa: SIM115  # the stack is one
            inner.writelines(_chunks(archive, info))
            inner.flush()
            members |= _open_zip(zipfile.ZipFile(stack.enter_context(limit_reads(inner))), stack, is_inner=True)
        else:
            members[name] = partial(_read_member, archive, info)
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    _check(info, _MAX_MEMBER)
    return b"".join(_chunks(archive, info))


def _chunks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as member:
        yield from iter(partial(member.read, _CHUNK), b"")


def _check(info: zipfile.ZipInfo, limit: int) -> None:
    if info.file_size > limit:
        raise CatalogueError(_too_large(info.filename, limit))
    if info.file_size > max(_SMALL, MAX_RATIO * info.compress_size):
        raise CatalogueError(f"The zip unpacks to more than {MAX_RATIO} times its size: these are not outlines.")


def _too_large(name: str, limit: int) -> str:
    return f"{PurePosixPath(name).name} is larger than {limit // 1024**2:,} MB: these are not outlines of municipios."


# -- Shapefiles (ESRI's technical description of July 1998)


def _read_shapefile(stem: str, members: _Members) -> Iterator[Outline]:
    parts: list[bytes] = []
    for ending, what in ((".shp", "shapes"), (".dbf", "keys and names"), (".prj", "projection")):
        if f"{stem}{ending}" not in members:
            name = PurePosixPath(stem).name
            raise CatalogueError(f"The shapefile has no {name}{ending}, which has its {what}.")
        parts.append(members[f"{stem}{ending}"]())
    shapes, table, projection = parts
    unproject = _read_projection(projection.decode("latin-1"))
    try:
        rows = _read_table(table)
        at = 100
        for key, nombre in rows:
            length = 2 * struct.unpack_from(">i", shapes, at + 4)[0]
            if length < 4 or len(shapes) < at + 8 + length:  # noqa: PLR2004  # the bytes of a shape's type
                raise CatalogueError(f"The shapefile ends within the outline of {key}: download it again.")
            record = shapes[at + 8 : at + 8 + length]
            yield _outline(key, nombre, _read_shape(key, record, unproject))
            at += 8 + length
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CatalogueError("The shapefile is cut off or damaged: download it again.") from error


def _read_table(table: bytes) -> list[tuple[str, str]]:
    """Return the keys and names in a dBASE table, in UTF-8 if all of them are that, otherwise in Latin-1."""
    count, start, size = struct.unpack_from("<IHH", table, 4)
    spans: dict[str, slice] = {}
    begin = 1  # after the mark of a deleted row
    for at in range(32, start - 31, 32):
        name, width = table[at : at + 11].split(b"\0")[0].decode("latin-1").upper(), table[at + 16]
        spans[name] = slice(begin, begin + width)
        begin += width
    if not {"CVEGEO", "NOMGEO"} <= spans.keys():
        raise CatalogueError("The shapefile's table lacks CVEGEO or NOMGEO: these are not outlines of INEGI.")
    if len(table) < start + count * size:
        raise CatalogueError("The shapefile's table is cut off: download it again.")
    rows = [table[at : at + size] for at in range(start, start + count * size, size)]
    names = [row[spans["NOMGEO"]].strip(b" \0") for row in rows]
    try:
        decoded = [name.decode() for name in names]
    except UnicodeDecodeError:
        decoded = [name.decode("latin-1") for name in names]
    return [
        (row[spans["CVEGEO"]].decode("latin-1").strip(" \0"), name) for row, name in zip(rows, decoded, strict=True)
    ]


def _read_shape(key: str, record: bytes, unproject: _Unproject) -> list[Ring]:
    kind = struct.unpack_from("<i", record)[0]
    if kind == 0:
        raise CatalogueError(f"The outline of {key} is empty.")
    if kind not in _POLYGONS:
        raise CatalogueError(f"The shape of {key} is not a polygon: these are not outlines.")
    parts, vertices = struct.unpack_from("<2i", record, 36)
    starts = [*struct.unpack_from(f"<{parts}i", record, 44), vertices]
    points = list(struct.iter_unpack("<2d", record[44 + 4 * parts : 44 + 4 * parts + 16 * vertices]))
    if len(points) != vertices or starts != sorted(starts) or starts[0] < 0:
        raise CatalogueError(f"The outline of {key} can't be read: its parts are not where it says.")
    degrees = [unproject(x, y) for x, y in points]
    return [_in_units(key, degrees[a:b]) for a, b in itertools.pairwise(starts)]


def _read_projection(text: str) -> _Unproject:
    """Return what turns coordinates into degrees: Lambert's conformal conic, by its parameters, or degrees already."""
    spheroid = re.search(r'SPHEROID\["[^"]*",\s*([0-9.]+),\s*([0-9.]+)', text, re.IGNORECASE)
    named = re.search(r'PROJECTION\["([^"]*)"', text, re.IGNORECASE)
    if spheroid is None or not 6_378_136 < float(spheroid[1]) < 6_378_138:  # noqa: PLR2004  # metres: GRS 80, WGS 84
        raise CatalogueError("The shapefile's .prj does not name ITRF2008 or WGS 84, whose degrees the catalogue has.")
    if named is None:
        return lambda x, y: (x, y)
    given = {
        name.lower(): float(value)
        for name, value in re.findall(r'PARAMETER\["([^"]*)",\s*(-?[0-9.eE+]+)', text, re.IGNORECASE)
    }
    needed = (
        "false_easting", "false_northing", "central_meridian", "standard_parallel_1", "standard_parallel_2",
        "latitude_of_origin",
    )  # fmt: skip
    if not named[1].lower().startswith("lambert_conformal_conic") or not given.keys() >= {*needed}:
        raise CatalogueError(f"The shapefile is in the projection {named[1][:40]}: use INEGI's, or degrees.")
    return _lambert(1 / float(spheroid[2]), *(given[name] for name in needed))


def _lambert(
    flattening: float, east: float, north: float, meridian: float, south: float, other: float, origin: float
) -> _Unproject:
    """Return the inverse of Lambert's projection (Snyder, Map Projections, 1987: 14-15 to 15-11 and 3-5)."""
    axis, e2 = 6_378_137.0, flattening * (2 - flattening)
    e = math.sqrt(e2)

    def scale(phi: float) -> float:
        return math.cos(phi) / math.sqrt(1 - e2 * math.sin(phi) ** 2)

    def isometric(phi: float) -> float:
        s = e * math.sin(phi)
        return math.tan(math.pi / 4 - phi / 2) / math.pow((1 - s) / (1 + s), e / 2)

    one, two, zero = (math.radians(degrees) for degrees in (south, other, origin))
    n = math.log(scale(one) / scale(two)) / math.log(isometric(one) / isometric(two)) if one != two else math.sin(one)
    radius = axis * scale(one) / (n * isometric(one) ** n)
    top = radius * isometric(zero) ** n
    a = e2 / 2 + 5 * e2**2 / 24 + e2**3 / 12 + 13 * e2**4 / 360
    b = 7 * e2**2 / 48 + 29 * e2**3 / 240 + 811 * e2**4 / 11_520
    c = 7 * e2**3 / 120 + 81 * e2**4 / 1120
    d = 4279 * e2**4 / 161_280

    def unproject(x: float, y: float) -> tuple[float, float]:
        x, y = x - east, top - (y - north)
        chi = math.pi / 2 - 2 * math.atan((math.hypot(x, y) / radius) ** (1 / n))
        sine, cosine = math.sin(2 * chi), math.cos(2 * chi)
        phi = chi + sine * (a - c + cosine * (2 * b - 4 * d + cosine * (4 * c + cosine * 8 * d)))
        return math.degrees(math.atan2(x, y) / n) + meridian, math.degrees(phi)

    return unproject


# -- GeoJSON (RFC 7946), also with the member `crs` of earlier versions, in the collection or in a geometry


def _read_geojson(content: bytes) -> Iterator[Outline]:
    try:
        document = from_json(content)
        features = document["features"]
        _check_crs(document)
        for feature in features:
            properties, geometry = feature["properties"], feature["geometry"]
            key = str(properties["cvegeo"])
            nombre = str(properties.get("nom_agem") or properties["nomgeo"])
            if geometry is None:
                raise CatalogueError(f"The outline of {_shown(key)} is empty.")
            _check_crs(geometry)
            yield _outline(key, nombre, _read_geometry(_shown(key), geometry))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogueError(
            "The GeoJSON can't be read: it must be a FeatureCollection of polygons with `cvegeo`, and `nom_agem` or"
            " `nomgeo`."
        ) from error


def _read_geometry(key: str, geometry: Mapping[str, Any]) -> list[Ring]:
    coordinates = geometry["coordinates"]
    if geometry["type"] not in {"Polygon", "MultiPolygon"}:
        raise CatalogueError(f"The shape of {key} is not a polygon: these are not outlines.")
    polygons = [coordinates] if geometry["type"] == "Polygon" else coordinates
    return [_in_units(key, [vertex[:2] for vertex in ring]) for polygon in polygons for ring in polygon]


def _check_crs(document: Mapping[str, Any]) -> None:
    crs = document.get("crs")
    name = "CRS84" if crs is None else str(crs["properties"]["name"])
    if name.upper().rpartition(":")[2] not in _DEGREES:
        raise CatalogueError(f"The GeoJSON is in {name[:40]}: use degrees (EPSG:6365 or EPSG:4326).")


def _shown(key: str) -> str:
    return key[:20] if key.isprintable() else "an outline"


def _in_units(key: str, ring: Sequence[Sequence[float]]) -> Ring:
    units = [(round(x * UNITS), round(y * UNITS)) for x, y in ring]
    if len(units) < 4 or units[0] != units[-1]:  # noqa: PLR2004  # a triangle, closed
        raise CatalogueError(f"The outline of {key} has a ring that is not closed.")
    return units


def _outline(key: str, nombre: str, rings: list[Ring]) -> Outline:
    if not _KEY.fullmatch(key):
        what = "an estado" if len(key) == 2 else "no municipio"  # noqa: PLR2004  # digits
        raise CatalogueError(f"{_shown(key)} is the key of {what}: the outlines must be those of municipios.")
    if not rings:
        raise CatalogueError(f"The outline of {key} is empty.")
    if not nombre or not nombre.isprintable():
        raise CatalogueError(f"The outline of {key} has no name.")
    return Outline(int(key), nombre, rings)
