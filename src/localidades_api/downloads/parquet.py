"""Downloads as GeoParquet 1.1: Parquet with metadata about the column of points."""

import json
import struct
from collections.abc import AsyncGenerator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from localidades_api.catalogue.columns import COLUMNS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.downloads.chunks import rows_of
from localidades_api.http.sink import Sink

_TYPES = {"integer": pa.int32(), "number": pa.float64(), "text": pa.string(), "key": pa.string(), "boolean": pa.bool_()}
_SCHEMA = pa.schema([*((name, _TYPES[column.kind]) for name, column in COLUMNS.items()), ("geometry", pa.binary())])
_WKB = struct.Struct("<BIdd")  # little-endian, the type (a point), longitude, latitude
_Point = tuple[float, float]
# WGS 84 as PROJJSON. GeoParquet's default, OGC:CRS84, has no EPSG code, so joins with other layers would warn. In
# GeoParquet, points are longitude first whatever the order of the axes.
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


async def write_parquet(database: Database, release: Release, positions: Sequence[int]) -> AsyncGenerator[bytes, None]:
    """Write a row group for each chunk; raise DatabaseUnavailableError if records are missing."""
    sink = Sink()
    corners: list[_Point] = []
    try:
        # With a stored schema, pyarrow would read the metadata from there and miss those that are written last.
        with pq.ParquetWriter(sink, _SCHEMA, compression="zstd", store_schema=False) as writer:
            async for rows in rows_of(database, release, positions):
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
        pa.default_memory_pool().release_unused()  # otherwise pyarrow keeps the memory of the largest file


def _corners(points: Sequence[_Point]) -> list[_Point]:
    """Return the south-western and the north-eastern corner of the box around points; none without points."""
    if not points:
        return []
    longitudes, latitudes = zip(*points, strict=True)
    return [(min(longitudes), min(latitudes)), (max(longitudes), max(latitudes))]


def _describe_geometry(corners: Sequence[_Point]) -> dict[str, Any]:
    """Return the metadata of GeoParquet."""
    column: dict[str, Any] = {"encoding": "WKB", "geometry_types": ["Point"], "crs": _WGS_84}
    if corners:
        column["bbox"] = list(chain.from_iterable(corners))
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
