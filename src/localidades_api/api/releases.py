"""Releases: the index of one, the list, and the changes from one to another."""

from array import array
from bisect import bisect_left
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.declarations import CACHEABLE, PAGINATED
from localidades_api.api.extension import extensions_of
from localidades_api.api.html_context import draw_cities
from localidades_api.api.params import ChangesQuery, ReleaseName, ReleaseQuery, ReleasesQuery
from localidades_api.api.responses import ResponseBuilder, envelope
from localidades_api.api.services import ChangesDep, ReleasesDep, RepositoryDep, TransfersDep
from localidades_api.caches.changes import ChangeCache
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, municipalities_of
from localidades_api.catalogue.pagination import Paging
from localidades_api.catalogue.schemas import (
    CHANGE_KINDS,
    CatalogueIndex,
    LocalityChangePage,
    PublishedRelease,
    PublishedReleasePage,
    Release,
)
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.downloads.changes import ChangesFormat, describe_changes, write_changes
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.downloads.response import represent_file, start_download
from localidades_api.html.renderer import FORMATS
from localidades_api.http.transfers import Transfers

router = APIRouter(tags=["Releases"], responses=CACHEABLE)

_FILES: dict[str, ChangesFormat] = {
    FILE_TYPES[name].media_type.partition(";")[0]: name for name in get_args(ChangesFormat)
}


@router.get("/", summary="Show a release and its totals", response_model=CatalogueIndex)
async def get_index(
    request: Request, query: Annotated[ReleaseQuery, Query()], releases: ReleasesDep, repository: RepositoryDep
) -> Response:
    """Show the release, its totals, the addresses of the lists, and the credit to INEGI."""
    builder = await ResponseBuilder.begin(request, query, releases)
    builder.check_modified()
    release = builder.release
    content = CatalogueIndex.of(release).model_dump()
    context: dict[str, Any] = {}
    if builder.wants_html:
        drawing, change = await draw_cities(repository, release), releases.changes.get(release.name)
        context = {"drawing": drawing, "change": change, "extensions": extensions_of(request)}
    return builder.answer("index.html", "Census", content, **context)


@router.get("/releases/", summary="List releases", response_model=PublishedReleasePage, responses=PAGINATED)
async def list_releases(request: Request, query: Annotated[ReleasesQuery, Query()], releases: ReleasesDep) -> Response:
    """List the releases, oldest first."""
    builder = await ResponseBuilder.begin(request, query, releases)
    builder.variant = f".{releases.fingerprint}"
    every = releases.every
    paging = query.paging(len(every))
    results = [PublishedRelease.of(every[index], builder.release).model_dump() for index in paging.indexes]
    context: dict[str, Any] = {}
    if builder.wants_html:
        changes = {result["release"]: releases.changes.get(result["release"]) for result in results}
        context = {"changes": changes}
    return builder.answer("releases.html", "Releases", envelope(paging, results), paging, **context)


@router.get(
    "/releases/{name}/changes/",
    summary="List changes",
    response_model=LocalityChangePage,
    response_description="One page of the changes.",
    responses=PAGINATED,
)
async def list_changes(
    request: Request,
    name: ReleaseName,
    query: Annotated[ChangesQuery, Query()],
    releases: ReleasesDep,
    changes: ChangesDep,
    repository: RepositoryDep,
    transfers: TransfersDep,
) -> Response:
    """List what changed from one release to another, sorted by kind, then id.

    A file (`ndjson` or `csv`) has every change, unless the query names a page. To turn a copy of release `since` into
    release `name`, write every record in `after` to it and delete what was `removed`. CSV has a row for each change,
    with every column of both records, and the names of the columns that differ in `differs`.
    """
    builder = await ResponseBuilder.begin(request, query, releases, name=name, formats={**FORMATS, **_FILES})
    new, old = builder.release, await releases.named(query.since)
    chosen = "".join(f".{value}" for value in (query.change, query.estado_id) if value)
    builder.variant = f".since.{old.name}.{old.sha256[:12]}{chosen}"
    if builder.format in FILE_TYPES:
        return await _as_file(builder, query, old, changes, repository, transfers)
    if query.page == 1:  # page 1 always exists, so its 304 needs no query
        builder.check_modified()
    selected, paging = await _find(changes, old, new, query)
    builder.check_modified(paging)
    shown = await describe_changes(repository.database, old, new, _on_page(selected, paging))
    context = await html_context.of_changes(repository, new, query.estado_id, shown) if builder.wants_html else {}
    content = envelope(paging, [change.content for change in shown])
    return builder.answer("changes.html", "Changes", content, paging, since=old.name, **context)


async def _find(changes: ChangeCache, old: Release, new: Release, query: ChangesQuery) -> tuple["array[int]", Paging]:
    """Return all changes that the query chooses, and their paging; raise InvalidPageError for a page past the last."""
    selected = _chosen(await changes.get(old, new), query.change, query.estado_id)
    return selected, query.paging(len(selected) // 2)


def _chosen(changes: "array[int]", kind: str | None, estado_id: int | None) -> "array[int]":
    """Return the changes of a kind and in an estado; `changes` is a flat array of sorted (kind number, key) pairs."""
    kinds, keys = changes[0::2], changes[1::2]
    chosen = array(changes.typecode)
    for number in range(len(CHANGE_KINDS)) if kind is None else (CHANGE_KINDS.index(kind),):
        start, stop = bisect_left(kinds, number), bisect_left(kinds, number + 1)
        if estado_id is not None:
            first, last = (id_ * KEYS_OF_A_MUNICIPIO for id_ in municipalities_of(estado_id))
            stop = bisect_left(keys, last + KEYS_OF_A_MUNICIPIO, start, stop)
            start = bisect_left(keys, first, start, stop)
        chosen += changes[start * 2 : stop * 2]
    return chosen


def _on_page(changes: "array[int]", paging: Paging) -> "array[int]":
    return changes[paging.indexes.start * 2 : paging.indexes.stop * 2]


async def _as_file(
    builder: ResponseBuilder,
    query: ChangesQuery,
    old: Release,
    changes: ChangeCache,
    repository: CatalogueRepository,
    transfers: Transfers,
) -> Response:
    """Answer with all changes, or those of the page that the query names."""
    format_ = cast("ChangesFormat", builder.format)
    new = builder.release
    variant = f"{format_}{builder.variant}"
    chosen = represent_file(builder.request.headers, new, variant, is_pinned=builder.is_immutable)
    if query.page == 1:
        chosen.check_modified()
    selected, paging = await _find(changes, old, new, query)
    if query.model_fields_set & {"page", "page_size"}:
        selected = _on_page(selected, paging)
    chunks = write_changes(repository.database, old, new, selected, format_)
    name = f"changes-{old.name}-{new.name}.{format_}"
    return await start_download(transfers, chunks, chosen.headers, FILE_TYPES[format_], name, len(selected) // 2)
