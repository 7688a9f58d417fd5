"""Serves an ASGI application in this process with the protocol of `serve`."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import Timeouts
from localidades_api.server.run import _make_protocol
from tests.support.waiting import PATIENCE, eventually


@contextmanager
def serving_app(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a free port in a thread; yield its root URL."""
    protocol = cast("type[asyncio.Protocol]", partial(_make_protocol, Connections(100, Timeouts(PATIENCE, PATIENCE))))
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            eventually(lambda: server.started)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
