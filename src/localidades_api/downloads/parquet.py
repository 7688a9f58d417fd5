"""Downloads as GeoParquet 1.1: Parquet whose metadata say which column has the points."""

import json
import struct
from collections.abc import AsyncGenerator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from localidades_api.catalogue.columns import COLUMNS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import RecordsRepository
from localidades_api.downloads.chunks import rows_of
from localidades_api.http.sink import Sink

_TYPES = {"integer": pa.int32(), "number": pa.float64(), "text": pa.string(), "key": pa.string()}
_SCHEMA = pa.schema([*((name, _TYPES[column.kind]) for name, column in COLUMNS.items()), ("geometry", pa.binary())])
_WKB = struct.Struct("<BIdd")  # little-endian, a point, its longitude and its latitude
_Point = tuple[float, float]
# WGS 84 as PROJJSON. GeoParquet's default, OGC:CRS84, has no EPSG code, so joins with other layers would warn. Points
# are longitude first all the same, as GeoParquet says of every system.
_WGS_84 = {
    "type": "GeographicCRS",
    "name": "WGS 84",
    "datum": {
        "type": "GeodeticReferenceFrame",
        "name": "World Geodetic System 1984",
        "ellipsoid": {"name": "WGS 84", "semi_major_axis": 6378137, "inverse_flattening": 298.257223563},
    },
    "coordinate_system": {
        "subtype": "ellipsoidal",
        "axis": [
            {"name": "Geodetic latitude", "abbreviation": "Lat", "direction": "north", "unit": "degree"},
            {"name": "Geodetic longitude", "abbreviation": "Lon", "direction": "east", "unit": "degree"},
        ],
    },
    "id": {"authority": "EPSG", "code": 4326},
}


async def write_parquet(
    records: RecordsRepository, release: Release, places: Sequence[int]
) -> AsyncGenerator[bytes, None]:
    """Write row groups as they are read; raise DatabaseUnavailableError if one is incomplete."""
    sink = Sink()
    corners: list[_Point] = []
    try:
        # With Arrow's schema in the file, pyarrow would read its metadata from there, and not find those written last.
        with pq.ParquetWriter(sink, _SCHEMA, compression="zstd", store_schema=False) as writer:
            async for rows in rows_of(records, release, places):
                points = [None if row.longitud is None else (row.longitud, row.latitud) for row in rows]
                corners += _corners([point for point in points if point])
                geometry = [point and _WKB.pack(1, 1, *point) for point in points]
                columns = [
                    pa.array(values, field.type)
                    for values, field in zip((*zip(*rows, strict=True), geometry), _SCHEMA, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, schema=_SCHEMA))
                yield sink.drain()
            geometry_column = json.dumps(_describe_geometry(_corners(corners)))
            writer.add_key_value_metadata({"release": release.name, "geo": geometry_column})
        yield sink.drain()
    finally:
        pa.default_memory_pool().release_unused()  # or pyarrow keeps the memory of the largest file


def _corners(points: Sequence[_Point]) -> list[_Point]:
    """Return the south-western and the north-eastern corner of the box around points; none if there are none."""
    if not points:
        return []
    longitudes, latitudes = zip(*points, strict=True)
    return [(min(longitudes), min(latitudes)), (max(longitudes), max(latitudes))]


def _describe_geometry(corners: Sequence[_Point]) -> dict[str, Any]:
    """Return GeoParquet's metadata."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"], "crs": _WGS_84}
    if corners:
        column["bbox"] = list(chain.from_iterable(corners))
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
