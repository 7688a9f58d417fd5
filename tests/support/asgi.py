"""Middleware as an ASGI application, called as the server calls it."""

import asyncio

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.middleware import Middleware


def as_asgi(middleware: Middleware) -> ASGIApp:
    """Ask for a response that takes no waiting, and call the application only where there is none."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = middleware.try_respond(scope) if scope["type"] == "http" else None
        if response is None:
            await asyncio.sleep(0)  # the server makes a task, which begins in the event loop's next round
            await middleware(scope, receive, send)
        else:
            await response(scope, receive, send)

    return application


def scope_of(request: httpx.Request) -> Scope:
    """Return what the server hands to middleware."""
    return {
        "type": "http",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
    }
