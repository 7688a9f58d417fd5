"""Writes localities as a file of any format; Postgres writes the lines of text formats."""

from collections.abc import AsyncGenerator, Mapping, Sequence

from localidades_api.catalogue.columns import COLUMNS
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.database.queries.downloads import LineFormat, list_lines
from localidades_api.downloads.chunks import CHUNK
from localidades_api.downloads.formats import DownloadFormat

_FRAMES: Mapping[LineFormat, tuple[bytes, bytes, bytes]] = {
    "csv": (",".join(COLUMNS).encode() + b"\r\n", b"", b""),
    "ndjson": (b"", b"", b""),
    "geojson": (b'{"type":"FeatureCollection","numberMatched":%d,"features":[\n', b",\n", b"\n]}\n"),
}


async def write_lines(
    database: Database, release: Release, positions: Sequence[int], format_: LineFormat
) -> AsyncGenerator[bytes, None]:
    """Write a text format; raise DatabaseUnavailableError if records are missing.

    The header is part of the first chunk, so that nothing is sent before the database has answered.
    """
    head, between, tail = _FRAMES[format_]
    before = head % len(positions) if format_ == "geojson" else head
    for start in range(0, len(positions), CHUNK):
        yield before + await list_lines(database, release, positions[start : start + CHUNK], format_)
        before = between
    yield tail if positions else before + tail


def write_file(
    database: Database, release: Release, positions: Sequence[int], format_: DownloadFormat
) -> AsyncGenerator[bytes, None]:
    """Write the localities at these positions in chunks, some of which can be empty."""
    # Imported when needed: pyarrow takes 33 MB of each worker that uses it.
    match format_:
        case "parquet":
            from localidades_api.downloads.parquet import write_parquet  # noqa: PLC0415

            return write_parquet(database, release, positions)
        case "xlsx":
            from localidades_api.downloads.xlsx import write_xlsx  # noqa: PLC0415

            return write_xlsx(database, release, positions)
        case "gpkg":
            from localidades_api.downloads.geopackage import write_geopackage  # noqa: PLC0415

            return write_geopackage(database, release, positions)
        case _:
            return write_lines(database, release, positions, format_)
