"""Connections: where they are accepted, how many, how long they may be idle or stalled, and which make room."""

import asyncio
import re
import resource
import socket

import pytest
from fastapi import FastAPI
from uvicorn import Config
from uvicorn.server import ServerState

from localidades_api.errors import ConfigurationError, StatusError
from localidades_api.server.connections import Connections, max_connections
from localidades_api.server.deadlines import ReadProgress, Timeouts
from localidades_api.server.heads import MAX_HEAD, check_head
from localidades_api.server.protocol import HttpProtocol
from localidades_api.server.run import listen


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


# -- Timeouts


def test_head_timeout_is_ten_seconds_at_most() -> None:
    assert [Timeouts(client, keep_alive=75).head for client in (5, 600)] == [5, 10]


def test_client_is_stalled_from_when_it_last_read_something() -> None:
    progress = ReadProgress()
    unread_at = {100: 90, 120: 90, 130: 80, 131: 0, 200: 90}
    assert [progress.stalled_for(unread, now) for now, unread in unread_at.items()] == [0, 20, 0, None, 0]


def test_size_of_a_head_is_that_on_the_wire() -> None:
    host, smallest = (b"host", b"test"), len(b"GET / HTTP/1.1\r\nhost: test\r\nx: \r\n\r\n")
    check_head(b"GET", b"/", "1.1", [host, (b"x", b"a" * (MAX_HEAD - smallest))])
    with pytest.raises(StatusError):
        check_head(b"GET", b"/", "1.1", [host, (b"x", b"a" * (MAX_HEAD + 1 - smallest))])


# -- Addresses


def refusal(host: str, port: int, **setting: str) -> str:
    with pytest.raises(ConfigurationError) as caught, listen(host, port, **setting):
        pass
    return str(caught.value)


def test_address_that_cannot_be_used_is_explained() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert refusal("127.0.0.1", port, setting="LOCALIDADES_MANAGEMENT_PORT") == (
            f"Can't listen on 127.0.0.1 port {port} (Address already in use): choose another --host or"
            " LOCALIDADES_MANAGEMENT_PORT."
        )
    for host, reason in (("192.0.2.1", "Cannot assign requested address"), (f"{'a' * 64}.mx", "not a host name")):
        assert refusal(host, 0) == f"Can't listen on {host} port 0 ({reason}): choose another --host or --port."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[127.0.0.1]"])
def test_address_may_be_in_brackets(host: str) -> None:
    with listen(host, 0) as listening, socket.create_connection((host.strip("[]"), listening.getsockname()[1])):
        pass
