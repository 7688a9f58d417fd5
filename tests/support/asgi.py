"""Middleware as an ASGI application, called as the server calls it."""

from starlette.types import ASGIApp, Receive, Scope, Send

from localidades_api.middleware import Middleware


def as_asgi(middleware: Middleware) -> ASGIApp:
    """Ask for a response that takes no waiting, and call the application only where there is none."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = middleware.try_respond(scope) if scope["type"] == "http" else None
        if response is None:
            await middleware(scope, receive, send)
        else:
            await response(scope, receive, send)

    return application
