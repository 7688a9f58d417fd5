"""The static files of HTML pages: text is sent compressed, and kept as long as the pages are."""

import gzip
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.negotiation import CODINGS
from localidades_api.http.representation import Representation, digest_of

STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_COMPRESSED = ".br"  # kept compressed, with no plain file beside it
_MAX_FILES = 64
_QUALITY, _LARGE_QUALITY = 11, 9  # for Swagger UI 11 takes seconds
_LARGE = 100_000  # bytes


class _Text(NamedTuple):
    """A text file in each content coding."""

    digest: str
    bodies: Mapping[str | None, bytes]  # None is the plain text


class CompressedStaticFiles(StaticFiles):
    """Serves text as `br` or `gzip`; a file may be kept as brotli alone, with `.br` after its name."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Find a file, and read a text here: this runs in a thread."""
        full_path, found = super().lookup_path(path)
        if found is None:
            full_path, found = super().lookup_path(path + _COMPRESSED)
            full_path = full_path.removesuffix(_COMPRESSED)
        if found and Path(full_path).suffix in _MEDIA_TYPES:
            _read(full_path, found.st_mtime_ns)
        return full_path, found

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the text in the best coding that the client accepts; other files as they are."""
        media_type = _MEDIA_TYPES.get(Path(full_path).suffix)
        if media_type is None:
            response = super().file_response(full_path, stat_result, scope, status_code)
            response.headers["Cache-Control"] = CACHE_CONTROL
            return response
        text = _read(str(full_path), stat_result.st_mtime_ns)
        chosen = Representation.of(Headers(scope=scope), None, text.digest, codings=CODINGS)
        return chosen.respond_coded(text.bodies[chosen.coding], {"Content-Type": media_type}, status_code)


@lru_cache(maxsize=_MAX_FILES)
def _read(path: str, _modified: int) -> _Text:
    try:
        plain = Path(path).read_bytes()
        compressed = brotli.compress(plain, quality=_QUALITY if len(plain) < _LARGE else _LARGE_QUALITY)
    except FileNotFoundError:
        compressed = Path(path + _COMPRESSED).read_bytes()
        plain = brotli.decompress(compressed)
    bodies = {None: plain, "br": compressed, "gzip": gzip.compress(plain, mtime=0)}
    return _Text(digest_of(plain), bodies)
