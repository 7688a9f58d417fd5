"""Writes outlines as INEGI publishes them, shapefiles in a zip and GeoJSON, and imports them."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from localidades_api.database.pool import Database
from localidades_api.extensions.outlines.importing import import_outlines, remove_outlines
from localidades_api.observability.progress import StepProgress

Ring = Sequence[tuple[float, float]]
Outlines = Mapping[str, tuple[str, Sequence[Ring]]]
GRS_80 = 'GEOGCS["GCS_Mexico_ITRF2008",DATUM["D_Mexico_ITRF2008",SPHEROID["GRS_1980",6378137.0,298.257222101]]]'


def square(west: float, south: float, side: float) -> list[tuple[float, float]]:
    """Return a ring, counterclockwise."""
    east, north = round(west + side, 6), round(south + side, 6)
    return [(west, south), (east, south), (east, north), (west, north), (west, south)]


# An enclave within a municipio, its neighbour, and one of two islands in another estado.
HOLE = square(-102.6, 21.4, 0.2)
OUTLINES: Outlines = {
    "01001": ("Aguascalientes", [square(-103, 21, 1), HOLE[::-1]]),
    "01002": ("Peñón", [square(-102, 21, 1)]),
    "01003": ("Enclave", [HOLE]),
    "02001": ("Islas", [square(-110, 25, 1), square(-108, 25, 0.5)]),
}


def shapefile(
    outlines: Outlines = OUTLINES, *, kind: int = 5, encoding: str = "latin-1", projection: str = GRS_80
) -> dict[str, bytes]:
    """Return the files of a shapefile by name; one without rings is a null shape. Kind 15 has heights, of zero."""
    shapes = [_shape(rings, kind) if rings else struct.pack("<i", 0) for _, rings in outlines.values()]
    records = b"".join(struct.pack(">2i", at, len(shape) // 2) + shape for at, shape in enumerate(shapes, 1))
    fields = (("CVEGEO", 5), ("NOMGEO", 80))
    described = b"".join(struct.pack("<11sc4xB15x", name.encode(), b"C", width) for name, width in fields)
    head = struct.pack("<4sIHH20x", b"\x03", len(outlines), 33 + len(described), 86)
    rows = (b" " + key.ljust(5).encode() + name.encode(encoding).ljust(80) for key, (name, _) in outlines.items())
    table = head + described + b"\r" + b"".join(rows)
    return {"00mun.shp": bytes(100) + records, "00mun.dbf": table, "00mun.prj": projection.encode()}


def _shape(rings: Sequence[Ring], kind: int) -> bytes:
    points = [point for ring in rings for point in ring]
    starts = [sum(map(len, rings[:at])) for at in range(len(rings))]
    head = struct.pack(f"<i4d{2 + len(rings)}i", kind, 0, 0, 0, 0, len(rings), len(points), *starts)
    coordinates = b"".join(struct.pack("<2d", *point) for point in points)
    return head + coordinates + bytes(8 * (2 + len(points)) if kind == 15 else 0)


def geojson(outlines: Outlines = OUTLINES, name: str = "nom_agem", crs: str = "EPSG:6365") -> bytes:
    """Write outlines as wscatgeo does, with the reference system within each geometry."""
    system = {"type": "name", "properties": {"name": crs}}
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "MultiPolygon", "crs": system, "coordinates": [[ring] for ring in rings]},
            "properties": {"cvegeo": key, name: nombre},
        }
        for key, (nombre, rings) in outlines.items()
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def write(folder: Path, content: bytes, name: str = "mg.zip") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


async def import_outlines_into(url: str, path: Path, edition: str = "2025") -> None:
    database = Database.for_writing(url)
    try:
        await import_outlines(database, str(path), edition, StepProgress(), allow_shrink=True)
    finally:
        await database.dispose()


async def remove_outlines_from(url: str) -> None:
    database = Database.for_writing(url)
    try:
        assert await remove_outlines(database)
    finally:
        await database.dispose()
