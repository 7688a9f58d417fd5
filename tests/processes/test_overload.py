"""Limits on requests and downloads in flight, and the queue for them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from itertools import count

import httpx
import pytest
from fastapi import FastAPI, Response

from localidades_api.database.pool import already_waited, may_use_database
from localidades_api.middleware import ConcurrencyLimit, RequestLimit
from tests.support.application import client_of
from tests.support.downloads import stalled
from tests.support.metrics import await_metrics, value
from tests.support.postgres import locked, new_database
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, Asking, Live, ask, connect, serving

pytestmark = pytest.mark.tail

HELD = f"{LOCALIDADES}?page=2"
DOWNLOAD = f"{LOCALIDADES}download/?format=csv"
_sizes = count(200)


def slow() -> str:
    """Return a new target, which needs the database."""
    return f"{LOCALIDADES}?page_size={next(_sizes)}"


@pytest.fixture(scope="module")
def narrow(server: str, seeded: str) -> Iterator[tuple[Live, str]]:
    """Yield a server that handles one request and queues four, and the URL of its database."""
    limits = {"LOCALIDADES_MAX_IN_FLIGHT": "1", "LOCALIDADES_DATABASE_TIMEOUT": "20"}
    with new_database(server, seeded) as url, serving(url, **limits) as live:
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
        assert ask(live.base, HELD).status == 200  # and the response is cached
        yield live, url


def test_request_beyond_the_limit_is_503_at_once(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with locked(url), ExitStack() as stack:
        first = Asking(stack, live, slow())
        assert first.waits()
        second, *_ = [Asking(stack, live, slow()) for _ in range(4)]
        refused = ask(live.base, f"{slow()}&page=2")
        assert refused.status == 503
        assert refused.one("retry-after") == "1"
        assert refused.one("content-type") == "application/problem+json"
        assert refused.one("allow") == "GET"
        assert refused.one("vary") == "Accept"
        assert refused.one("cache-control") == "no-store"
        assert refused.one("access-control-allow-origin") == "*"
        assert json.loads(refused.body)["type"] == "/problems#overloaded"
        # Requests that have waited for half a second are refused.
        assert second.answer().status == 503
        assert first.waits()
    # The response in progress comes as soon as it can.


def test_response_in_progress_completes_and_the_next_is_served(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with ExitStack() as stack:
        with locked(url):
            first = Asking(stack, live, slow())
            assert first.waits()
        assert len(json.loads(first.answer().body)["results"]) == 132
    assert ask(live.base, slow()).status == 200


def test_cached_responses_probes_and_static_files_are_never_refused(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with locked(url), ExitStack() as stack:
        for _ in range(5):
            Asking(stack, live, slow())
        assert ask(live.base, slow()).status == 503
        assert ask(live.base, HELD).status == 200
        assert ask(live.base, f"{LOCALIDADES}?page=3&estado_id=1").status == 503
        assert ask(live.base, "/livez").status == 204
        assert ask(live.base, "/readyz").status == 200
        assert ask(live.base, "/static/style.css").status == 200


def test_refusals_in_a_pipeline_keep_the_order(narrow: tuple[Live, str]) -> None:
    """A pipelined request has its own task and the same response."""
    live, url = narrow
    with locked(url), ExitStack() as stack:
        for _ in range(5):
            Asking(stack, live, slow())
        with connect(live.base) as connection:
            targets = [slow(), HELD, slow(), "/livez", HELD]
            connection.sendall("".join(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n" for target in targets).encode())
            received = b""
            while received.count(b"HTTP/1.1 ") < len(targets):
                piece = connection.recv(65536)
                assert piece, received
                received += piece
        statuses = [line[:3] for line in received.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [b"503", b"200", b"503", b"204", b"200"]


@pytest.mark.parametrize(
    ("headers", "target", "expected"),
    [
        (["Accept: text/html", "Accept-Language: es"], slow(), 'lang="es"'),
        ([], f"{slow()}&format=api&lang=en", 'lang="en"'),
        (["Accept: text/html"], f"{slow()}&format=json", '"type":"/problems#overloaded"'),
    ],
)
def test_refusal_has_the_requested_representation(
    narrow: tuple[Live, str], headers: list[str], target: str, expected: str
) -> None:
    live, url = narrow
    with locked(url), ExitStack() as stack:
        for _ in range(5):
            Asking(stack, live, slow())
        refused = Asking(stack, live, target, *headers).answer()
        assert refused.status == 503
        assert expected in refused.text
        assert int(refused.one("content-length")) == len(refused.body)
        head = ask(live.base, f"{LOCALIDADES}10010001/", *[("Accept", "text/html")] * bool(headers), method="HEAD")
        assert head.status == 503
        assert head.body == b""


def test_storm_of_disconnecting_clients_frees_every_slot(narrow: tuple[Live, str]) -> None:
    live, url = narrow
    with locked(url):
        for _ in range(300):
            with connect(live.base) as connection:
                connection.sendall(f"GET {slow()} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    eventually(lambda: ask(live.base, slow()).status == 200)
    assert [ask(live.base, slow()).status for _ in range(5)] == [200] * 5


def test_downloads_have_a_separate_limit(server: str, large: str) -> None:
    limits = {"LOCALIDADES_MAX_IN_FLIGHT": "1", "LOCALIDADES_MAX_TRANSFERS": "2"}
    with new_database(server, large) as url, serving(url, LOCALIDADES_PAGE_CACHE_BYTES="0", **limits) as live:
        with stalled(live.base, "format=csv"), stalled(live.base, "format=ndjson", "gzip"):
            assert ask(live.base, slow()).status == 200
            refused = ask(live.base, DOWNLOAD)
            assert refused.status == 503
            assert refused.one("retry-after") == "5"
            problem = json.loads(refused.body)
            assert problem["type"] == "/problems#transfers-full"
            assert problem["detail"] == "All places for files and rows are taken; everything else is still served."
            assert "Traceback" not in live.output.read_text()
        eventually(lambda: ask(live.base, f"{DOWNLOAD}&estado_id=1").status == 200)
        for _ in range(3):
            assert ask(live.base, f"{DOWNLOAD}&estado_id=1").status == 200


def test_failed_or_abandoned_download_frees_its_slot(server: str, seeded: str) -> None:
    limits = {"LOCALIDADES_MAX_TRANSFERS": "1", "LOCALIDADES_DATABASE_TIMEOUT": "2"}
    with new_database(server, seeded) as url, serving(url, **limits) as live:
        with locked(url):
            assert json.loads(ask(live.base, DOWNLOAD).body)["type"] == "/problems#database-unavailable"
        assert ask(live.base, DOWNLOAD, method="HEAD").status == 200
        assert ask(live.base, DOWNLOAD).status == 200


# -- The queue


class Held:
    """An application that responds on demand and records how long each request has waited."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.waited: list[float] = []

    async def answer(self) -> Response:
        """Respond once allowed."""
        self.waited.append(already_waited.get())
        if not may_use_database.get():
            return Response(status_code=503)
        await self.may_answer.wait()
        return Response()


@asynccontextmanager
async def one_in_flight() -> AsyncIterator[tuple[Held, RequestLimit, httpx.AsyncClient]]:
    """Yield an application with one request in flight and room for four in the queue."""
    held, limit = Held(), RequestLimit(max_in_flight=1)
    app = FastAPI()
    app.add_api_route("/", held.answer)
    app.add_middleware(ConcurrencyLimit, limit=limit)
    async with client_of(app) as client:
        first = asyncio.create_task(client.get("/"))
        while not held.waited:  # noqa: ASYNC110  # an attribute has no event
            await asyncio.sleep(0)
        yield held, limit, client
        held.may_answer.set()
        assert (await first).status_code == 200


def test_cached_page_is_served_while_the_database_hangs(narrow: tuple[Live, str]) -> None:
    """A request that gets no slot in time continues without the database."""
    live, url = narrow
    with locked(url), ExitStack() as stack:
        Asking(stack, live, slow())
        for target in (f"{LOCALIDADES}?page=1", f"{LOCALIDADES}?page=3&format=json&release=2020-01"):
            assert ask(live.base, target).status == 200
        refused = ask(live.base, slow())
        assert (refused.status, json.loads(refused.body)["type"]) == (503, "/problems#overloaded")


async def test_request_queues_for_half_a_second() -> None:
    """The request continues without the database, as another process would serve it sooner."""
    async with one_in_flight() as (_, _, client):
        sooner, asked = asyncio.create_task(asyncio.sleep(0.45)), asyncio.create_task(client.get("/"))
        await sooner
        assert not asked.done()
        assert (await asyncio.wait_for(asked, 5)).status_code == 503


async def test_full_queue_refuses_at_once() -> None:
    async with one_in_flight() as (held, limit, client):
        waiting = [asyncio.create_task(client.get("/")) for _ in range(4)]
        while limit.queued < 4:  # noqa: ASYNC110  # an attribute has no event
            await asyncio.sleep(0)
        assert (await client.get("/")).status_code == 503
        assert not any(one.done() for one in waiting)
        held.may_answer.set()
        assert [(await one).status_code for one in waiting] == [200] * 4


async def test_time_in_the_queue_counts_towards_the_deadline() -> None:
    """It counts towards the database timeout."""
    async with one_in_flight() as (held, limit, client):
        second = asyncio.create_task(client.get("/"))
        while limit.queued == 0:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0)
        held.may_answer.set()
        assert (await second).status_code == 200
        assert 0 == held.waited[0] < held.waited[1]


def test_client_that_keeps_sending_is_disconnected(narrow: tuple[Live, str]) -> None:
    """A response may take minutes, and a socket left readable would keep a processor busy."""
    live, url = narrow
    with locked(url), connect(live.base) as connection:
        connection.sendall(f"GET {slow()} HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000\r\n\r\n".encode())
        sent, most = 0, 64 * 1024**2  # a megabyte, and the system's buffers
        with suppress(ConnectionError):
            while sent < most:
                sent += connection.send(bytes(64 * 1024))
        assert sent < most
