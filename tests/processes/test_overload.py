"""Limits on requests in flight and in the queue, on downloads and rows, and on connections."""

import json
import re
import resource
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count, product

import pytest
from sqlalchemy import text

from localidades_api.database.pool import Database
from localidades_api.errors import DatabaseUnavailableError
from tests.support.downloads import DOWNLOAD
from tests.support.machine import memory_of
from tests.support.metrics import await_metrics, scrape, value
from tests.support.postgres import locked, new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    COMMAND,
    LOCALIDADES,
    Asking,
    Live,
    ask,
    await_names,
    connect,
    final_statuses,
    head,
    parse,
    read_answer,
    read_to_the_end,
    serving,
)

pytestmark = pytest.mark.tail

HELD = f"{LOCALIDADES}?page=2"
MATCH = f"{LOCALIDADES}match/"
ROW = b'{"nombre":"Lugar 1"}\n'
NDJSON = ("Content-Type", "application/x-ndjson")
_sizes = count(200)


def slow() -> str:
    """Return a new target, which needs the database."""
    return f"{LOCALIDADES}?page_size={next(_sizes)}"


# -- Requests


@pytest.fixture(scope="module")
def narrow(server: str, seeded: str) -> Iterator[tuple[Live, str]]:
    """Yield a server that handles one request and queues four, and the URL of its database."""
    limits = {"LOCALIDADES_MAX_IN_FLIGHT": "1", "LOCALIDADES_DATABASE_TIMEOUT": "20"}
    with new_database(server, seeded) as url, serving(url, **limits) as live:
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
        assert ask(live.base, HELD).status == 200  # and the response is cached
        yield live, url


@contextmanager
def full(live: Live, url: str) -> Iterator[list[Asking]]:
    """Hold the database, and fill the place and the queue."""
    with locked(url), ExitStack() as stack:
        first = Asking(stack, live, slow())
        assert first.waits()
        yield [first, *(Asking(stack, live, slow()) for _ in range(4))]


def test_request_beyond_the_limit_is_503_at_once(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with full(live, url) as (first, second, *_):
        refused = ask(live.base, slow())
        expected = {"retry-after": "1", "content-type": "application/problem+json", "allow": "GET", "vary": "Accept",
                    "cache-control": "no-store", "access-control-allow-origin": "*"}  # fmt: skip
        assert refused.status == 503
        assert {name: refused.one(name) for name in expected} == expected
        assert json.loads(refused.body)["type"] == "/problems#overloaded"
        html = ask(live.base, slow(), ("Accept", "text/html"), ("Accept-Language", "es"))
        assert (html.status, int(html.one("content-length"))) == (503, len(html.body))
        assert b'lang="es"' in html.body
        head_ = ask(live.base, f"{LOCALIDADES}10010001/", method="HEAD")
        assert (head_.status, head_.body) == (503, b"")
        # Requests that have waited for half a second are refused.
        assert second.answer().status == 503
        assert first.waits()


def test_response_in_progress_completes_and_the_next_is_served(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with ExitStack() as stack:
        with locked(url):
            first, second = (Asking(stack, live, slow()) for _ in "12")
            assert first.waits()
        assert [len(json.loads(asking.answer().body)["results"]) for asking in (first, second)] == [132, 132]


def test_cached_responses_probes_and_static_files_are_never_refused(narrow: tuple[Live, str]) -> None:
    """A pipeline keeps its order."""
    live, url = narrow
    targets = {slow(): 503, HELD: 200, "/livez": 204, "/readyz": 200, "/static/style.css": 200}
    with full(live, url):
        assert {target: ask(live.base, target).status for target in targets} == targets
    with full(live, url), connect(live.base) as connection:
        asked = b"".join(map(head, [slow(), HELD, slow(), "/livez"])) + head(HELD, "Connection: close")
        connection.sendall(asked)
        assert final_statuses(read_to_the_end(connection)) == [503, 200, 503, 204, 200]


def test_request_that_gets_no_place_in_time_continues_without_the_database(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    targets = {f"{LOCALIDADES}?page=1": 200, slow(): 503}  # a page in memory, and one of the database
    with locked(url), ExitStack() as stack:
        assert Asking(stack, live, slow()).waits()
        assert {target: ask(live.base, target).status for target in targets} == targets
        refused = ask(live.base, f"{LOCALIDADES}nearest/", NDJSON, method="POST", body=b'{"lat":21,"lon":-102}')
        assert json.loads(refused.body)["type"] == "/problems#overloaded"


def test_storm_of_disconnecting_clients_frees_every_place(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with locked(url):
        for _ in range(300):
            with connect(live.base) as connection:
                connection.sendall(head(slow()))
    eventually(lambda: ask(live.base, slow()).status == 200)
    assert [ask(live.base, slow()).status for _ in range(5)] == [200] * 5


# -- Downloads and rows


@pytest.fixture(scope="module")
def brief(server: str, large: str) -> Iterator[Live]:
    """Yield a server that allows two transfers of five seconds."""
    with new_database(server, large) as url, serving(
        url,
        LOCALIDADES_PAGE_CACHE_BYTES="0",
        LOCALIDADES_MAX_IN_FLIGHT="1",
        LOCALIDADES_MAX_TRANSFERS="2",
        LOCALIDADES_TRANSFER_TIMEOUT="5",
        LOCALIDADES_CLIENT_TIMEOUT="600",  # or silent readers are disconnected for another reason
    ) as live:  # fmt: skip
        await_names(live.base)
        yield live
        assert "ERROR" not in live.output.read_text()


def begin_download(live: Live) -> socket.socket:
    """Request a file and read its first bytes."""
    reader = connect(live.base, receive_buffer=4096)
    reader.sendall(head(f"{DOWNLOAD}?format=csv", "Connection: close"))
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def begin_rows(live: Live) -> socket.socket:
    """Send more rows than a connection can buffer answers for, and read the first answers."""
    sender = connect(live.base, receive_buffer=4096)
    rows = ROW * 100_000
    sender.sendall(head(MATCH, ": ".join(NDJSON), f"Content-Length: {len(rows)}", method="POST") + rows)
    assert sender.recv(12) == b"HTTP/1.1 200"
    return sender


def is_refused(live: Live, target: str, body: bytes = b"") -> bool:
    """Return whether all places are taken."""
    answer = ask(live.base, target, NDJSON, method="POST" if body else "GET", body=body)
    if answer.status == 200:
        return False
    problem = json.loads(answer.body)
    assert (answer.status, answer.one("retry-after"), problem["type"]) == (503, "5", "/problems#transfers-full")
    assert problem["detail"] == "All places for files and rows are taken; everything else is still served."
    return True


@pytest.mark.parametrize("second", [begin_download, begin_rows])
def test_slow_client_is_eventually_disconnected(brief: Live, second: Callable[[Live], socket.socket]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(begin(brief)) for begin in (begin_download, second)]
        assert is_refused(brief, f"{DOWNLOAD}?estado_id=1")
        assert is_refused(brief, MATCH, ROW)
        assert ask(brief.base, slow()).status == 200
        deadline = time.monotonic() + PATIENCE
        while is_refused(brief, f"{DOWNLOAD}?municipio_id=1001") or is_refused(brief, MATCH, ROW):
            assert time.monotonic() < deadline
            for client in clients:  # they read some bytes now and then
                with suppress(TimeoutError, ConnectionResetError):
                    client.settimeout(0.1)
                    client.recv(10)
        for client in clients:
            client.settimeout(PATIENCE)
            assert not read_to_the_end(client).endswith(b"\r\n0\r\n\r\n")


def test_failed_or_abandoned_download_frees_its_place(server: str, large: str) -> None:
    limits = {"LOCALIDADES_MAX_TRANSFERS": "1", "LOCALIDADES_DATABASE_TIMEOUT": "2"}
    with new_database(server, large) as url, serving(url, **limits) as live:
        with locked(url):
            assert json.loads(ask(live.base, DOWNLOAD).body)["type"] == "/problems#database-unavailable"
        assert ask(live.base, DOWNLOAD, method="HEAD").status == 200
        with begin_download(live):
            assert is_refused(live, DOWNLOAD)
        eventually(lambda: not is_refused(live, f"{DOWNLOAD}?municipio_id=1001"))


KINDS = [*product(["csv", "ndjson", "geojson"], ["identity", "gzip", "br", "zstd"]),
         ("parquet", "identity"), ("xlsx", "identity"), ("gpkg", "identity")]  # fmt: skip


def leave(live: Live, format_: str, coding: str) -> bool:
    """Begin a download and disconnect after its first bytes; return False if all places are taken."""
    enough = 1 if format_ == "gpkg" else 2000  # of a GeoPackage, only the head is sent until the file is complete
    with connect(live.base) as client:
        client.sendall(head(f"{DOWNLOAD}?format={format_}", "Connection: close", f"Accept-Encoding: {coding}"))
        received = b""
        while len(received) < enough and (part := client.recv(2000)):
            received += part
        if received.startswith(b"HTTP/1.1 200"):
            return True
        received += read_to_the_end(client)
    assert json.loads(parse(received).body)["type"] == "/problems#transfers-full"
    return False


def test_abandoned_downloads_do_not_grow_memory(server: str, large: str) -> None:
    """A regression test: each left up to 10 MB."""
    with (
        new_database(server, large) as url,
        # On a busy machine, more would overlap in later rounds.
        serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0", LOCALIDADES_MAX_TRANSFERS="6") as live,
        ThreadPoolExecutor(6) as clients,
    ):

        def leave_each() -> int:
            # The disconnects haven't been noticed yet.
            list(clients.map(lambda kind: eventually(lambda: leave(live, *kind)), KINDS))
            return memory_of(live, "RssAnon")

        # The allocator's memory varies by 20 MB from round to round, so the least of some rounds is
        # compared with the most of others.
        used = [leave_each() for _ in range(10)]
        assert min(used[-3:]) - max(used[:3]) <= 16 * 1024**2, used


# -- Connections: the idlest are closed, and probes are always answered

FILES = 256  # descriptors of the process, and a pool of 10 connections to the database
LIMIT = 256 - 96 - 16 - 2 * 10
CACHED, FROM_DATABASE = head(HELD), head(f"{LOCALIDADES}10010001/")


def is_served(connection: socket.socket, request: bytes = CACHED) -> bool:
    connection.sendall(request)
    return parse(read_answer(connection)).status == 200


def is_open(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


def await_line(live: Live, limit: int) -> tuple[int, int]:
    """Return the numbers of closed and refused connections in the log."""
    line = rf"Reached the limit of {limit} connections: closed (\d+) idle ones to make room, refused (\d+)\."
    said = eventually(lambda: re.search(line, live.output.read_text()), otherwise=live.output.read_text)
    assert said is not None
    return int(said[1]), int(said[2])


@pytest.mark.parametrize("request_", [CACHED, FROM_DATABASE])
def test_limit_closes_the_longest_idle_connections(seeded_database: str, request_: bytes) -> None:
    began, wanted = time.monotonic(), FILES + 44
    limited = ("sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *COMMAND)
    with serving(seeded_database, command=limited) as live, ExitStack() as stack:
        used, connections = stack.enter_context(connect(live.base)), []
        for _ in range(wanted):
            connections.append(stack.enter_context(connect(live.base)))
            assert is_served(connections[-1], request_)
            assert is_served(used)  # the oldest, but never idle for long
        targets = ("/livez", "/readyz", f"{LOCALIDADES}10010002/")
        assert [ask(live.base, target).status for target in targets] == [204, 200, 200]
        still_open = [is_open(connection) for connection in connections]
        assert LIMIT - 8 < sum(still_open) <= LIMIT
        assert not any(still_open[: wanted - LIMIT - 8])  # the event loop's clock ticks in milliseconds
        assert all(still_open[8 - LIMIT :])
        metrics = scrape(live.base)
        assert value(metrics, "connections_limit") == LIMIT >= value(metrics, "connections")
        assert value(metrics, "connections_closed_total", "idle") >= wanted - LIMIT
        assert value(metrics, "connections_closed_total", "refused") == 0
        closed, refused = await_line(live, LIMIT)
        assert closed > 0 == refused
        log = live.output.read_text()
        assert log.count("Reached the limit of") <= 2 + (time.monotonic() - began) // 10
        assert "ERROR" not in log.upper(), log


def test_probes_are_answered_at_the_connection_limit(seeded_database: str) -> None:
    """Connections with unfinished or unread responses stay open."""
    limits = {"LOCALIDADES_MAX_CONNECTIONS": "4", "LOCALIDADES_CLIENT_TIMEOUT": "600"}
    with serving(seeded_database, **limits) as live, ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(connect(live.base, receive_buffer=4096))
            connection.settimeout(0.5)
            with suppress(TimeoutError):
                connection.sendall(head(f"{LOCALIDADES}?page_size=1000") * 900)
        for _ in range(10):
            assert [ask(live.base, path).status for path in ("/livez", "/readyz", "/metrics")] == [204, 200, 200]
            refused = ask(live.base, HELD)
            assert (refused.status, refused.one("retry-after"), refused.one("connection")) == (503, "1", "close")
            assert b"/problems#overloaded" in refused.body
        metrics = scrape(live.base)
        assert value(metrics, "connections_closed_total", "refused") == 10
        assert value(metrics, "requests_refused_total", "overloaded") == 10
        closed, refusals = await_line(live, 4)
        assert closed == 0 < refusals


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
