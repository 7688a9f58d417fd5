"""The response cache of an application, and the keys of requests in it."""

import httpx
from fastapi import FastAPI

from localidades_api.response_cache import Key, ResponseCache, spelling


def cache_of(app: FastAPI) -> ResponseCache:
    """Return the response cache of an application that `running_app` has started."""
    cache: ResponseCache = app.state.response_cache
    return cache


def key_of(request: httpx.Request) -> Key:
    """Return what a response is held by."""
    fields = [(name.lower(), value) for name, value in request.headers.raw]
    return spelling(request.url.port, request.url.raw_path, fields)
