"""Entity tags and Cache-Control (RFC 9110 §8.8, RFC 9111)."""

import hashlib
from collections.abc import Mapping
from email.utils import format_datetime
from functools import lru_cache
from pathlib import Path

from localidades_api import __version__
from localidades_api.catalogue.schemas import Release
from localidades_api.settings import find_clone

CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
# Of a request that names its release, which never changes. A release that was removed is kept that long too.
PINNED_CACHE_CONTROL = "public, max-age=86400, stale-while-revalidate=86400, stale-if-error=86400"


def _identify_software() -> str:
    """Return the version, and for a clone a digest of its files, which change without it."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=6)
    if clone := find_clone():
        for path in sorted((*Path(__file__).parents[1].rglob("*.*"), *(clone / "docs").rglob("*.md"))):
            if path.suffix != ".pyc" and path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()


_SOFTWARE = _identify_software()  # at the start: later edits don't reach a process


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
