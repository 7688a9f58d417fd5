"""The formats of downloads."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

DownloadFormat = Literal["csv", "ndjson", "geojson", "parquet", "xlsx", "gpkg"]  # also the endings of their files


class FileType(NamedTuple):
    """The media type of a format, and whether its files are compressed already."""

    media_type: str
    is_compressed: bool = False


FILE_TYPES: Mapping[DownloadFormat, FileType] = {
    "csv": FileType("text/csv; charset=utf-8; header=present"),
    "ndjson": FileType("application/x-ndjson"),
    "geojson": FileType("application/geo+json"),
    "parquet": FileType("application/vnd.apache.parquet", is_compressed=True),
    "xlsx": FileType("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", is_compressed=True),
    "gpkg": FileType("application/geopackage+sqlite3"),
}
MEDIA_TYPES: Mapping[str, DownloadFormat] = {
    type_.media_type.partition(";")[0]: name for name, type_ in FILE_TYPES.items()
}
