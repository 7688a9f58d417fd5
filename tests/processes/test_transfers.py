"""Long transfers: their limits, and the memory after aborted and abandoned ones."""

import asyncio
import gc
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import product
from types import AsyncGeneratorType, FrameType
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from starlette.types import Message, Scope

from localidades_api.downloads.response import Download
from tests.support.application import running_app
from tests.support.downloads import DOWNLOAD
from tests.support.machine import memory_of
from tests.support.metrics import await_metrics, value
from tests.support.postgres import new_database, run_sql
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Live, ask, await_names, connect, parse, serving

pytestmark = pytest.mark.tail

TEXTS = ["csv", "excel", "ndjson", "geojson"]
CODINGS = ["identity", "gzip", "br", "zstd"]
KINDS = [*product(TEXTS, CODINGS), ("parquet", "identity"), ("xlsx", "identity"), ("gpkg", "identity")]
MATCH = f"{LOCALIDADES}match/"
ROW = b'{"nombre":"Lugar 1"}\n'
HOLDING = (Download, AsyncGeneratorType, FrameType)  # objects that hold a chunk or a compressor


# -- Memory


@contextmanager
def no_garbage() -> Iterator[None]:
    """Fail if a part of a transfer is left for the garbage collector."""
    gc.collect()
    gc.freeze()  # all existing objects: otherwise each collection takes a third of a second
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
    """A client of the application with a callback at its first chunk, which may be empty."""

    def __init__(self, app: FastAPI, url: str, ending: str) -> None:
        self._app = app
        self._url = url
        self._ending = ending
        self._asked = self._begun = False
        self._gone = asyncio.Event()
        self.is_whole = False
        self.size = 0

    async def read(self, query: str, coding: str) -> None:
        """Request a download and read it to the end."""
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
            elif self._ending == "timeout":
                await asyncio.Event().wait()
            elif self._ending == "database":
                await run_sql(self._url, "ALTER TABLE municipalities RENAME TO elsewhere")
        self.size += len(message["body"])


@pytest.mark.parametrize("ending", ["whole", "client", "database", "timeout"])
async def test_transfers_leave_no_reference_cycles(
    server: str,
    large: str,
    ending: str,
) -> None:
    part = "&municipio_id=1001" if ending in {"whole", "timeout"} else ""
    limit = 0.3 if ending == "timeout" else PATIENCE
    with new_database(server, large) as url:
        async with running_app(url, pool_size=1, in_background=False, transfer_timeout=limit) as app:
            await Reader(app, url, "whole").read("format=parquet&municipio_id=1001", "identity")
            for format_, coding in KINDS:
                with no_garbage():
                    reader = Reader(app, url, ending)
                    await reader.read(f"format={format_}{part}", coding)
                    # A GeoPackage is sent once its last record is read.
                    assert reader.size or format_ == "gpkg" or ending == "timeout"
                    assert reader.is_whole == (ending == "whole")
                    await asyncio.sleep(0)  # the task that waits for the client's disconnect has ended
                if ending == "database":
                    await run_sql(url, "ALTER TABLE elsewhere RENAME TO municipalities")


def leave(live: Live, format_: str, coding: str) -> bool:
    """Begin a download and disconnect after its first bytes; return False if all slots are taken."""
    address = urlsplit(live.base)
    enough = 1 if format_ == "gpkg" else 2000  # of a GeoPackage, only the head is sent until the file is complete
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
            list(clients.map(lambda kind: eventually(lambda: leave(live, *kind)), KINDS * 2))
            return memory_of(live, "RssAnon")

        # The allocator's memory varies by 20 MB from round to round, so the least of some rounds is
        # compared with the most of others: 4 MB at most in three runs, with 266 downloads between, 60 kB for each.
        used = [leave_each() for _ in range(12)]
        assert min(used[-3:]) - max(used[:3]) <= 16 * 1024**2, used


# -- Limits


SETTINGS = {
    "LOCALIDADES_MAX_TRANSFERS": "2",
    "LOCALIDADES_TRANSFER_TIMEOUT": "5",
    "LOCALIDADES_CLIENT_TIMEOUT": "600",  # or silent readers are disconnected for another reason
}


@pytest.fixture(scope="module")
def brief(server: str, large: str) -> Iterator[Live]:
    """Yield a server that allows two transfers of five seconds."""
    with new_database(server, large) as url, serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0", **SETTINGS) as live:
        await_names(live.base)
        yield live


def begin_download(live: Live) -> socket.socket:
    """Request a file and read its first bytes."""
    reader = connect(live.base, receive_buffer=4096)
    reader.sendall(f"GET {DOWNLOAD}?format=csv HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    assert reader.recv(12) == b"HTTP/1.1 200"
    return reader


def begin_rows(live: Live) -> socket.socket:
    """Send more rows than a connection can buffer answers for, and read the first answers."""
    sender = connect(live.base, receive_buffer=4096)
    rows = ROW * 100_000
    head = f"POST {MATCH} HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-ndjson\r\n"
    sender.sendall(f"{head}Content-Length: {len(rows)}\r\n\r\n".encode() + rows)
    assert sender.recv(12) == b"HTTP/1.1 200"
    return sender


Begin = Callable[[Live], socket.socket]


class Trickle:
    """Reads some bytes of each response now and then, in a thread."""

    def __init__(self, answers: list[socket.socket]) -> None:
        self._answers = answers
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._ended.wait(0.2):
            for answer in self._answers:
                with suppress(TimeoutError, ConnectionResetError):
                    answer.settimeout(0.1)
                    answer.recv(10)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def is_cut_off(reader: socket.socket) -> bool:
    """Return whether a response breaks off before its end."""
    reader.settimeout(PATIENCE)
    received = bytearray()
    with suppress(ConnectionResetError):
        while part := reader.recv(1024**2):
            received += part
    return not received.endswith(b"\r\n0\r\n\r\n")


def is_refused(live: Live, target: str, **options: Any) -> bool:  # noqa: ANN401  # passed on
    """Return whether all slots are taken."""
    answer = ask(live.base, target, ("Content-Type", "application/x-ndjson"), **options)
    if answer.status == 200:
        return False
    assert (answer.status, json.loads(answer.body)["type"]) == (503, "/problems#transfers-full")
    assert answer.one("retry-after") == "5"
    return True


@pytest.mark.parametrize("begins", [(begin_download, begin_download), (begin_download, begin_rows)])
def test_slow_client_is_eventually_disconnected(brief: Live, begins: tuple[Begin, Begin]) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(begin(brief)) for begin in begins]
        with Trickle(slow):
            assert is_refused(brief, f"{DOWNLOAD}?estado_id=1")
            assert is_refused(brief, MATCH, method="POST", body=ROW)
            assert ask(brief.base, f"{LOCALIDADES}?page=2").status == 200
            eventually(lambda: not is_refused(brief, f"{DOWNLOAD}?municipio_id=1001"))
            eventually(lambda: not is_refused(brief, MATCH, method="POST", body=ROW))
        assert all(map(is_cut_off, slow))
    assert "ERROR" not in brief.output.read_text()


def test_connection_that_reads_nothing_is_closed_with_its_transfer(brief: Live) -> None:
    with begin_download(brief):
        await_metrics(brief.base, lambda metrics: value(metrics, "connections") == 2)  # one scrapes metrics
        await_metrics(brief.base, lambda metrics: value(metrics, "connections") == 1)
        assert not is_refused(brief, f"{DOWNLOAD}?municipio_id=1001")


def test_disconnected_client_frees_its_download_slot(server: str, large: str) -> None:
    with new_database(server, large) as url, serving(url, LOCALIDADES_MAX_TRANSFERS="1") as live:
        with begin_download(live):
            assert is_refused(live, DOWNLOAD)
        eventually(lambda: not is_refused(live, f"{DOWNLOAD}?municipio_id=1001"))
