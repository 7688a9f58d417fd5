"""Releases: which there are, and what changed between two of them."""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Request
from pydantic_core import to_json
from sqlalchemy import Row
from starlette.responses import Response

from localidades_api.downloads import FILE_TYPES, NDJSON
from localidades_api.errors import DatabaseUnavailableError
from localidades_api.freshness import is_fresh
from localidades_api.negotiation import accept_header, choose_media_type
from localidades_api.renderers import MEDIA_TYPES, Format
from localidades_api.router import pages
from localidades_api.router.answers import Catalogue, Exchange, Paging, envelope
from localidades_api.router.keys import leave_out_blanks
from localidades_api.router.queries import STRICT, ChangesQuery, ReleaseName, ReleaseQuery, ReleasesQuery
from localidades_api.schemas import InvalidPageProblem, LocalityChange, Page, PublishedRelease, Release, Totals

router = APIRouter(prefix="/releases")
router.add_api_route("/{name}/changes/filter/", leave_out_blanks, dependencies=STRICT, include_in_schema=False)

_READ_FROM = Annotated[Catalogue, Depends(Catalogue.of)]
_KINDS = ("added", "removed", "renamed", "relocated", "updated")
_CHUNK = 2000  # changes that are read at once
_NO_PAGE: dict[int | str, dict[str, Any]] = {
    404: {"model": InvalidPageProblem, "description": "A page past the last, or no such release."}
}


@router.get("/", response_model=Page[PublishedRelease], dependencies=STRICT, responses=_NO_PAGE)
async def list_releases(request: Request, query: Annotated[ReleasesQuery, Query()], catalogue: _READ_FROM) -> Response:
    """List the releases there are, oldest first."""
    exchange = await Exchange.begin(request, ReleaseQuery(format=query.format, lang=query.lang), catalogue)
    every = catalogue.releases.every
    names = hashlib.blake2b("/".join(release.name for release in every).encode(), digest_size=6).hexdigest()
    exchange = replace(exchange, variant=f".{names}")
    paging = Paging(len(every), query.page, query.page_size).check()
    if exchange.holds:
        return exchange.not_modified(paging)
    results = [_published(every[index], exchange.release).model_dump() for index in paging.places]
    context = await pages.of_releases(catalogue, every, results) if exchange.for_people else {}
    return exchange.answer("releases.html", "Releases", envelope(paging, results), paging, **context)


def _published(release: Release, current: Release) -> PublishedRelease:
    return PublishedRelease(
        release=release.name,
        current=release == current,
        published_at=release.published_at,
        source=release.source,
        sha256=release.sha256,
        totals=Totals.of(release),
    )


@router.get(
    "/{name}/changes/",
    response_model=Page[LocalityChange],
    dependencies=STRICT,
    responses={
        200: {
            "description": "One page of the changes, or as NDJSON all of them.",
            "content": {NDJSON: {"schema": {"type": "string"}}},
        },
        **_NO_PAGE,
    },
)
async def list_changes(
    request: Request, name: ReleaseName, query: Annotated[ChangesQuery, Query()], catalogue: _READ_FROM
) -> Response:
    """List what changed from one release to another, by kind, then id; as NDJSON all of it, or the page asked for.

    Whoever keeps a copy of release `since` has release `name` once every record of `after` is written to it and what
    was removed is deleted.
    """
    format_ = _choose_format(query, request)
    new, old = await catalogue.releases.named(name), await catalogue.releases.named(query.since)
    representation = cast("Format", "json" if format_ == "ndjson" else format_)
    asked = ReleaseQuery(format=representation, lang=query.lang, release=name)
    exchange = await Exchange.begin(request, asked, catalogue)
    kind = f".{query.change}" if query.change else ""
    exchange = replace(exchange, variant=f".since.{old.name}.{old.sha256[:12]}{kind}")
    found = _of_kind(await catalogue.compare(old, new), query.change)
    chosen = {"since": old.name, **({"change": query.change} if query.change else {})}
    paging = Paging(len(found) // 2, query.page, query.page_size, chosen)
    if format_ == "ndjson" and not query.model_fields_set & {"page", "page_size"}:
        return await _as_ndjson(exchange, catalogue, old, found)
    paging.check()
    if exchange.holds:
        return exchange.not_modified(paging)
    wanted = found[paging.places.start * 2 : paging.places.stop * 2]
    if format_ == "ndjson":
        return await _as_ndjson(exchange, catalogue, old, wanted)
    results = await _describe(catalogue, old, new, wanted)
    return exchange.answer("changes.html", "Changes", envelope(paging, results), paging, since=old.name)


def _choose_format(query: ChangesQuery, request: Request) -> str:
    """Choose by `format`, else by the Accept header."""
    formats = {MEDIA_TYPES[0]: "json", MEDIA_TYPES[1]: "api", NDJSON: "ndjson"}
    return query.format or formats[choose_media_type(accept_header(request), list(formats))]


def _of_kind(changes: "array[int]", kind: str | None) -> "array[int]":
    """Return the changes of one kind; `changes` are pairs of a kind's number and a key, in that order."""
    if kind is None:
        return changes
    kinds, number = changes[0::2], _KINDS.index(kind)
    return changes[bisect_left(kinds, number) * 2 : bisect_left(kinds, number + 1) * 2]


async def _as_ndjson(exchange: Exchange, catalogue: Catalogue, old: Release, changes: "array[int]") -> Response:
    headers = exchange.headers("ndjson")
    etag = headers["ETag"]
    headers["ETag"] = f"W/{etag}"
    if is_fresh(exchange.request.headers.getlist("if-none-match"), etag):
        return Response(status_code=304, headers={**headers, "Vary": "Accept-Encoding"})
    name = f"changes-{old.name}-{exchange.release.name}.ndjson"
    headers |= {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Catalogue-Records": str(len(changes) // 2),
    }

    async def lines() -> AsyncIterator[bytes]:
        for start in range(0, len(changes), _CHUNK * 2):
            described = await _describe(catalogue, old, exchange.release, changes[start : start + _CHUNK * 2])
            yield b"".join(to_json(change) + b"\n" for change in described)

    return await catalogue.transfers.start(lines(), headers, FILE_TYPES["ndjson"])


async def _describe(catalogue: Catalogue, old: Release, new: Release, changes: "array[int]") -> list[dict[str, Any]]:
    """Return changes with the locality as either release has it."""
    if not changes:
        return []
    records = await catalogue.changes.list_records(old, new, sorted(set(changes[1::2])))
    if lost := [id_ for id_ in changes[1::2] if (old.id, id_) not in records and (new.id, id_) not in records]:
        raise DatabaseUnavailableError(f"The database has lost {len(lost)} records of a comparison.")
    return [
        {
            "change": _KINDS[kind],
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
