"""The service with a failing route, and the same with middleware, for `serve --app`."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from localidades_api.app import create_app
from localidades_api.settings import read_settings


async def fail() -> None:
    """Raise an error, whose response has the request's id."""
    raise ArithmeticError


app = create_app(read_settings())
app.get("/fails")(fail)
stamped = create_app(read_settings())


@stamped.middleware("http")
async def stamp(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Add a header to each response."""
    response = await call_next(request)
    response.headers["x-stamp"] = "mine"
    return response
