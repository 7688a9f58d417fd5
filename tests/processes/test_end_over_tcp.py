"""Shutdown while a statement runs on a database connected over TCP.

The driver cancels the statement over another connection, which must not outlive the event loop.
"""

import signal
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.postgres import locked, name_of
from tests.support.waiting import PATIENCE
from tests.support.wire import serving

# Python prints this if a process crashes.
CRASHES_ARE_PRINTED = {"PYTHONFAULTHANDLER": "1"}


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def over_tcp(seeded_database: str) -> Iterator[str]:
    """Yield the URL of the test's database on a TCP port that is forwarded to the server's socket."""
    options = parse_qs(urlsplit(seeded_database).query)
    path = f"{options['host'][0]}/.s.PGSQL.{options['port'][0]}"

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(path)
                answers = threading.Thread(target=pass_on, args=(server, self.request))
                answers.start()
                pass_on(self.request, server)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as relay:
        threading.Thread(target=relay.serve_forever).start()
        yield f"postgresql://postgres@127.0.0.1:{relay.server_address[1]}/{name_of(seeded_database)}"
        relay.shutdown()


@pytest.mark.parametrize(("workers", "number"), [("1", signal.SIGTERM), ("1", signal.SIGINT), ("2", signal.SIGTERM)])
def test_server_that_loads_its_pages_stops_without_a_crash(
    seeded_database: str, over_tcp: str, workers: str, number: signal.Signals
) -> None:
    with locked(seeded_database), serving(over_tcp, "--workers", workers, **CRASHES_ARE_PRINTED) as live:
        live.process.send_signal(number)
        assert live.process.wait(PATIENCE) == 0, live.output.read_text()
        assert "Fatal Python error" not in live.output.read_text()
