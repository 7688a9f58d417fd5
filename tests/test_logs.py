"""The log of a real server: one format, a line a request, causes of errors, and nothing of what clients send."""

import json
import logging
import re
import time
from datetime import datetime
from typing import Any

import pytest

from localidades_api.logs import ConsoleFormatter, JsonFormatter
from tests.conftest import LOCALIDADES, execute, out_of_reach
from tests.wire import Live, ask, send, serving

SECRET = "s3cret"  # noqa: S105  # what must not be found
OF_A_REQUEST = {"time", "level", "id", "method", "operation", "status", "milliseconds", "release", "bytes"}


def records(live: Live) -> list[dict[str, Any]]:
    """Return every line of the log, each an object, after what the command prints first."""
    time.sleep(0.6)
    lines = live.output.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("{"))
    return [json.loads(line) for line in lines[start:]]


def requests(live: Live) -> list[dict[str, Any]]:
    return [record for record in records(live) if "operation" in record and record["operation"] != "get_readiness"]


def end(live: Live) -> str:
    live.process.terminate()
    assert live.process.wait(30) == 0
    return live.output.read_text()


def test_request_is_one_line_when_asked_for(seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_ACCESS_LOG="true", LOCALIDADES_LOG_FORMAT="json") as live:
        page = ask(live.base, LOCALIDADES)
        for _ in range(300):
            ask(live.base, f"{LOCALIDADES}?page=2")
        ask(live.base, f"{LOCALIDADES}10010001/")
        ask(live.base, "/nothing")
        ask(live.base, LOCALIDADES, method="DELETE")
        lines = requests(live)
        assert [line["operation"] for line in lines] == ["list_localities"] * 301 + ["get_locality", "none", "none"]
        assert [line["status"] for line in lines][300:] == [200, 200, 404, 405]
        assert [line["method"] for line in lines][300:] == ["GET", "GET", "GET", "DELETE"]
        assert [line["release"] for line in lines][300:] == ["2020-01", "2020-01", None, None]
        assert lines[0]["bytes"] == len(page.body)
        assert len({line["id"] for line in lines}) == 304
        for line in lines:
            assert set(line) == OF_A_REQUEST
            assert datetime.fromisoformat(line["time"]).tzinfo is not None
            assert 0 < line["milliseconds"] < 30_000
        assert {record["level"] for record in records(live)} == {"info"}
        assert {record["logger"] for record in records(live) if "logger" in record} >= {"uvicorn.error"}
        assert page.all("x-request-id") == []


def test_lines_that_wait_are_written_at_the_end(seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_ACCESS_LOG="true") as live:
        for _ in range(50):
            ask(live.base, LOCALIDADES)
        text = end(live)
    line = r"^\S+Z info    GET list_localities 200 [0-9.]+ ms \d+ B 2020-01 \[[0-9a-f-]+\]$"
    assert len(re.findall(line, text, re.MULTILINE)) == 50


def test_request_is_no_line_unless_asked_for(seeded_database: str) -> None:
    with serving(seeded_database) as live:
        ask(live.base, LOCALIDADES)
        ask(live.base, "/nothing")
        text = end(live)
    assert "list_localities" not in text
    assert not re.search(r"\b404\b", text)
    assert re.search(r"^\S+Z info    Serving release 2020-01\.", text, re.MULTILINE), "of the service there are"


@pytest.mark.parametrize("form", ["json", "console"])
def test_log_has_nothing_of_what_a_client_sends(seeded_database: str, form: str) -> None:
    with serving(
        seeded_database, LOCALIDADES_ACCESS_LOG="1", LOCALIDADES_LOG_FORMAT=form, LOCALIDADES_LOG_LEVEL="debug"
    ) as live:
        headers = [(name, SECRET) for name in ("User-Agent", "Accept-Language", "Cookie", "X-Request-Id", SECRET)]
        headers.append(("traceparent", f"00-{SECRET}"))
        for target in (
            f"{LOCALIDADES}?search={SECRET}",
            f"{LOCALIDADES}?page=1&x={SECRET}",
            f"{LOCALIDADES}?{SECRET}=1",
            f"{LOCALIDADES}?page={SECRET}",
            f"/{SECRET}/",
            f"{LOCALIDADES}{SECRET}/",
            f"{LOCALIDADES}?release={SECRET}",
            f"/readyz?{SECRET}",
        ):
            ask(live.base, target, *headers)
            ask(live.base, target, ("Accept", f"text/{SECRET}"), ("Host", SECRET))
        send(live.base, f"{SECRET} /{SECRET} HTTP/1.1\r\n\r\n".encode())
        send(live.base, f"GET /{SECRET} HTTP/{SECRET}\r\n\r\n".encode())
        text = end(live)
    assert len(re.findall("list_localities", text)) >= 5
    assert SECRET not in text


def test_fault_of_the_database_is_a_line_with_its_cause_and_the_id_that_the_user_has(
    server: str, seeded_database: str
) -> None:
    with serving(seeded_database, LOCALIDADES_LOG_FORMAT="json") as live, out_of_reach(server, seeded_database):
        answer = ask(live.base, f"{LOCALIDADES}?search={SECRET}")
        assert answer.status == 503
        id_ = answer.one("x-request-id")
        fault, line = [record for record in records(live) if record.get("id") == id_]
        assert re.fullmatch(r"503: The database .+\(.*(?:Error|Exception).*\)", fault["message"])
        assert "traceback" not in fault, "of what was foreseen, it would be most of the work while the fault lasts"
        assert (line["level"], line["operation"], line["status"]) == ("error", "list_localities", 503)
        assert any(record.get("message", "").startswith("The database is away") for record in records(live))
        assert SECRET not in end(live)


def test_fault_that_nobody_foresaw_is_in_the_log_with_its_traceback_and_only_there(seeded_database: str) -> None:
    settings = {"LOCALIDADES_PAGE_CACHE_BYTES": "0", "LOCALIDADES_LOG_FORMAT": "json"}
    with serving(seeded_database, **settings) as live:
        execute(seeded_database, "ALTER TABLE localities RENAME COLUMN nombre TO apellido")
        for target in (LOCALIDADES, f"{LOCALIDADES}?municipio_id=1001"):
            answer = ask(live.base, target, ("User-Agent", SECRET))
            assert answer.status == 500
            id_ = answer.one("x-request-id")
            assert "nombre" not in answer.text
            fault, line = [record for record in records(live) if record.get("id") == id_]
            assert "UndefinedColumnError" in fault["traceback"]
            assert fault["level"] == line["level"] == "error"
            assert (line["operation"], line["status"]) == ("list_localities", 500)
        assert SECRET not in end(live)


def test_error_is_one_json_line_whatever_is_in_it() -> None:
    error = ValueError('of two\nlines, "quoted", and \N{LINE SEPARATOR} others')
    record = logging.LogRecord("x", logging.ERROR, "", 0, "it %s", ("failed",), (ValueError, error, None))
    (line,) = JsonFormatter().format(record).split("\n")
    assert json.loads(line)["message"] == "it failed"
    assert "of two\nlines" in json.loads(line)["traceback"]
    assert "it failed\nValueError: of two\nlines" in ConsoleFormatter().format(record)
