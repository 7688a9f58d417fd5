"""Which connections make room for new ones, how long they may be idle, and how many there may be."""

import asyncio
import re
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

import pytest
from fastapi import FastAPI
from uvicorn import Config
from uvicorn.server import ServerState

from localidades_api.errors import ConfigurationError
from localidades_api.server import protocol as protocol_module
from localidades_api.server.connections import Connections, max_connections
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


async def test_wait_for_the_next_request_begins_with_the_end_of_the_response() -> None:
    app = FastAPI()

    @app.get("/slow")
    async def respond() -> None:
        await asyncio.sleep(0.05)

    config = Config(app)
    config.load()
    loop = asyncio.get_running_loop()
    connections = Connections(maximum=2, timeouts=Timeouts(client=5, keep_alive=5))
    async with connected(config, connections) as (protocol, client):
        client.settimeout(0)
        connected_at = loop.time()
        assert connected_at - 2 < protocol.idle_since <= connected_at - 1  # before those that have sent a request
        await loop.sock_sendall(client, b"GET /slow HTTP/1.1\r\nHost: test\r\n\r\n")
        assert (await loop.sock_recv(client, 1000)).startswith(b"HTTP/1.1 200 OK\r\n")
        assert connected_at + 0.05 <= protocol.idle_since <= loop.time()


async def test_last_request_of_a_connection_is_answered_and_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_module, "_MAX_REQUESTS", 3)
    config = Config(FastAPI())
    config.load()
    loop = asyncio.get_running_loop()
    connections = Connections(maximum=2, timeouts=Timeouts(client=5, keep_alive=5))
    async with connected(config, connections) as (_, client):
        client.settimeout(0)
        for number in (1, 2, 3):
            await loop.sock_sendall(client, b"GET /nothing HTTP/1.1\r\nHost: test\r\n\r\n")
            answer = await loop.sock_recv(client, 1000)
            assert answer.startswith(b"HTTP/1.1 404")
            assert (b"connection: close" in answer) == (number == 3)


@pytest.mark.parametrize(
    ("limits", "wanted", "result"),
    [
        ((256, 256), 124, 124), ((256, 256), None, 124), ((133, 133), None, 1), ((133, 133), 1, 1),
        ((256, 256), 125, "open files (256) leaves room for only 124 client connections: raise it (ulimit -n), or"
         " lower LOCALIDADES_MAX_CONNECTIONS"),
        ((132, 132), None, "(132) leaves room for only 0 client connections: raise it (ulimit -n), or lower"
         " LOCALIDADES_POOL_SIZE"),
        ((100, 100), None, "only 0 client"),
        ((100_000, 100_000), None, 4096), ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None, 4096),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 9000, 9000),
    ],
)  # fmt: skip
def test_limit_of_connections_leaves_files_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], wanted: int | None, result: int | str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    if isinstance(result, int):
        assert max_connections(wanted, pool_size=10) == result
        return
    with pytest.raises(ConfigurationError, match=re.escape(result)):
        max_connections(wanted, pool_size=10)


def test_soft_limit_of_open_files_is_raised_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    for hard in (5000, 1000, resource.RLIM_INFINITY):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (256, hard))
        assert max_connections(None, pool_size=10) == (868 if hard == 1000 else 4096)
    assert raised == [(4228, 5000), (1000, 1000), (4228, resource.RLIM_INFINITY)]
