"""Validators, conditional requests and Cache-Control (RFC 9110 §13, RFC 9111)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from email.utils import format_datetime
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

from localidades_api import __version__
from localidades_api.catalogue.schemas import Release
from localidades_api.settings import find_clone

CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
# Of a request that names its release, which never changes. A release that was removed is kept that long too.
PINNED_CACHE_CONTROL = "public, max-age=86400, stale-while-revalidate=86400, stale-if-error=86400"

# A server in front that compresses, such as Apache, adds the coding to the tag, and gives it back as it is.
_ENTITY_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*?)(?:(?:--?|;)(?:gzip|br|zstd|deflate))?"')


def _identify_software() -> str:
    """Return the version, and for a clone a digest of its files, which change without it."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=6)
    if clone := find_clone():
        for path in sorted((*Path(__file__).parents[1].rglob("*.*"), *(clone / "docs").rglob("*.md"))):
            if path.suffix != ".pyc" and path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()


_SOFTWARE = _identify_software()  # at the start: later edits don't reach a process


@lru_cache(maxsize=32)
def entity_tag(release: Release, format_: str) -> str:
    """Return the strong validator of every response that shows this release in this representation.

    The digest covers the source, to distinguish releases of the same name in different databases, and this software,
    since another version may serialize the same rows differently.
    """
    digest = hashlib.blake2b(f"{release.sha256} {_SOFTWARE}".encode(), digest_size=6).hexdigest()
    return f'"{release.name}.{format_}.{digest}"'


@lru_cache(maxsize=32)
def freshness_headers(release: Release, format_: str, *, pinned: bool = False) -> Mapping[str, str]:
    """Return the headers that a 200 and its 304 share, the same for every page of a release.

    `pinned` says that the request names the release, so that the response stays right when another is published.
    """
    return {
        "Cache-Control": PINNED_CACHE_CONTROL if pinned else CACHE_CONTROL,
        "Catalogue-Release": release.name,
        "ETag": entity_tag(release, format_),
        "Last-Modified": format_datetime(release.published_at, usegmt=True),
    }


class EarlyResponse(Exception):  # noqa: N818  # an answer
    """Raised with the response if the rest of a route has nothing to do: 304, or a redirect."""

    def __init__(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.response = Response(status_code=status, headers=headers)


def check_modified(asked: Headers, headers: Mapping[str, str]) -> None:
    """Raise EarlyResponse (304) if the client has the response with the ETag of `headers`, those of its 304.

    An optimization, before a route reads or draws something: the middleware `ConditionalRequests` would answer the same
    once the response begins. Only for a resource that exists: those of a release share their tags. `*` doesn't count.
    """
    if _lists(asked.getlist("if-none-match"), headers["ETag"]):
        raise EarlyResponse(HTTPStatus.NOT_MODIFIED, headers)


def is_fresh(if_none_match: Sequence[str], etag: str) -> bool:
    """Return whether If-None-Match lists the ETag of a response or is `*`, by weak comparison (RFC 9110 §13.1.2).

    `if_none_match` has the lines of that header, since a list may be split over several (RFC 9110 §5.3).
    If-Modified-Since is ignored: going back to an older release makes the dates run backwards.
    """
    return ", ".join(if_none_match).strip() == "*" or _lists(if_none_match, etag)


def _lists(if_none_match: Sequence[str], etag: str) -> bool:
    return etag.removeprefix("W/").strip('"') in _ENTITY_TAG.findall(", ".join(if_none_match))
