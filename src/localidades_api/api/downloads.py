"""Downloads: the localities of a release, or a part of them, as one file."""

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.declarations import CACHEABLE, header
from localidades_api.api.params import DownloadQuery, FileQuery
from localidades_api.api.services import DatabaseDep, NamesDep, PositionsDep, ReleasesDep, TransfersDep
from localidades_api.downloads.files import write_file
from localidades_api.downloads.formats import FILE_TYPES, MEDIA_TYPES, DownloadFormat
from localidades_api.downloads.response import represent_file, start_download
from localidades_api.http.negotiation import accept_header, choose_media_type

router = APIRouter(prefix="/localidades", tags=["Downloads"], responses=CACHEABLE)

_HEADERS = {
    **CACHEABLE[200]["headers"],
    "Catalogue-Records": header("The number of records in the file.", "304363"),
    "Content-Disposition": header("The name of the file.", 'attachment; filename="localidades-2018-09.csv"'),
}
_CONTENT: dict[str, Any] = {
    **{media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in MEDIA_TYPES},
    "text/csv": {"schema": {"type": "string"}},  # generated clients expect bytes in what is binary
    "application/geo+json": {"schema": {"type": "object"}},
}


@router.get(
    "/download/",
    summary="Download localities",
    response_class=Response,
    response_description="The file.",
    responses={200: {"headers": _HEADERS, "content": _CONTENT}},
)
async def download_localities(
    request: Request,
    query: Annotated[DownloadQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    positions: PositionsDep,
    database: DatabaseDep,
    transfers: TransfersDep,
) -> Response:
    """Download the localities of a release, all or filtered, with every column and the names of municipio and estado.

    The `Catalogue-Records` header has the number of records. A transfer that ends before its last byte has failed.
    The file is compressed with zstd, br or gzip if the client accepts it.
    """
    accept = accept_header(request.headers)
    format_ = query.format or MEDIA_TYPES[choose_media_type(accept, list(MEDIA_TYPES))]
    release = await releases.get(query.release)
    async with names.using(release) if query.search is not None else nullcontext() as index:
        name = f"{format_}.{index.digest}" if index else format_  # names of earlier releases are found too
        is_pinned = query.release is not None and index is None
        chosen = represent_file(request.headers, release, name, is_pinned=is_pinned)
        chosen.check_modified()
        selected = await positions.get(release, query, names=index)
    filename = f"localidades-{release.name}{'-filtered' if query.chosen else ''}.{format_}"
    chunks = write_file(database, release, selected, format_)
    return await start_download(transfers, chunks, chosen.headers, FILE_TYPES[format_], filename, len(selected))


@router.get("/download/localidades.{ending}", include_in_schema=False)
async def download_file(
    *,
    request: Request,
    ending: DownloadFormat,
    query: Annotated[FileQuery, Query()],
    releases: ReleasesDep,
    names: NamesDep,
    positions: PositionsDep,
    database: DatabaseDep,
    transfers: TransfersDep,
) -> Response:
    """Answer as `/download/` does, at an address that says the format: GDAL opens a file by its ending."""
    named = DownloadQuery.model_construct(format=ending, **dict(query))
    return await download_localities(request, named, releases, names, positions, database, transfers)
