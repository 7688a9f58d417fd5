"""Downloads as GeoParquet 1.1: Parquet with metadata about the column of points."""

import json
import struct
from collections.abc import AsyncGenerator, Sequence

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


_GEOMETRY = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"], "crs": _WGS_84}},
}


async def write_parquet(database: Database, release: Release, positions: Sequence[int]) -> AsyncGenerator[bytes, None]:
    """Write a row group for each chunk; raise DatabaseUnavailableError if records are missing."""
    sink = Sink()
    schema = _SCHEMA.with_metadata({"release": release.name, "geo": json.dumps(_GEOMETRY)})
    try:
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            async for rows in rows_of(database, release, positions):
                geometry = [
                    None if row.longitud is None else _WKB.pack(1, 1, row.longitud, row.latitud) for row in rows
                ]
                columns = [
                    pa.array(values, field.type)
                    for values, field in zip((*zip(*rows, strict=True), geometry), schema, strict=True)
                ]
                writer.write_batch(pa.record_batch(columns, schema=schema))
                yield sink.drain()
        yield sink.drain()
    finally:
        pa.default_memory_pool().release_unused()  # otherwise pyarrow keeps the memory of the largest file
