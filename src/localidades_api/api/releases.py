"""Releases: the index of one, the list, the changes from one to another, and the feed (RFC 4287)."""

from array import array
from bisect import bisect_left
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID, uuid5

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.api import html_context
from localidades_api.api.dataset import describe_for_pages
from localidades_api.api.params import (
    ChangesQuery,
    LanguageQuery,
    ReleaseName,
    ReleaseQuery,
    ReleasesQuery,
)
from localidades_api.api.public_address import feed_base_of, public_variant
from localidades_api.api.redirects import leave_out_blanks
from localidades_api.api.responses import CACHEABLE, LISTED, ResponseBuilder, envelope
from localidades_api.api.services import Services, ServicesDep
from localidades_api.catalogue.columns import ATTRIBUTES, POINT
from localidades_api.catalogue.pagination import Paging
from localidades_api.catalogue.schemas import (
    CHANGE_KINDS,
    CatalogueIndex,
    LocalityChangePage,
    PublishedRelease,
    PublishedReleasePage,
    Release,
)
from localidades_api.database.queries.changes import list_localities_of_both
from localidades_api.downloads.formats import FILE_TYPES, NDJSON
from localidades_api.downloads.response import range_headers
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.html.renderer import FORMATS, HTML, JSON, render_text, root_of
from localidades_api.http.caching import entity_tag, freshness_headers, is_fresh
from localidades_api.http.headers import VARY_BY_CODING
from localidades_api.http.negotiation import accept_header, choose_media_type

router = APIRouter(tags=["Releases"], responses=CACHEABLE)
router.add_api_route("/releases/{name}/changes/filter/", leave_out_blanks, include_in_schema=False)

_CHUNK = 2000  # changes read per statement
_MAX_ENTRIES = 50  # entries of the feed
_NAMESPACE = UUID("6f0f7a3e-52a1-4d0b-9d6b-7a6f6f1d2c84")  # made once, for the ids of entries


@router.get("/", summary="Show a release and its totals", response_model=CatalogueIndex)
async def get_index(request: Request, query: Annotated[ReleaseQuery, Query()], services: ServicesDep) -> Response:
    """Show the release, its totals, the addresses of the lists, and the credit to INEGI."""
    builder = await ResponseBuilder.begin(request, query, services)
    builder = replace(builder, page_variant=f".{services.releases.fingerprint}")
    if builder.is_not_modified:
        return builder.not_modified()
    context = await html_context.of_index(services, builder.release) if builder.wants_html else {}
    datasets = describe_for_pages(builder.release, root_of(request.scope))
    content = CatalogueIndex.of(builder.release).model_dump()
    answer = builder.answer("index.html", "Census", content, datasets=datasets, **context)
    if not context.get("is_whole", True):  # not stored by any cache
        answer.headers["Cache-Control"] = "no-store"
        del answer.headers["ETag"]
    return answer


@router.get("/releases/", summary="List releases", response_model=PublishedReleasePage, responses=LISTED)
async def list_releases(request: Request, query: Annotated[ReleasesQuery, Query()], services: ServicesDep) -> Response:
    """List the releases, oldest first."""
    builder = await ResponseBuilder.begin(request, query, services)
    every = services.releases.every
    builder = replace(builder, variant=f".{services.releases.fingerprint}")
    paging = Paging(len(every), query.page, query.page_size).check()
    if builder.is_not_modified:
        return builder.not_modified(paging)
    results = [PublishedRelease.of(every[index], builder.release).model_dump() for index in paging.indexes]
    context = html_context.of_releases(services, results) if builder.wants_html else {}
    return builder.answer("releases.html", "Releases", envelope(paging, results), paging, **context)


@router.get(
    "/releases/{name}/changes/",
    summary="List changes",
    response_model=LocalityChangePage,
    response_description="One page of the changes.",
    responses=LISTED,
)
async def list_changes(
    request: Request, name: ReleaseName, query: Annotated[ChangesQuery, Query()], services: ServicesDep
) -> Response:
    """List what changed from one release to another, sorted by kind, then id.

    NDJSON returns every change at once, unless the query names a page. To turn a copy of release `since` into release
    `name`, write every record in `after` to it and delete what was `removed`.
    """
    format_ = _choose_format(query, request)
    new, old = await services.releases.named(name), await services.releases.named(query.since)
    builder = ResponseBuilder.of(request, query, HTML if format_ == "api" else JSON, new, name)
    kind = f".{query.change}" if query.change else ""
    builder = replace(builder, variant=f".since.{old.name}.{old.sha256[:12]}{kind}")
    if format_ == "ndjson":
        return await _as_ndjson(builder, services, old, query)
    if query.page == 1 and builder.is_not_modified:  # page 1 always exists, so its 304 needs no query
        return builder.not_modified()
    found, paging = await _find(services, old, new, query)
    if builder.is_not_modified:
        return builder.not_modified(paging)
    results = await _describe(services, old, new, _on_page(found, paging))
    figures = [name for name in ATTRIBUTES if name not in POINT]
    return builder.answer("changes.html", "Changes", envelope(paging, results), paging, since=old.name, figures=figures)


def _choose_format(query: ChangesQuery, request: Request) -> str:
    """Choose by `format`, else by the Accept header."""
    formats = {**FORMATS, NDJSON: "ndjson"}
    return query.format or formats[choose_media_type(accept_header(request.headers), list(formats))]


async def _find(services: Services, old: Release, new: Release, query: ChangesQuery) -> tuple["array[int]", Paging]:
    """Return all changes of the requested kind, and their paging; raise InvalidPageError for a page past the last."""
    found = _of_kind(await services.changes.get(old, new), query.change)
    chosen = {"since": old.name, **({"change": query.change} if query.change else {})}
    return found, Paging(len(found) // 2, query.page, query.page_size, chosen).check()


def _of_kind(changes: "array[int]", kind: str | None) -> "array[int]":
    """Return the changes of one kind; `changes` is a flat array of sorted (kind number, key) pairs."""
    if kind is None:
        return changes
    kinds, number = changes[0::2], CHANGE_KINDS.index(kind)
    return changes[bisect_left(kinds, number) * 2 : bisect_left(kinds, number + 1) * 2]


def _on_page(changes: "array[int]", paging: Paging) -> "array[int]":
    return changes[paging.indexes.start * 2 : paging.indexes.stop * 2]


async def _as_ndjson(builder: ResponseBuilder, services: Services, old: Release, query: ChangesQuery) -> Response:
    """Answer with all changes, or those of the page that the query names."""
    headers = builder.headers("ndjson")
    etag = headers["ETag"]
    headers |= range_headers(builder.request.headers, etag, FILE_TYPES["ndjson"])
    is_not_modified = is_fresh(builder.request.headers.getlist("if-none-match"), etag)
    not_modified = Response(status_code=304, headers={**headers, **VARY_BY_CODING})
    if query.page == 1 and is_not_modified:
        return not_modified
    changes, paging = await _find(services, old, builder.release, query)
    if is_not_modified:
        return not_modified
    if query.model_fields_set & {"page", "page_size"}:
        changes = _on_page(changes, paging)
    name = f"changes-{old.name}-{builder.release.name}.ndjson"
    headers |= {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Catalogue-Records": str(len(changes) // 2),
    }

    async def lines(first: int) -> AsyncGenerator[bytes, None]:
        for start in range(first * _CHUNK * 2, len(changes), _CHUNK * 2):
            described = await _describe(services, old, builder.release, changes[start : start + _CHUNK * 2])
            yield b"".join(to_json(change) + b"\n" for change in described)

    return await services.downloads.start(builder.request.scope, lines, headers, FILE_TYPES["ndjson"])


async def _describe(services: Services, old: Release, new: Release, changes: "array[int]") -> list[dict[str, Any]]:
    """Return changes with the locality's record in each of the two releases."""
    if not changes:
        return []
    records = await list_localities_of_both(services.database, old, new, sorted(set(changes[1::2])))
    if lost := [id_ for id_ in changes[1::2] if (old.id, id_) not in records and (new.id, id_) not in records]:
        raise DatabaseUnavailableError(f"The database has lost {len(lost)} records of a comparison.")
    return [
        {
            "change": CHANGE_KINDS[kind],
            "id": id_,
            "before": _record(records.get((old.id, id_))),
            "after": _record(records.get((new.id, id_))),
        }
        for kind, id_ in zip(changes[0::2], changes[1::2], strict=True)
    ]


def _record(row: Row[Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: value for name, value in row._asdict().items() if name != "release_id"}


@router.get("/releases/feed.atom", include_in_schema=False)
async def show_feed(request: Request, query: Annotated[LanguageQuery, Query()], services: ServicesDep) -> Response:
    """Show the releases, newest first; feed readers send no language, so only `lang` chooses it."""
    current = await services.releases.current()
    language = query.lang or "en"
    variant = f"atom.{services.releases.fingerprint}.{language}{public_variant(request)}"
    headers = dict(freshness_headers(current, variant))
    if is_fresh(request.headers.getlist("if-none-match"), entity_tag(current, variant)):
        return Response(status_code=304, headers=headers)
    shown = sorted(services.releases.every, key=lambda release: release.published_at, reverse=True)[:_MAX_ENTRIES]
    body = render_text(
        "feed.atom",
        language,
        base=feed_base_of(request),
        id=_urn("releases"),
        suffix=f"&lang={query.lang}" if query.lang else "",
        entries=[(release, _urn(_identity(release)), services.releases.changes.get(release.name)) for release in shown],
    )
    return Response(body, headers={**headers, "X-Content-Type-Options": "nosniff"}, media_type="application/atom+xml")


def _identity(release: Release) -> str:
    """Return what identifies a release on every service: its name and its file."""
    return f"{release.name} {release.sha256}"


def _urn(name: str) -> str:
    return uuid5(_NAMESPACE, name).urn
