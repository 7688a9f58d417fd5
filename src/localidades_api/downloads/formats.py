"""The formats of downloads: media types and names of files."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

DownloadFormat = Literal["csv", "excel", "ndjson", "geojson", "parquet", "xlsx", "gpkg"]
_CSV = "text/csv; charset=utf-8; header=present"


class FileType(NamedTuple):
    """The media type of a format, and how the names of its files end.

    `compressed` says that it is so within, `is_reproducible` that the same records are the same bytes on any machine;
    `max_records` is how many records fit.
    """

    media_type: str
    ending: str
    compressed: bool = False
    is_reproducible: bool = False
    max_records: float = math.inf


FILE_TYPES: Mapping[DownloadFormat, FileType] = {
    "csv": FileType(_CSV, ".csv", is_reproducible=True),
    "excel": FileType(_CSV, "-excel.csv", is_reproducible=True),
    "ndjson": FileType("application/x-ndjson", ".ndjson", is_reproducible=True),
    "geojson": FileType("application/geo+json", ".geojson", is_reproducible=True),
    "parquet": FileType("application/vnd.apache.parquet", ".parquet", compressed=True),
    "xlsx": FileType(
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".xlsx",
        compressed=True,
        max_records=2**20 - 1,  # rows of a sheet, less its header; Excel opens no file that has more
    ),
    "gpkg": FileType("application/geopackage+sqlite3", ".gpkg"),
}
NDJSON = FILE_TYPES["ndjson"].media_type
