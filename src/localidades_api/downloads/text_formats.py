"""Downloads as text: CSV, CSV for spreadsheets, NDJSON and GeoJSON, whose lines Postgres writes."""

from collections.abc import AsyncGenerator, Mapping, Sequence

from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import RecordsRepository
from localidades_api.database.queries.exports import COLUMNS, LineFormat
from localidades_api.downloads.chunks import CHUNK, check_whole

_HEADER = ",".join(COLUMNS).encode() + b"\r\n"
_FRAMES: Mapping[LineFormat, tuple[bytes, bytes, bytes]] = {
    "csv": (_HEADER, b"", b""),
    "excel": (b"\xef\xbb\xbf" + _HEADER, b"", b""),
    "ndjson": (b"", b"", b""),
    "geojson": (b'{"type":"FeatureCollection","numberMatched":%d,"features":[\n', b",\n", b"\n]}\n"),
}


async def write_lines(
    records: RecordsRepository, release: Release, places: Sequence[int], format_: LineFormat, first: int = 0
) -> AsyncGenerator[bytes, None]:
    """Write a text format in chunks, from the `first` to the end; raise DatabaseUnavailableError if one is incomplete.

    The header goes with the first records, so that nothing is sent before the database has answered.
    """
    head, between, tail = _FRAMES[format_]
    before = head % len(places) if format_ == "geojson" else head
    if first:
        before = between
    for start in range(first * CHUNK, len(places), CHUNK):
        wanted = places[start : start + CHUNK]
        count, lines = await records.list_lines(release, wanted, format_)
        check_whole(count, wanted)
        yield before + lines
        before = between
    yield tail if places else before + tail
