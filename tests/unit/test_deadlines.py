"""Timeouts for heads and stalled clients."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest
import uvloop

from localidades_api.server.deadlines import ReadProgress, Timeouts, bytes_received, bytes_unread


def test_head_timeout_is_ten_seconds_at_most() -> None:
    assert [Timeouts(client, keep_alive=75).head for client in (5, 600)] == [5, 10]


def test_client_that_reads_nothing_is_stalled() -> None:
    progress = ReadProgress()
    assert [progress.stalled_for(unread, now) for unread, now in ((90, 100), (90, 120), (80, 130))] == [0, 20, 0]


def test_reading_everything_resets_the_stall_timeout() -> None:
    progress = ReadProgress()
    assert progress.stalled_for(90, 100) == 0
    assert progress.stalled_for(0, 101) is None
    assert progress.stalled_for(90, 200) == 0


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_closed_socket_has_nothing_queued(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def close_connection() -> tuple[int, int]:
        ended = asyncio.Event()
        made: list[asyncio.Transport] = []

        class Server(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transport.get_extra_info("socket")  # which uvloop keeps
                made.append(cast("asyncio.Transport", transport))  # uvloop's inherits from neither

            def connection_lost(self, _: Exception | None) -> None:
                ended.set()

        async with await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0) as server:
            _, client = await asyncio.open_connection(*server.sockets[0].getsockname())
            client.close()
            await ended.wait()
            await asyncio.sleep(0)
        [transport] = made
        return bytes_received(transport), bytes_unread(transport)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(close_connection()) == (0, 0)
