"""More connections than file descriptors: the idlest are closed, and probes are always answered."""

import re
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import text

from localidades_api.database.pool import Database
from localidades_api.errors import DatabaseUnavailableError
from tests.support.waiting import eventually
from tests.support.wire import COMMAND, LOCALIDADES, Live, ask, connect, environment, parse, read_answer, run, serving

pytestmark = pytest.mark.tail

FILES = 256  # descriptors of the process, and a pool of 10 connections to the database
LIMIT = 256 - 96 - 16 - 2 * 10
REQUEST = f"GET {LOCALIDADES}?page=2 HTTP/1.1\r\nHost: test\r\n\r\n".encode()
LARGE = REQUEST.replace(b"?page=2", b"?page_size=1000")
FROM_DATABASE = f"GET {LOCALIDADES}10010001/ HTTP/1.1\r\nHost: test\r\n\r\n".encode()


@contextmanager
def keeping(base: str, count: int, request: bytes | None) -> Iterator[list[socket.socket]]:
    """Open connections one after the other, send a request on each, and keep them open."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(connect(base))
            if request:
                connection.sendall(request)
                assert parse(read_answer(connection)).status == 200
            connections.append(connection)
        yield connections


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def metric(base: str, name: str) -> float:
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", ask(base, "/metrics").body.decode(), re.MULTILINE)
    return float(value)


def await_line(live: Live, limit: int) -> tuple[int, int, str]:
    """Return the numbers of closed and refused connections in the log, and the log."""
    line = rf"Reached the limit of {limit} connections: closed (\d+) idle ones to make room, refused (\d+)\."
    said = eventually(lambda: re.search(line, live.output.read_text()), otherwise=live.output.read_text)
    assert said is not None
    return int(said[1]), int(said[2]), said.string


@pytest.mark.parametrize("request_", [REQUEST, FROM_DATABASE])
def test_limit_closes_the_longest_idle_connections(seeded_database: str, request_: bytes) -> None:
    began = time.monotonic()
    with serving(seeded_database, files=str(FILES)) as live, keeping(live.base, FILES + 44, request_) as connections:
        assert ask(live.base, "/livez").status == 204
        assert ask(live.base, "/readyz").status == 200
        assert ask(live.base, f"{LOCALIDADES}10010002/").status == 200
        still_open = [is_open(connection) for connection in connections]
        assert LIMIT - 8 < sum(still_open) <= LIMIT
        assert not any(still_open[: FILES + 44 - LIMIT - 8])  # the event loop's clock ticks in milliseconds
        assert all(still_open[8 - LIMIT :])
        assert metric(live.base, "localidades_connections_limit") == LIMIT
        assert metric(live.base, "localidades_connections") <= LIMIT
        assert metric(live.base, 'localidades_connections_closed_total{reason="idle"}') >= FILES + 44 - LIMIT
        assert metric(live.base, 'localidades_connections_closed_total{reason="refused"}') == 0
        closed, refused, log = await_line(live, LIMIT)
        assert closed > 0
        assert refused == 0
        assert log.count("Reached the limit of") <= 2 + (time.monotonic() - began) // 10
        assert "ERROR" not in log.upper(), log


def test_used_connection_is_not_closed(seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_MAX_CONNECTIONS="10") as live, connect(live.base) as used:
        for _ in range(30):
            used.sendall(REQUEST)
            assert parse(read_answer(used)).status == 200
            with keeping(live.base, 5, REQUEST):
                pass
        assert is_open(used)


def test_silent_flood_does_not_disconnect_active_clients(seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_MAX_CONNECTIONS="50") as live, connect(live.base) as used:
        used.sendall(REQUEST)
        assert parse(read_answer(used)).status == 200
        with keeping(live.base, 200, None):
            used.sendall(REQUEST)
            assert parse(read_answer(used)).status == 200


def test_probes_are_answered_at_the_connection_limit(seeded_database: str) -> None:
    """Connections with unfinished or unread responses stay open."""
    with serving(seeded_database, LOCALIDADES_MAX_CONNECTIONS="4") as live, ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(connect(live.base))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(0.5)
            with suppress(TimeoutError):
                connection.sendall(LARGE * 900)
        for _ in range(40):
            for path, status in (("/livez", 204), ("/readyz", 200), ("/metrics", 200)):
                assert ask(live.base, path).status == status
            refused = ask(live.base, f"{LOCALIDADES}?page=2")
            assert refused.status == 503
            assert refused.one("retry-after") == "1"
            assert refused.one("connection") == "close"
            assert b"/problems#overloaded" in refused.body
        assert metric(live.base, 'localidades_connections_closed_total{reason="refused"}') == 40
        assert metric(live.base, 'localidades_requests_refused_total{reason="overloaded"}') == 40
        closed, refusals, _ = await_line(live, 4)
        assert closed == 0
        assert refusals > 0


def test_soft_limit_of_open_files_is_raised(seeded_database: str) -> None:
    with serving(seeded_database, files="-S 200", command=COMMAND, LOCALIDADES_MAX_CONNECTIONS="300") as live:
        limits = Path(f"/proc/{live.process.pid}/limits").read_text()
        assert re.findall(r"Max open files +(\d+)", limits) == [str(300 + 96 + 16 + 20)]
        assert metric(live.base, "localidades_connections_limit") == 300


@pytest.mark.parametrize(
    ("files", "settings", "room", "remedy"),
    [("100", {}, 0, "LOCALIDADES_POOL_SIZE"),
     ("200", {"LOCALIDADES_MAX_CONNECTIONS": "100"}, 68, "LOCALIDADES_MAX_CONNECTIONS")],
)  # fmt: skip
def test_impossible_limit_is_refused_at_startup(files: str, settings: dict[str, str], room: int, remedy: str) -> None:
    env = environment("postgresql://nobody@127.0.0.1:1/none", **settings)
    ended = run("serve", "--port", "0", env=env, files=files)
    assert ended.returncode == 1
    told = f"({files}) leaves room for only {room} client connections: raise it (ulimit -n), or lower {remedy}."
    assert told in ended.stderr


async def test_process_without_a_descriptor_does_not_blame_the_database(migrated: str) -> None:
    database = Database.for_reading(migrated, pool_size=1, timeout=5)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as lowest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno(), hard))
    try:
        with pytest.raises(DatabaseUnavailableError, match="too many open files") as raised:
            await database.fetch(text("SELECT 1"))
        assert raised.value.detail == "The service has run out of file descriptors and can't reach the database."
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [list(row) for row in await database.fetch(text("SELECT 1"))] == [[1]]
    await database.dispose()
