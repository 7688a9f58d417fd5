"""Downloads as GeoPackage 1.4: an SQLite file with a table of points, for QGIS and other geographic programs.

SQLite can't be streamed, so it is a temporary file first. Without the R-tree, QGIS and ArcGIS read the whole layer for
each view.
"""

import asyncio
import os
import sqlite3
import struct
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from tempfile import mkstemp
from threading import Lock
from typing import Any, Self

from sqlalchemy import Row

from localidades_api.catalogue.columns import COLUMNS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.downloads.chunks import rows_of
from localidades_api.errors import UnavailableError

_PART = 256 * 1024  # bytes of the file to send at a time
_TYPES = {"integer": "INTEGER", "number": "DOUBLE", "text": "TEXT", "key": "TEXT", "boolean": "BOOLEAN"}
_POINT = struct.Struct("<2sBBiBIdd")  # the header, without an envelope, then WKB
_SCHEMA = """
    PRAGMA application_id = 0x47504B47  /* GPKG */;
    PRAGMA user_version = 10400;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    BEGIN;
    CREATE TABLE gpkg_spatial_ref_sys (
        srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
        organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT
    );
    INSERT INTO gpkg_spatial_ref_sys VALUES
        ('Undefined Cartesian', -1, 'NONE', -1, 'undefined', NULL),
        ('Undefined geographic', 0, 'NONE', 0, 'undefined', NULL),
        ('WGS 84', 4326, 'EPSG', 4326,
         'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
         || 'UNIT["degree",0.0174532925199433]]', NULL);
    CREATE TABLE gpkg_contents (
        table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE, description TEXT,
        last_change DATETIME NOT NULL, min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
        srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id)
    );
    CREATE TABLE gpkg_geometry_columns (
        table_name TEXT NOT NULL UNIQUE REFERENCES gpkg_contents(table_name), column_name TEXT NOT NULL,
        geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL REFERENCES gpkg_spatial_ref_sys(srs_id),
        z TINYINT NOT NULL, m TINYINT NOT NULL, PRIMARY KEY (table_name, column_name)
    );
    INSERT INTO gpkg_geometry_columns VALUES ('localidades', 'geom', 'POINT', 4326, 0, 0);
    CREATE TABLE gpkg_extensions (
        table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL,
        UNIQUE (table_name, column_name, extension_name)
    );
    INSERT INTO gpkg_extensions VALUES
        ('localidades', 'geom', 'gpkg_rtree_index', 'http://www.geopackage.org/spec140/#extension_rtree', 'write-only');
    CREATE VIRTUAL TABLE rtree_localidades_geom USING rtree (id, minx, maxx, miny, maxy);
"""
_COLUMNS = [
    "fid INTEGER PRIMARY KEY",
    "geom POINT",
    *(f"{name} {_TYPES[column.kind]}" for name, column in COLUMNS.items()),
]
_TABLE = f"CREATE TABLE localidades ({', '.join(_COLUMNS)})"
_INSERT = f"INSERT INTO localidades VALUES (NULL{', ?' * (len(_COLUMNS) - 1)})"  # noqa: S608  # only its length varies
_CONTENTS = """
    INSERT INTO gpkg_contents
    SELECT 'localidades', 'features', ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', ?, 'unixepoch'),
           min(longitud), min(latitud), max(longitud), max(latitud), 4326
      FROM localidades
"""
_INDEX = """
    INSERT INTO rtree_localidades_geom
    SELECT fid, longitud, longitud, latitud, latitud FROM localidades WHERE geom NOT NULL
"""
# The triggers of the extension gpkg_rtree_index; programs that edit the file bring the functions.
_TRIGGERS = """
    CREATE TRIGGER rtree_localidades_geom_insert AFTER INSERT ON localidades
      WHEN NEW.geom NOT NULL AND NOT ST_IsEmpty(NEW.geom)
    BEGIN
        INSERT OR REPLACE INTO rtree_localidades_geom
        VALUES (NEW.fid, ST_MinX(NEW.geom), ST_MaxX(NEW.geom), ST_MinY(NEW.geom), ST_MaxY(NEW.geom));
    END;
    CREATE TRIGGER rtree_localidades_geom_update6 AFTER UPDATE OF geom ON localidades
      WHEN OLD.fid = NEW.fid AND NEW.geom NOT NULL AND NOT ST_IsEmpty(NEW.geom)
       AND OLD.geom NOT NULL AND NOT ST_IsEmpty(OLD.geom)
    BEGIN
        UPDATE rtree_localidades_geom
           SET minx = ST_MinX(NEW.geom), maxx = ST_MaxX(NEW.geom), miny = ST_MinY(NEW.geom), maxy = ST_MaxY(NEW.geom)
         WHERE id = NEW.fid;
    END;
    CREATE TRIGGER rtree_localidades_geom_update7 AFTER UPDATE OF geom ON localidades
      WHEN OLD.fid = NEW.fid AND NEW.geom NOT NULL AND NOT ST_IsEmpty(NEW.geom)
       AND (OLD.geom ISNULL OR ST_IsEmpty(OLD.geom))
    BEGIN
        INSERT INTO rtree_localidades_geom
        VALUES (NEW.fid, ST_MinX(NEW.geom), ST_MaxX(NEW.geom), ST_MinY(NEW.geom), ST_MaxY(NEW.geom));
    END;
    CREATE TRIGGER rtree_localidades_geom_update2 AFTER UPDATE OF geom ON localidades
      WHEN OLD.fid = NEW.fid AND (NEW.geom ISNULL OR ST_IsEmpty(NEW.geom))
    BEGIN
        DELETE FROM rtree_localidades_geom WHERE id = OLD.fid;
    END;
    CREATE TRIGGER rtree_localidades_geom_update5 AFTER UPDATE ON localidades
      WHEN OLD.fid <> NEW.fid AND NEW.geom NOT NULL AND NOT ST_IsEmpty(NEW.geom)
    BEGIN
        DELETE FROM rtree_localidades_geom WHERE id = OLD.fid;
        INSERT OR REPLACE INTO rtree_localidades_geom
        VALUES (NEW.fid, ST_MinX(NEW.geom), ST_MaxX(NEW.geom), ST_MinY(NEW.geom), ST_MaxY(NEW.geom));
    END;
    CREATE TRIGGER rtree_localidades_geom_update4 AFTER UPDATE ON localidades
      WHEN OLD.fid <> NEW.fid AND (NEW.geom ISNULL OR ST_IsEmpty(NEW.geom))
    BEGIN
        DELETE FROM rtree_localidades_geom WHERE id IN (OLD.fid, NEW.fid);
    END;
    CREATE TRIGGER rtree_localidades_geom_delete AFTER DELETE ON localidades WHEN OLD.geom NOT NULL
    BEGIN
        DELETE FROM rtree_localidades_geom WHERE id = OLD.fid;
    END;
"""


async def write_geopackage(
    database: Database, release: Release, positions: Sequence[int]
) -> AsyncGenerator[bytes, None]:
    """Write a temporary file, then yield its parts; empty parts before them let the response notice a disconnect.

    The file has no name, so its space is free again however the process ends. Raises DatabaseUnavailableError if
    records are missing, and UnavailableError if the disk is full.
    """
    try:
        with _GeoPackage() as package:
            async for rows in rows_of(database, release, positions):
                await asyncio.to_thread(package.insert, rows)
                yield b""
            await asyncio.to_thread(package.finish, release)
            while part := package.file.read(_PART):
                yield part
    except (OSError, sqlite3.Error) as error:
        raise UnavailableError("The service can't write the file: its disk is full, or fails.") from error


class _GeoPackage:
    """A temporary file without a name, written by threads; closing it waits for the thread that is writing."""

    def __init__(self) -> None:
        descriptor, name = mkstemp(suffix=".gpkg")
        self.file = os.fdopen(descriptor, "rb")
        self._lock = Lock()
        self._database = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        try:
            self._database.executescript(_SCHEMA)
            self._database.execute(_TABLE)
        finally:
            Path(name).unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._database.close()
        self.file.close()

    def insert(self, rows: Sequence[Row[Any]]) -> None:
        with self._lock:
            self._database.executemany(_INSERT, ((_geometry(row.longitud, row.latitud), *row) for row in rows))

    def finish(self, release: Release) -> None:
        moment = release.published_at.timestamp()
        with self._lock:
            self._database.execute(_CONTENTS, (f"Localidades {release.name}", release.credit("es"), moment))
            self._database.execute(_INDEX)
            self._database.execute("COMMIT")
            self._database.executescript(_TRIGGERS)


def _geometry(longitude: float | None, latitude: float | None) -> bytes | None:
    return None if longitude is None else _POINT.pack(b"GP", 0, 1, 4326, 1, 1, longitude, latitude)
