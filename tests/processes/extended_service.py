"""The service with a failing route, the same with middleware, and below another application, for `serve --app`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response

from docs.examples.service_mounted import app as behind_key
from docs.examples.service_mounted import service
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


@asynccontextmanager
async def open_notebook(_app: FastAPI) -> AsyncIterator[Mapping[str, str]]:
    """Open what a route needs."""
    yield {"notebook": "open"}


notes = APIRouter(lifespan=open_notebook)


@notes.get("/notes")
async def read_notes(request: Request) -> str:
    """Return the state of the notebook."""
    return str(request.state.notebook)


service.include_router(notes)


@behind_key.middleware("http")
async def require_key(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse a request without the key, unless it is a probe."""
    is_allowed = "x-api-key" in request.headers or request.url.path == "/geo/readyz"
    return await call_next(request) if is_allowed else Response(status_code=401)
