"""A release, or a part of it, as a file of each format."""

from collections.abc import AsyncGenerator, Sequence

from localidades_api.catalogue.schemas import Release
from localidades_api.database.queries import RecordsRepository
from localidades_api.downloads.file_types import FILE_TYPES, DownloadFormat
from localidades_api.downloads.text_formats import write_lines
from localidades_api.errors import NotAcceptableError


def write_file(
    records: RecordsRepository, release: Release, places: Sequence[int], format_: DownloadFormat, first: int = 0
) -> AsyncGenerator[bytes, None]:
    """Write the localities at these positions in chunks, some of which can be empty.

    A format that is reproducible begins with the `first` chunk.
    Raises NotAcceptableError, before the first chunk, if the format has no room for so many.
    """
    if len(places) > FILE_TYPES[format_].max_records:
        others = {name: type_ for name, type_ in FILE_TYPES.items() if len(places) <= type_.max_records}
        raise NotAcceptableError(
            list(dict.fromkeys(type_.media_type.partition(";")[0] for type_ in others.values())),
            f"A sheet of Excel has room for {FILE_TYPES[format_].max_records:,} localities, and these are"
            f" {len(places):,}: set `format` to {', '.join(others)}, or filter.",
        )
    # Libraries are imported when they are needed: pyarrow takes 33 MB of each worker that uses it.
    match format_:
        case "parquet":
            from localidades_api.downloads.parquet import write_parquet  # noqa: PLC0415

            return write_parquet(records, release, places)
        case "xlsx":
            from localidades_api.downloads.xlsx import write_xlsx  # noqa: PLC0415

            return write_xlsx(records, release, places)
        case "gpkg":
            from localidades_api.downloads.geopackage import write_geopackage  # noqa: PLC0415

            return write_geopackage(records, release, places)
        case _:
            return write_lines(records, release, places, format_, first)
