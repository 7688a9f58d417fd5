"""Probes, and the management port."""

import asyncio
import json
import re
import socket
import time
from contextlib import closing

import httpx
import pytest

from tests.support.application import await_answer, await_status, client_of, recorded_statements, running_app
from tests.support.metrics import await_metrics, read_metrics, value
from tests.support.postgres import execute, locked_in_thread, out_of_reach
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, ask, send, serving


@pytest.mark.direct("PgBouncer does not pass on why a login failed")
async def test_readiness_without_a_database_says_what_is_still_served(server: str, seeded_database: str) -> None:
    async with running_app(seeded_database, page_cache_bytes=1_000_000) as app, client_of(app) as client:

        async def figure(*name: str) -> float:
            return value(read_metrics((await client.get("/metrics")).text), *name)

        def is_refused(answer: httpx.Response) -> bool:
            """Return whether connections that were cut have been replaced by refused ones."""
            refused: bool = answer.json().get("detail") == "The database does not accept connections (55000)."
            return refused

        assert (await client.get("/readyz")).json() == {"release": "2020-01", "database": "ok"}
        await await_answer(client, "/metrics", lambda answer: "\nlocalidades_page_cache_pages 3.0\n" in answer.text)
        errors = await figure("database_errors_total", "55")
        with out_of_reach(server, seeded_database):
            answer = await await_answer(client, "/readyz", is_refused)
            problem = answer.json()
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert answer.headers["content-type"] == "application/problem+json"
            assert problem["type"] == "/problems#database-unavailable"
            assert problem["release"] == "2020-01"
            page = await client.get(f"{LOCALIDADES}?page=3")
            assert page.status_code == 200, "it is held"
            unread = f"{LOCALIDADES}?page_size=7"
            for target, tag, status in (
                (unread, "", 503), (unread, page.headers["etag"], 304), (f"{LOCALIDADES}?page=4", "", 404),
                ("/api/census/", "", 200),
            ):  # fmt: skip
                assert (await client.get(target, headers={"If-None-Match": tag})).status_code == status, target
            assert (await client.get("/livez")).status_code == 204
            assert await figure("database_errors_total", "55") > errors
            assert await figure("release_info", "2020-01") == 1

        await await_status(client, "/readyz", 200)


async def test_readiness_answers_in_time_even_if_the_database_hangs(seeded_database: str) -> None:
    options = {"database_timeout": 1.5, "release_poll": 60, "wants_names": False}
    async with running_app(seeded_database, **options) as app, client_of(app) as client:
        assert (await client.get("/readyz")).status_code == 200
        async with locked_in_thread(seeded_database, "releases"):
            assert (await await_status(client, "/readyz", 503)).json()["release"] == "2020-01"
        await await_status(client, "/readyz", 200)


@pytest.mark.parametrize("change", ["SELECT", "DELETE FROM current_release", "ALTER TABLE releases RENAME TO away"])
async def test_probes_share_one_read_and_its_outcome_for_a_second(seeded_database: str, change: str) -> None:
    execute(seeded_database, change)
    async with running_app(seeded_database, in_background=False, release_poll=60) as app, client_of(app) as client:

        async def is_read_again() -> bool:
            await client.get("/readyz")
            return len(statements) > reads

        with recorded_statements(app, of_releases=True) as statements:
            began = time.monotonic()
            for _ in range(10):
                await asyncio.gather(*(client.get(path) for path in ("/readyz", "/startupz") * 5))
            reads = len(statements)
            assert 1 <= reads <= 1 + time.monotonic() - began
            await eventually_async(is_read_again)


async def test_readiness_names_the_database_error(seeded_database: str) -> None:
    division = "SELECT * FROM releases_beneath WHERE 1 / (id - id) = 1"
    change = "ALTER TABLE releases RENAME TO releases_beneath", f"CREATE VIEW releases AS {division}"
    async with running_app(seeded_database, release_poll=60, wants_names=False) as app, client_of(app) as client:
        assert (await client.get("/readyz")).status_code == 200
        await asyncio.to_thread(execute, seeded_database, *change)  # lets running reads finish
        answer = await await_status(client, "/readyz", 503)
        assert answer.json()["release"] == "2020-01"
        assert answer.headers["content-type"] == "application/problem+json"
        assert re.search(r"An unexpected error \(22012\) .*; see the log", answer.json()["detail"]), answer.text


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.tail)])
def test_management_port_serves_probes_and_metrics_only(seeded_database: str, workers: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    with serving(seeded_database, "--workers", workers, LOCALIDADES_MANAGEMENT_PORT=str(port)) as live:
        management = f"http://127.0.0.1:{port}"
        assert f"probes   {management}/readyz" in live.output.read_text()
        assert [ask(management, path).status for path in ("/livez", "/readyz", "/metrics")] == [204, 200, 200]
        await_metrics(management, lambda _: ask(management, "/startupz").status == 200)
        for path in (LOCALIDADES, "/", "/docs", "/nothing", "/metrics/"):
            answer = ask(management, path)
            assert (answer.status, json.loads(answer.body)["type"]) == (404, "/problems#not-found"), path
        for path in ("/livez", "/readyz", "/startupz", "/metrics"):
            assert ask(live.base, path).status == 404, path
        for _ in range(10):
            assert ask(live.base, LOCALIDADES).status == 200
        held = f"GET {LOCALIDADES} HTTP/1.1\r\nHost: test\r\n\r\n"  # the same request on the other port
        for _ in range(10):
            sent = send(management, (held + held.replace("Host: test", "Host: test\r\nConnection: close")).encode())
            assert sent.startswith(b"HTTP/1.1 404 ")
        metrics = await_metrics(management, lambda metrics: value(metrics, "release_info", "2020-01") == 1)
        assert value(metrics, "database_connections_limit") > 0
