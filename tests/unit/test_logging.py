"""Complete lines of the log, in both forms."""

import json
import logging
import re
from typing import Literal

import pytest

from localidades_api.observability.faults import cause
from localidades_api.observability.logging import Line, log_config, log_request, request_id, timestamp

LINES = (
    Line("7f-1", "GET", "list_localities", 200, 1.23456, "2020-01", 5120),
    Line("7f-2", "POST", "match_localities", 499, 1000.0, None, 0),
    Line("7f-3", "GET", "get_locality", 500, 0.0004, "2020-01", 12, "OSError@pool.py:7"),
    Line("7f-4", "GET", "get_startup", 503, 0.5, None, 1),
)
AS_TEXT = """\
T info    GET list_localities 200 1.235 ms 5120 B 2020-01 [7f-1]
T info    POST match_localities 499 1000.000 ms 0 B - [7f-2]
T error   GET get_locality 500 0.000 ms 12 B 2020-01 cause OSError@pool.py:7 [7f-3]
T info    GET get_startup 503 0.500 ms 1 B - [7f-4]
"""
AS_JSON = """\
{"time":"T","level":"info","id":"7f-1","method":"GET","operation":"list_localities","status":200,"milliseconds":1.235,\
"release":"2020-01","bytes":5120}
{"time":"T","level":"info","id":"7f-2","method":"POST","operation":"match_localities","status":499,\
"milliseconds":1000.0,"release":null,"bytes":0}
{"time":"T","level":"error","id":"7f-3","method":"GET","operation":"get_locality","status":500,"milliseconds":0.0,\
"release":"2020-01","bytes":12,"cause":"OSError@pool.py:7"}
{"time":"T","level":"info","id":"7f-4","method":"GET","operation":"get_startup","status":503,"milliseconds":0.5,\
"release":null,"bytes":1}
"""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize(("form", "lines"), [("console", AS_TEXT), ("json", AS_JSON)])
def test_lines_of_requests_are_written(
    form: Literal["console", "json"], lines: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in LINES:
        log_request(line, form)
    assert TIME.sub("T", capsys.readouterr().err) == lines


def test_time_has_milliseconds_in_utc() -> None:
    assert [timestamp(moment) for moment in (0, 1_600_000_000.0625, 1_600_000_000.9999)] == [
        "1970-01-01T00:00:00.000Z", "2020-09-13T12:26:40.062Z", "2020-09-13T12:26:40.999Z",
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["console", "json"])
def test_records_have_the_request_the_cause_and_a_traceback(form: str) -> None:
    config = log_config("json" if form == "json" else "console")
    formatter = config["formatters"]["default"]["()"]()
    warning = {"name": "localidades_api.x", "levelno": 30, "levelname": "WARNING", "created": 0}
    record = logging.makeLogRecord({**warning, "msg": "Año %s", "args": ("1",)})
    token = request_id.set("7f-1")
    try:
        record.__dict__["cause"] = "KeyError@x.py:1"
        whole = formatter.format(record)
    finally:
        request_id.reset(token)
    del record.__dict__["cause"]
    record.exc_info = (KeyError, KeyError("x"), None)
    with_error = formatter.format(record)
    start = "1970-01-01T00:00:00.000Z"
    if form == "console":
        assert whole == f"{start} warning Año 1 cause KeyError@x.py:1 [7f-1]"
        assert with_error == f"{start} warning Año 1\nKeyError: 'x'"
        return
    fields = {"time": start, "level": "warning", "logger": "localidades_api.x", "message": "Año 1"}
    assert "Año" in whole
    assert json.loads(whole) == {**fields, "id": "7f-1", "cause": "KeyError@x.py:1"}
    assert json.loads(with_error) == {**fields, "traceback": "KeyError: 'x'"}


def test_error_that_has_been_reported_is_not_logged_by_the_server_again() -> None:
    config = log_config("console")
    assert config["handlers"]["default"]["filters"] == ["unreported"]
    keeps = config["filters"]["unreported"]["()"]().filter
    error = {"exc_info": (KeyError, KeyError(), None), "msg": "Exception in ASGI application\n"}
    assert keeps(logging.makeLogRecord(error))
    token = cause.set("KeyError@x.py:1")
    try:
        assert not keeps(logging.makeLogRecord(error))
        assert keeps(logging.makeLogRecord({**error, "exc_info": None}))
        assert keeps(logging.makeLogRecord({**error, "msg": "Another"}))
    finally:
        cause.reset(token)
