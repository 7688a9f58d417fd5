"""Downloads that are cut off, left or read slowly: what they leave in memory, and who has to give way to whom."""

import asyncio
import gc
import json
import math
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from types import AsyncGeneratorType, FrameType
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from starlette.types import Message, Scope

from localidades_api.downloads.transfer import Download, Transfer
from localidades_api.http.clients import TRANSPORT
from tests.support.application import running_app
from tests.support.downloads import DOWNLOAD
from tests.support.machine import memory_of
from tests.support.postgres import new_database, run_sql
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import Answer, Live, ask, parse, serving

pytestmark = pytest.mark.tail

TEXTS = ["csv", "excel", "ndjson", "geojson"]
CODINGS = ["identity", "gzip", "br", "zstd"]
KINDS = [*product(TEXTS, CODINGS), ("parquet", "identity"), ("xlsx", "identity"), ("gpkg", "identity")]
HOLDING = (Download, AsyncGeneratorType, FrameType)  # what keeps a chunk or a compressor


# -- Memory


@contextmanager
def no_garbage() -> Iterator[None]:
    """Fail if something that holds a part of a transfer is left for the garbage collector."""
    gc.collect()
    gc.freeze()  # all that is there already: otherwise each collection takes a third of a second
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = Counter(type(one).__qualname__ for one in gc.garbage if is_part_of_transfer(one))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    assert not left


def is_part_of_transfer(one: object) -> bool:
    return isinstance(one, HOLDING) or type(one).__module__.startswith("starlette_compress")


class Reader:
    """A client of the application, at whose first chunk, which can be empty, something happens."""

    def __init__(self, app: FastAPI, url: str, ending: str) -> None:
        self._app = app
        self._url = url
        self._ending = ending
        self._asked = self._begun = False
        self._gone = asyncio.Event()
        self.is_whole = False
        self.size = 0

    async def read(self, query: str, coding: str) -> None:
        """Ask for a download, and read it until its end."""
        path, _, query = f"{DOWNLOAD}?{query}".partition("?")
        scope: Scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(b"accept-encoding", coding.encode())], "client": ("127.0.0.1", 1), "server": ("test", 80),
        }  # fmt: skip
        await self._app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._asked:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Message) -> None:
        if self._gone.is_set() or message["type"] != "http.response.body":
            return
        self.is_whole = not message.get("more_body", False)
        if self.is_whole:
            self._gone.set()
        if not self._begun:
            self._begun = True
            if self._ending == "client":
                self._gone.set()
            elif self._ending == "database":
                await run_sql(self._url, "ALTER TABLE municipalities RENAME TO elsewhere")
        self.size += len(message["body"])


@pytest.mark.parametrize("ending", ["whole", "client", "database"])
async def test_transfer_leaves_nothing_to_the_garbage_collector_however_it_ends(
    server: str,
    large: str,
    ending: str,
) -> None:
    part = "&municipio_id=1001" if ending == "whole" else ""
    with new_database(server, large) as url:
        async with running_app(url, pool_size=1, in_background=False) as app:
            await Reader(app, url, "whole").read("format=parquet&municipio_id=1001", "identity")
            for format_, coding in KINDS:
                with no_garbage():
                    reader = Reader(app, url, ending)
                    await reader.read(f"format={format_}{part}", coding)
                    assert reader.size or format_ == "gpkg"  # which is sent when its last record has been read
                    assert reader.is_whole == (ending == "whole")
                    await asyncio.sleep(0)  # the task that waits for the client to hang up has its end
                if ending == "database":
                    await run_sql(url, "ALTER TABLE elsewhere RENAME TO municipalities")


def leave(live: Live, format_: str, coding: str) -> bool:
    """Begin a download and hang up after its first bytes; return False if all downloads are taken."""
    address = urlsplit(live.base)
    enough = 1 if format_ == "gpkg" else 2000  # a GeoPackage has only its head sent until all of it is written
    with socket.create_connection((address.hostname, address.port), timeout=30) as client:
        lines = [
            f"GET {DOWNLOAD}?format={format_} HTTP/1.1",
            "Host: test",
            "Connection: close",
            f"Accept-Encoding: {coding}",
        ]
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        received = b""
        while len(received) < enough and (part := client.recv(2000)):
            received += part
        if received.startswith(b"HTTP/1.1 200"):
            return True
        while part := client.recv(2000):
            received += part
    assert json.loads(parse(received).body)["type"] == "/problems#downloads-full"
    return False


def test_memory_stays_small_however_many_downloads_are_left(server: str, large: str) -> None:
    """Each of them left up to 10 MB before."""
    with (
        new_database(server, large) as url,
        # On a busy machine, more would overlap in the last rounds than in the first.
        serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0", LOCALIDADES_MAX_DOWNLOADS="6") as live,
        ThreadPoolExecutor(6) as clients,
    ):

        def leave_each() -> int:
            # Those who have hung up have yet to be noticed.
            list(clients.map(lambda kind: eventually(lambda: leave(live, *kind)), KINDS * 2))
            return memory_of(live, "RssAnon")

        # From round to round the allocator holds 20 MB more or less, whatever is left, so the least of some rounds is
        # compared with the most of others: 4 MB at most of three runs. 266 downloads lie between, 60 kB for each.
        used = [leave_each() for _ in range(12)]
        assert min(used[-3:]) - max(used[:3]) <= 16 * 1024**2, used


# -- Who gives way


class Trickle:
    """Reads some bytes of each download now and then, in a thread of its own."""

    def __init__(self, downloads: list[socket.socket]) -> None:
        self._downloads = downloads
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            for download in self._downloads:
                download.recv(10)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


MOST = 8  # LOCALIDADES_MAX_DOWNLOADS, as it is unless it is set
LONG = 7.0  # seconds: it takes five to find out who is slow


def begin(live: Live, source: str = "127.0.0.1") -> socket.socket:
    """Ask for a download from an address of this machine's, and read the first of it."""
    address = urlsplit(live.base)
    reader = socket.create_connection((address.hostname, address.port), timeout=30, source_address=(source, 0))
    reader.sendall(f"GET {DOWNLOAD}?format=csv HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def is_cut_off(reader: socket.socket) -> bool:
    """Tell whether a download that is read to its end breaks off."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while part := reader.recv(1024**2):
            received += part
    return not received.endswith(b"\r\n0\r\n\r\n")


def ask_for_download(live: Live) -> Answer | None:
    """Ask for a download; return None if all downloads are taken."""
    answer = ask(live.base, f"{DOWNLOAD}?estado_id=1")
    if answer.status != 503:
        return answer
    assert json.loads(answer.body)["type"] == "/problems#downloads-full"
    return None


def await_download(live: Live) -> Answer:
    """Ask for a download, again and again while all are taken."""
    answer = eventually(lambda: ask_for_download(live))
    assert answer
    return answer


def assert_all_stay_taken(live: Live, seconds: float) -> None:
    """Fail if a download ends within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert ask_for_download(live) is None
        time.sleep(0.5)


def test_client_that_reads_gets_the_place_of_one_that_trickles(server: str, large: str) -> None:
    with (
        new_database(server, large) as url,
        serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0") as live,
        ExitStack() as stack,
    ):
        readers = [stack.enter_context(begin(live)) for _ in range(MOST)]
        with Trickle(readers):
            answer = await_download(live)
            assert answer.status == 200
            assert answer.body.endswith(b"\r\n0\r\n\r\n")
        with ThreadPoolExecutor(MOST) as pool:
            assert sum(pool.map(is_cut_off, readers)) == 1  # and its client sees it


def test_slow_reader_is_left_alone_while_there_is_room(server: str, large: str) -> None:
    settings = {"LOCALIDADES_MAX_DOWNLOADS": "2", "LOCALIDADES_MIN_DOWNLOAD_RATE": "1000000000"}  # everybody is slow
    with new_database(server, large) as url, serving(url, **settings) as live, begin(live) as slow:
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            received = slow.recv(100)
            assert ask(live.base, f"{DOWNLOAD}?municipio_id=1001").status == 200
        assert received
        assert not is_cut_off(slow)


def test_reader_is_left_alone_where_no_rate_is_too_slow(server: str, large: str) -> None:
    settings = {"LOCALIDADES_MAX_DOWNLOADS": "1", "LOCALIDADES_MIN_DOWNLOAD_RATE": "0"}
    with new_database(server, large) as url, serving(url, **settings) as live, begin(live) as slow:
        assert_all_stay_taken(live, LONG)
        assert not is_cut_off(slow)


@pytest.mark.timeout(600)
def test_client_with_the_most_downloads_is_sure_of_them_for_two_minutes_and_gives_way_then(
    server: str, large: str
) -> None:
    settings = {
        "LOCALIDADES_MAX_DOWNLOADS": "3",
        "LOCALIDADES_MIN_DOWNLOAD_RATE": "0",
        "LOCALIDADES_SEND_TIMEOUT": "600",
    }
    with new_database(server, large) as url, serving(url, **settings) as live, ExitStack() as stack:
        greedy = [stack.enter_context(begin(live, "127.0.0.2")) for _ in range(2)]
        modest = stack.enter_context(begin(live, "127.0.0.3"))
        assert_all_stay_taken(live, 110)
        assert await_download(live).status == 200
        with ThreadPoolExecutor(3) as pool:
            assert sum(pool.map(is_cut_off, greedy)) == 1
            assert not is_cut_off(modest)


class Buffered:
    """A transport with so much in its own buffer, on a socket whose buffer is the system's."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.size = 0

    def get_write_buffer_size(self) -> int:
        """Return what is in it."""
        return self.size

    def get_extra_info(self, _: str) -> socket.socket:
        """Return the socket."""
        return self._connection


async def test_client_that_the_service_kept_waiting_has_not_read_less_than_nothing() -> None:
    """While the service fetches a chunk nothing tells how much of the last one the system still holds."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(bytes(100_000))
        transport = Buffered(ours)
        sending = Transfer({"type": "http", "client": ("127.0.0.1", 1), TRANSPORT: transport})
        try:
            sending.sent = 100_000
            await asyncio.sleep(LONG)  # in which all was handed to the system
            assert sending.rate == math.inf
            sending.sent += 1000
            transport.size = 1000
            async with asyncio.timeout(PATIENCE):
                while sending.rate == math.inf:  # noqa: ASYNC110  # it is measured
                    await asyncio.sleep(0.1)
            assert sending.rate == 0
        finally:
            sending.end()
