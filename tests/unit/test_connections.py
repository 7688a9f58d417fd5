"""Which connections make room for new ones, how long they may be idle, and how many there may be."""

import asyncio
import re
import resource
import socket

import pytest
from fastapi import FastAPI
from uvicorn import Config
from uvicorn.server import ServerState

from localidades_api.errors import ConfigurationError
from localidades_api.server.connections import Connections, max_connections
from localidades_api.server.deadlines import Timeouts
from localidades_api.server.protocol import HttpProtocol


async def test_connection_with_an_unread_request_is_not_closed_to_make_room() -> None:
    config, loop = Config(FastAPI()), asyncio.get_running_loop()
    config.load()
    connections = Connections(maximum=2, timeouts=Timeouts(client=5, keep_alive=5))

    async def connect() -> tuple[HttpProtocol, socket.socket]:
        server, client = socket.socketpair()
        _, protocol = await loop.connect_accepted_socket(
            lambda: HttpProtocol(config, ServerState(), {}, loop, connections), server
        )
        return protocol, client

    (waiting, client), (silent, other) = await connect(), await connect()
    client.sendall(b"GET /nothing HTTP/1.1\r\nHost: test\r\n\r\n")
    assert waiting.is_idle  # as far as the parser knows
    assert connections.admit(HttpProtocol(config, ServerState(), {}, loop, connections))
    assert not waiting.socket_transport.is_closing()
    assert silent.socket_transport.is_closing()
    waiting.socket_transport.abort()
    await asyncio.sleep(0)
    for one in (client, other):
        one.close()


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
