"""Which connections make room for new ones."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

from fastapi import FastAPI
from uvicorn import Config
from uvicorn.server import ServerState

from localidades_api.server.connections import Connections
from localidades_api.server.deadlines import Timeouts
from localidades_api.server.protocol import HttpProtocol


@asynccontextmanager
async def connected(config: Config, connections: Connections) -> AsyncIterator[tuple[HttpProtocol, socket.socket]]:
    """Lend the server's side of a new connection, and the client's."""
    loop = asyncio.get_running_loop()
    server, client = socket.socketpair()
    with closing(client):
        transport, protocol = await loop.connect_accepted_socket(
            lambda: HttpProtocol(config, ServerState(), {}, loop, connections), server
        )
        yield protocol, client
        transport.abort()
        await asyncio.sleep(0)


async def test_connection_with_an_unread_request_is_not_closed_to_make_room() -> None:
    config = Config(FastAPI())
    config.load()
    connections = Connections(maximum=2, timeouts=Timeouts(client=5, keep_alive=5))
    async with AsyncExitStack() as stack:
        waiting, client = await stack.enter_async_context(connected(config, connections))
        silent, _ = await stack.enter_async_context(connected(config, connections))
        client.sendall(b"GET /nothing HTTP/1.1\r\nHost: test\r\n\r\n")
        assert waiting.is_idle  # as far as the parser knows
        assert connections.admit(HttpProtocol(config, ServerState(), {}, asyncio.get_running_loop(), connections))
        assert not waiting.transport.is_closing()
        assert silent.transport.is_closing()
