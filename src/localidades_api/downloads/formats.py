"""The formats of downloads: media types, names of files, limits."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

DownloadFormat = Literal["csv", "excel", "ndjson", "geojson", "parquet", "xlsx", "gpkg"]
FileEnding = Literal["csv", "ndjson", "geojson", "parquet", "xlsx", "gpkg"]  # each of one format
_CSV = "text/csv; charset=utf-8; header=present"


class FileType(NamedTuple):
    """The media type of a format, and the ending of its file names."""

    media_type: str
    ending: str
    is_compressed: bool = False
    max_records: float = math.inf


FILE_TYPES: Mapping[DownloadFormat, FileType] = {
    "csv": FileType(_CSV, ".csv"),
    "excel": FileType(_CSV, "-excel.csv"),
    "ndjson": FileType("application/x-ndjson", ".ndjson"),
    "geojson": FileType("application/geo+json", ".geojson"),
    "parquet": FileType("application/vnd.apache.parquet", ".parquet", is_compressed=True),
    "xlsx": FileType(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".xlsx",
        is_compressed=True,
        max_records=2**20 - 1,  # the rows of a sheet without the header; Excel refuses a file with more
    ),
    "gpkg": FileType("application/geopackage+sqlite3", ".gpkg"),
}
