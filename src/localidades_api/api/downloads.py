"""Downloads: the localities of a release, or a part of them, as one file."""

from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.declarations import CACHEABLE, header, problem
from localidades_api.api.params import DownloadQuery, FileQuery
from localidades_api.api.services import DatabaseDep, DownloadsDep, NamesDep, PositionsDep, ReleasesDep
from localidades_api.downloads.files import write_file
from localidades_api.downloads.formats import FILE_TYPES, DownloadFormat, FileEnding
from localidades_api.downloads.response import represent_file
from localidades_api.errors import RangeNotSatisfiableError
from localidades_api.http.negotiation import accept_header, choose_media_type

router = APIRouter(prefix="/localidades", tags=["Downloads"], responses=CACHEABLE)

_MEDIA_TYPES: dict[str, DownloadFormat] = {
    type_.media_type.partition(";")[0]: name for name, type_ in FILE_TYPES.items() if name != "excel"
}

_HEADERS = {
    **CACHEABLE[200]["headers"],
    "Catalogue-Records": header("The number of records in the file.", "304363"),
    "Content-Disposition": header("The name of the file.", 'attachment; filename="localidades-2018-09.csv"'),
}
_CONTENT: dict[str, Any] = {
    **{media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in _MEDIA_TYPES},
    "text/csv": {"schema": {"type": "string"}},  # generated clients expect bytes in what is binary
    "application/geo+json": {"schema": {"type": "object"}},
}


@router.get(
    "/download/",
    summary="Download localities",
    response_class=Response,
    response_description="The file.",
    responses={
        200: {"headers": _HEADERS, "content": _CONTENT},
        206: {"description": "The part of the file that `Range` names.", "headers": _HEADERS},
        416: problem(RangeNotSatisfiableError(75_000_000), "The file ends before the part that `Range` names."),
    },
)
async def download_localities(
    request: Request,
    query: Annotated[DownloadQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    positions: PositionsDep,
    database: DatabaseDep,
    downloads: DownloadsDep,
) -> Response:
    """Download the localities of a release, all or filtered, with every column and the names of municipio and estado.

    The `Catalogue-Records` header has the number of records. A transfer that ends before its last byte has failed.
    The file is compressed with zstd, br or gzip if the client accepts it. CSV, NDJSON and GeoJSON can be resumed with
    `Range` if they are not compressed; name the release, or send `If-Range`, so that the rest is of the same file.
    GeoParquet of a whole release answers ranges too, which DuckDB and polars ask for.
    """
    types = list(_MEDIA_TYPES)
    format_ = query.format or _MEDIA_TYPES[choose_media_type(accept_header(request.headers), types)]
    release = await releases.get(query.release)
    async with names.using(release) if query.search is not None else nullcontext() as index:
        file_type = FILE_TYPES[format_]
        name = f"{format_}.{index.digest}" if index else format_  # names of earlier releases are found too
        if format_ == "parquet" and not query.chosen:  # whose bytes depend on the library
            file_type = file_type._replace(is_reproducible=True, is_measured=True)
            name = f"{format_}.{version('pyarrow')}"
        is_pinned = query.release is not None and index is None
        chosen = represent_file(request.headers, release, name, file_type, is_pinned=is_pinned)
        chosen.check_modified()
        selected = await positions.get(release, query, names=index)
    filename = f"localidades-{release.name}{'-filtered' if query.chosen else ''}"
    write = partial(write_file, database, release, selected, format_)
    return await downloads.start(request.scope, write, chosen.headers, file_type, filename, len(selected))


@router.get("/download/localidades.{ending}", include_in_schema=False)
async def download_file(
    *,
    request: Request,
    ending: FileEnding,
    query: Annotated[FileQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    positions: PositionsDep,
    database: DatabaseDep,
    downloads: DownloadsDep,
) -> Response:
    """Answer as `/download/` does, at an address that says the format: GDAL opens a file by its ending."""
    named = DownloadQuery.model_construct(format=ending, **dict(query))
    return await download_localities(request, named, releases, names, positions, database, downloads)
