"""The log of a real server: one format, a line per request, causes of errors, and no client input."""

import json
import re
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from localidades_api.observability.faults import Faults
from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.database import BREAK_LOCALITIES
from tests.support.metrics import await_metrics, value
from tests.support.postgres import execute, out_of_reach
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, Answer, Live, ask, send, serving

SECRET = "s3cret"  # noqa: S105  # must not be found
OF_A_REQUEST = {"time", "level", "id", "method", "operation", "status", "milliseconds", "release", "bytes"}


def records(live: Live) -> list[dict[str, Any]]:
    """Return every line of the log as an object, without the first output of the command."""
    lines = live.output.read_text().rpartition("\n")[0].splitlines()  # the last line may be incomplete
    start = next(number for number, line in enumerate(lines) if line.startswith("{"))
    return [json.loads(line) for line in lines[start:]]


def requests(live: Live) -> list[dict[str, Any]]:
    return [record for record in records(live) if "operation" in record and record["operation"] != "get_readiness"]


def end(live: Live) -> str:
    live.process.terminate()
    assert live.process.wait(PATIENCE) == 0
    return live.output.read_text()


def test_access_log_has_one_line_per_request(seeded_database: str, tmp_path: Path) -> None:
    import_file(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(140)))
    asked = [
        *[("GET", f"{LOCALIDADES}?page=2", "list_localities", 200, "2021-01")] * 30,
        *[("GET", f"{LOCALIDADES}10010001/?release=2020-01", "get_locality", 200, "2020-01")] * 3,  # the last is cached
        ("GET", "/nothing", "none", 404, None),
        ("DELETE", LOCALIDADES, "list_localities", 405, None),
    ]
    with serving(seeded_database, LOCALIDADES_ACCESS_LOG="true", LOCALIDADES_LOG_FORMAT="json") as live:
        answers = [ask(live.base, target, method=method) for method, target, *_ in asked]
        eventually(lambda: requests(live)[-1:] and requests(live)[-1]["method"] == "DELETE")
        lines = requests(live)
        assert [(line["method"], line["operation"], line["status"], line["release"]) for line in lines] == [
            (method, *logged) for method, _, *logged in asked
        ]
        assert lines[0]["bytes"] == len(answers[0].body)
        assert len({line["id"] for line in lines}) == len(asked)
        for line in lines:
            assert set(line) == OF_A_REQUEST
            assert datetime.fromisoformat(line["time"]).tzinfo is not None
            assert line["milliseconds"] > 0
        assert {record["level"] for record in records(live)} == {"info"}
        assert {record["logger"] for record in records(live) if "logger" in record} >= {"uvicorn.error"}
        assert answers[0].all("x-request-id") == []


def test_access_log_is_complete_and_omits_client_input(seeded_database: str) -> None:
    line = r"^\S+Z info    GET list_localities 200 [0-9.]+ ms \d+ B 2020-01 \[[0-9a-f-]+\]$"
    with serving(seeded_database, LOCALIDADES_ACCESS_LOG="1", LOCALIDADES_LOG_FORMAT="console") as live:
        headers = [(name, SECRET) for name in ("User-Agent", "Accept-Language", "Cookie", "X-Request-Id", SECRET)]
        headers.append(("traceparent", f"00-{SECRET}"))
        for query in (f"?search={SECRET}", f"?page=1&x={SECRET}", f"?{SECRET}=1", f"?release={SECRET}", f"{SECRET}/"):
            ask(live.base, f"{LOCALIDADES}{query}", *headers)
            ask(live.base, f"{LOCALIDADES}{query}", ("Accept", f"text/{SECRET}"), ("Host", SECRET))
        ask(live.base, f"/{SECRET}/", *headers)
        ask(live.base, f"/readyz?{SECRET}", *headers)
        send(live.base, f"{SECRET} /{SECRET} HTTP/1.1\r\n\r\n".encode())
        send(live.base, f"GET /{SECRET} HTTP/{SECRET}\r\n\r\n".encode())
        for _ in range(20):
            ask(live.base, f"{LOCALIDADES}?page=2", *headers)
        text = end(live)
    assert SECRET not in text
    assert len(re.findall(line, text, re.MULTILINE)) == 21
    assert re.search(r"^\S+Z info    Serving release 2020-01\.", text, re.MULTILINE), "of the service there are too"


def explained(live: Live, answer: Answer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the line of a failed request by its id, and the first line with the cause."""

    def own_lines() -> list[dict[str, Any]]:
        return [record for record in requests(live) if record["id"] == answer.one("x-request-id")]

    (line,) = eventually(own_lines)
    told = [record for record in records(live) if record.get("cause") == line["cause"] and "message" in record]
    return line, told[0]


def test_database_error_is_logged_with_cause_and_request_id(server: str, seeded_database: str) -> None:
    with serving(seeded_database, LOCALIDADES_LOG_FORMAT="json") as live, ExitStack() as stack:
        await_metrics(live.base, lambda metrics: value(metrics, "page_cache_pages") == 3)
        stack.enter_context(out_of_reach(server, seeded_database))
        for target in (LOCALIDADES, "/nothing"):
            ask(live.base, target)
        answer = ask(live.base, f"{LOCALIDADES}?cvegeo=010010001", ("User-Agent", SECRET))
        assert answer.status == 503
        line, fault = explained(live, answer)
        assert "does not accept connections (55000)" in fault["message"]
        assert "traceback" not in fault, "of what was foreseen, it would be most of the work while the fault lasts"
        assert (line["level"], line["operation"], line["status"]) == ("error", "list_localities", 503)
        assert set(line) == OF_A_REQUEST | {"cause"}
        assert requests(live) == [line]
        eventually(lambda: '"The database is unavailable' in live.output.read_text())  # at the next poll
        assert SECRET not in end(live)


def test_unexpected_error_is_logged_once_with_its_traceback_and_counted(seeded_database: str) -> None:
    asked = 60
    with serving(seeded_database, LOCALIDADES_PAGE_CACHE_BYTES="0", LOCALIDADES_LOG_FORMAT="json") as live:
        execute(seeded_database, *BREAK_LOCALITIES)
        answers = [ask(live.base, f"{LOCALIDADES}?page=2", ("User-Agent", SECRET)) for _ in range(asked)]
        assert {(answer.status, "division" in answer.text) for answer in answers} == {(500, False)}
        line, fault = explained(live, answers[-1])
        assert (line["operation"], line["status"]) == ("list_localities", 500)
        assert fault["level"] == line["level"] == "error"
        assert "An unexpected error" in fault["message"]
        assert "DivisionByZeroError" in fault["traceback"]
        text = end(live)
    assert SECRET not in text
    assert text.count('"traceback":') == 1
    assert "Exception in ASGI" not in text  # uvicorn's own record of the same error
    assert "Something went wrong" not in text  # the client's response
    told = [json.loads(logged) for logged in text.splitlines() if '"message"' in logged and line["cause"] in logged]
    assert [record["message"].startswith("Again ") for record in told] == [False, True]
    assert int(told[1]["message"].split()[1]) >= asked - 1
    assert len(text) < 12_000 + 400 * asked


def test_lasting_cause_is_counted_per_interval_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults(interval=0.05)

    def fail(times: int) -> list[str]:
        caplog.clear()
        for _ in range(times):
            faults.report(ValueError("because"), "It %s", "failed", traceback=True)
        time.sleep(0.06)
        faults.sweep()
        return [re.sub(r"[0-9.]+ s:", "… s:", record.getMessage()) for record in caplog.records]

    again = "Again 2 times in … s: It failed"
    assert [fail(3), fail(2), fail(0), fail(1)] == [["It failed", again], [again], [], ["It failed"]]
    faults = Faults(interval=3600)
    assert fail(3) == ["It failed"]
    faults.sweep(everything=True)
    assert caplog.records[1].getMessage() == "Again 2 times in 0 s: It failed"
