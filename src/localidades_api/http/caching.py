"""How long an answer holds: ETag, Last-Modified, Cache-Control, and when 304 says all (RFC 9110 §13, RFC 9111)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from email.utils import format_datetime
from functools import lru_cache

from localidades_api import __version__
from localidades_api.domain.schemas import Release

CACHE_CONTROL = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"

_ENTITY_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


@lru_cache(maxsize=32)
def entity_tag(release: Release, format_: str) -> str:
    """Return the strong validator of every answer that shows this release in this representation.

    The digest of the source tells apart two releases of one name in two databases; the version of this software is in
    it because the same rows may be written otherwise by the next one.
    """
    digest = hashlib.blake2b(f"{release.sha256} {__version__}".encode(), digest_size=6).hexdigest()
    return f'"{release.name}.{format_}.{digest}"'


@lru_cache(maxsize=32)
def freshness_headers(release: Release, format_: str) -> Mapping[str, str]:
    """Return the headers that a 200 and its 304 share; they are the same on every page of a release."""
    return {
        "Cache-Control": CACHE_CONTROL,
        "Catalogue-Release": release.name,
        "ETag": entity_tag(release, format_),
        "Last-Modified": format_datetime(release.published_at, usegmt=True),
    }


def is_fresh(if_none_match: Sequence[str], etag: str) -> bool:
    """Tell whether the client holds this answer already (RFC 9110 §13.1.2; the comparison is the weak one).

    `if_none_match` are the lines of that header: a list may be spread over several (RFC 9110 §5.3).
    If-Modified-Since is not looked at: going back to an older release makes the dates run backwards.
    """
    listed = ", ".join(if_none_match)
    return listed.strip() == "*" or etag in _ENTITY_TAG.findall(listed)
