"""Gets answers from the service's own application, run in this process on a database."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from pydantic import SecretStr
from starlette.types import Message

from localidades_api.api import Services
from localidades_api.api.localities import describe_locality
from localidades_api.app import create_app
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.cli.mirroring.upstream import Head, RecordResponse, Sink
from localidades_api.errors import LocalidadesError, MirrorError
from localidades_api.html.renderer import JSON, View
from localidades_api.settings import Settings

_TIMEOUT = 60.0  # seconds for a statement: nobody waits for a single answer here
_POOL_SIZE = 2


class InProcess:
    """Calls the application as its server would, without a socket."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._services: Services = app.state.services

    async def ask(self, target: str, sink: Sink, accept: str = "application/json") -> Head:
        """Call the application with a GET."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "headers": [(b"accept", accept.encode())], "scheme": "http",
            "http_version": "1.1", "client": None, "server": None, "asgi": {"version": "3.0"},
        }  # fmt: skip
        heads: list[Head] = []
        is_whole = False

        async def send(message: Message) -> None:
            nonlocal is_whole
            if message["type"] == "http.response.start":
                headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
                heads.append(Head(message["status"], headers))
            else:
                sink(message.get("body", b""))
                is_whole = not message.get("more_body", False)

        await self._app(scope, partial(_wait_for_ever), send)
        if not is_whole:
            raise MirrorError(f"The answer to {target} broke off; the log says why. Run the command again to go on.")
        return heads[0]

    async def localities(self, release: str, municipios: Sequence[int]) -> AsyncIterator[RecordResponse]:
        """Yield the answers to thousands of localities from one statement, as the route describes and renders them."""
        bounds = municipios[0] * KEYS_OF_A_MUNICIPIO, (municipios[-1] + 1) * KEYS_OF_A_MUNICIPIO - 1
        rows = await self._services.repository.list_between(await self._services.release(release), *bounds)
        for row in rows:
            yield RecordResponse(row.id, JSON.render(View("", "", describe_locality(row))))


async def _wait_for_ever() -> Message:
    """Receive nothing: no client disconnects."""
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def open_in_process(url: str, settings: Settings) -> AsyncIterator[InProcess]:
    """Start the application on a database, without caches and background tasks; raise MirrorError if it can't."""
    own = {
        "database_url": SecretStr(url),
        "page_cache_bytes": 0,
        "database_timeout": _TIMEOUT,
        "pool_size": _POOL_SIZE,
    }
    app = create_app(settings.model_copy(update=own), in_background=False)
    try:
        async with app.router.lifespan_context(app):
            yield InProcess(app)
    except MirrorError:
        raise
    except LocalidadesError as error:
        raise MirrorError(f"{error.detail} Run the command again to go on.") from error
