"""Plain requests for suggestions from the current release, answered before routing."""

import asyncio
from functools import cached_property, lru_cache

from cachetools import LRUCache
from fastapi import FastAPI
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from localidades_api.domain.schemas import Release
from localidades_api.http.caching import is_fresh
from localidades_api.http.encoders import ResourceEncoder
from localidades_api.http.paths import LOCALIDADES, OPERATION
from localidades_api.http.query import parse_parameters
from localidades_api.http.raw_response import RawResponse
from localidades_api.middleware.cached_pages import accepted_format
from localidades_api.router import Services
from localidades_api.router.localities import suggest
from localidades_api.router.params import SuggestQuery

_PATH = f"{LOCALIDADES}suggest/"
_MAX_QUERY = 1000  # bytes; a hundred characters of three bytes each, percent-encoded
MAX_CACHE = 4 * 1024**2  # bytes of responses, some two thousand: everybody types the same beginnings
_MAX_AT_ONCE = 16  # searches before the event loop gets to other work; the concurrency limit admits the rest
_OVERHEAD = 600  # bytes per response besides its body and its key


class Suggestions:
    """Answers GET requests for suggestions as JSON where the index of names is open, and passes all others on.

    It sends what routing would send, which a test checks by comparing both. Routing takes as long as finding.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._cache: LRUCache[tuple[object, ...], RawResponse] = LRUCache(MAX_CACHE, getsizeof=_size)
        self._searches = 0  # since the event loop has last turned

    def try_respond(self, scope: Scope) -> RawResponse | None:
        """Return suggestions, or a 304."""
        if scope["path"] == _PATH and scope["method"] == "GET" and (response := self._respond(scope)):
            scope[OPERATION] = "suggest_localities"
            return response
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on to routing."""
        await self._app(scope, receive, send)

    def _respond(self, scope: Scope) -> RawResponse | None:
        """Return the response to a plain request; None for any other."""
        release, raw = self._services.releases.searched, scope["query_string"]
        names = self._services.names.opened(release) if release else None
        if release is None or names is None or len(raw) > _MAX_QUERY or (query := _read(raw)) is None:
            return None
        headers = [(name, value) for name, value in scope["headers"] if name in {b"accept", b"if-none-match"}]
        format_ = query.format or accepted_format([value for name, value in headers if name == b"accept"])
        if format_ != "json" or query.release not in {None, release.name}:
            return None
        encoder = _encoder(release, names.digest)
        if is_fresh([value.decode("latin-1") for name, value in headers if name == b"if-none-match"], encoder.etag):
            return encoder.not_modified
        key = (encoder.etag, raw)
        response = self._cache.get(key)
        if response is None:
            if not self._may_search():
                return None
            response = encoder.encode(to_json(suggest(names, query)))
            self._cache[key] = response
        return response

    def _may_search(self) -> bool:
        """Count a search, and tell whether it may be done at once."""
        if not self._searches:
            asyncio.get_running_loop().call_soon(self._turn)
        self._searches += 1
        return self._searches <= _MAX_AT_ONCE

    def _turn(self) -> None:
        self._searches = 0

    @cached_property
    def _services(self) -> Services:
        """Look them up once: each access to Starlette's `State` calls a method written in Python."""
        services: Services = self._app.state.services
        return services


def _size(response: RawResponse) -> int:
    return len(response.body) + _OVERHEAD


def _read(query: bytes) -> SuggestQuery | None:
    """Return a plain query as routing understands it, None if routing has to say what is wrong with it."""
    parameters = parse_parameters(query)
    try:
        return None if parameters is None else SuggestQuery.model_validate(parameters)
    except ValidationError:
        return None


@lru_cache(maxsize=8)
def _encoder(release: Release, digest: str) -> ResourceEncoder:
    return ResourceEncoder(release, f"json.{digest}")
