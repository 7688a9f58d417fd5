"""The application behind its middleware, called as the server calls it."""

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.response_cache import STATE, Key, ResponseCache, spelling


def cache_of(app: FastAPI) -> ResponseCache:
    """Return the response cache of an application that `running_app` has started."""
    cache: ResponseCache = app.state.of_lifespan[STATE]
    return cache


def with_state(stack: ASGIApp, app: FastAPI) -> ASGIApp:
    """Hand the state of the application's lifespan on with each request, as the server does."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await stack({**scope, "state": app.state.of_lifespan}, receive, send)

    return application


def key_of(request: httpx.Request) -> Key:
    """Return what a response is held by."""
    fields = [(name.lower(), value) for name, value in request.headers.raw]
    return spelling(request.url.port, request.url.raw_path, fields)
