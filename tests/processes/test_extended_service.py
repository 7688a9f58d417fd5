"""Applications that extend the service, under `serve --app` and the `uvicorn` command, with the guide's examples."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path

import pytest

from tests.support.metrics import await_metrics, value
from tests.support.postgres import new_database
from tests.support.service_address import service_address
from tests.support.waiting import eventually
from tests.support.wire import (
    LOCALIDADES,
    ROOT,
    Answer,
    Live,
    ask,
    await_names,
    connect,
    environment,
    parse,
    read_answer,
    run,
    serving,
    serving_with_uvicorn,
)

RECORD = f"{LOCALIDADES}10010001/"
EXTENDED = "tests.processes.extended_service"
EXAMPLES = "docs.examples"
VISITS = "/api/census/visits/"


def number_of_request(base: str) -> int:
    """Return the number of requests that have reached a worker's application, from the id of a failed one."""
    answer = ask(base, "/fails")
    assert answer.status == 500
    return int(answer.one("x-request-id").rpartition("-")[2], 16)


def ask_repeatedly(base: str, target: str, count: int) -> list[Answer]:
    """Repeat a request on one connection; the last response of a connection never comes from the cache."""
    with closing(connect(base)) as connection:
        answers = []
        for _ in range(count):
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            answers.append(parse(read_answer(connection)))
    return answers


def test_cached_response_does_not_reach_the_application(seeded_database: str) -> None:
    with serving(seeded_database, "--app", f"{EXTENDED}:app") as live:
        await_names(live.base)  # which empties the cache
        first = ask(live.base, RECORD)
        before = number_of_request(live.base)
        assert [answer.body for answer in ask_repeatedly(live.base, RECORD, 5)] == [first.body] * 5
        assert number_of_request(live.base) == before + 1
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") == 5)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.tail)])
def test_added_middleware_runs_in_every_worker(seeded_database: str, workers: int) -> None:
    with serving(seeded_database, "--workers", str(workers), "--app", f"{EXTENDED}:stamped") as live:
        eventually(lambda: live.output.read_text().count("Application startup complete") == workers)
        for _ in range(8):  # connections, so that each worker gets some
            for target in (RECORD, "/livez", "/nothing", "/static/style.css"):
                assert {answer.one("x-stamp") for answer in ask_repeatedly(live.base, target, 3)} == {"mine"}
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") >= 8)


@pytest.mark.tail
def test_changed_application_is_reloaded_below_its_root_path(seeded_database: str, tmp_path: Path) -> None:
    program = "from tests.processes.extended_service import app\n@app.get('/mine')\ndef mine() -> str: return '{}'\n"
    (tmp_path / "mine.py").write_text(program.format("old"))
    start = f"import os, runpy; os.chdir({str(tmp_path)!r}); runpy.run_module('localidades_api', run_name='__main__')"
    command = (sys.executable, "-c", start)
    options = ("--app", "mine:app", "--reload", "--root-path", "/geo")
    with serving(seeded_database, *options, command=command, PYTHONPATH=str(ROOT)) as live:
        assert ask(live.base, "/mine").body == b'"old"'
        assert 'href="/geo/docs"' in ask(live.base, f"{LOCALIDADES}?format=api").text
        (tmp_path / "mine.py").write_text(program.format("new"))

        def is_new() -> bool:
            with suppress(OSError):
                return ask(live.base, "/mine").body == b'"new"'
            return False

        eventually(is_new)


KEY_ERROR = f"--app {EXAMPLES}.service_with_key:app can't be imported (KeyError)"


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        ("--app nonesuch:app", {}, "--app nonesuch:app can't be imported (ModuleNotFoundError); the log above says"),
        ("--app localidades_api.asgi:nothing", {}, "--app localidades_api.asgi:nothing can't be imported (Attribute"),
        ("--app localidades_api.settings:Settings", {}, "localidades_api.settings:Settings is not a FastAPI applicat"),
        (f"--app {EXTENDED}:app", {"LOCALIDADES_POOL_SIZE": "none"}, "LOCALIDADES_POOL_SIZE"),
        (f"--app {EXAMPLES}.service_with_key:app", {}, KEY_ERROR),
        pytest.param(f"--app {EXAMPLES}.service_with_key:app --workers 2", {}, KEY_ERROR, marks=pytest.mark.tail),
    ],
)
def test_application_that_cannot_be_served_is_explained(
    seeded: str, arguments: str, settings: dict[str, str], sentence: str
) -> None:
    refused = run("serve", "--port", "0", *arguments.split(), env=environment(seeded, **settings))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert sentence in refused.stderr
    assert "bug" not in refused.stderr
    assert ("KeyError: 'SERVICE_KEY'" in refused.stderr) == (sentence == KEY_ERROR)  # at the end of a traceback


# -- The examples of docs/guides/extending.md

Serving = Callable[..., AbstractContextManager[Live]]


def with_serve(url: str, application: str, probe: str = "/readyz") -> AbstractContextManager[Live]:
    return serving(url, "--app", application, probe=probe, SERVICE_KEY="s3cr3t")


def with_uvicorn(url: str, application: str, probe: str = "/readyz") -> AbstractContextManager[Live]:
    return serving_with_uvicorn(url, application=application, probe=probe, SERVICE_KEY="s3cr3t")


both_servers = pytest.mark.parametrize("serve", [with_serve, pytest.param(with_uvicorn, marks=pytest.mark.tail)])


@pytest.mark.tail
@both_servers
def test_middleware_example_times_every_response(seeded_database: str, serve: Serving) -> None:
    with serve(seeded_database, f"{EXAMPLES}.service_with_timing:app") as live:
        for target in (RECORD, RECORD, RECORD, "/nothing", "/metrics"):
            assert ask(live.base, target).one("server-timing").startswith("app;dur=")


@both_servers
def test_routes_example_answers_and_receives_bodies(seeded_database: str, serve: Serving) -> None:
    as_json = ("Content-Type", "application/json")
    with serve(seeded_database, f"{EXAMPLES}.service_with_visits:app") as live:
        await_names(live.base)
        for _ in range(3):
            label = ask(live.base, "/labels/10010001")
            assert (label.status, json.loads(label.body)) == (200, "Aguascalientes, Municipio 001, Aguascalientes")
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") == 2)
        assert ask(live.base, "/labels/1").status == 404
        visit = {"localidad_id": 10010001, "visitor": "Ana " * 20_000}  # more than one chunk of a body
        sent = json.dumps(visit).encode()
        answers = [ask(live.base, VISITS, as_json, method="POST", body=sent) for _ in range(4)]
        assert [answer.status for answer in answers] == [201, 201, 201, 409]
        assert answers[0].one("allow") == "GET, POST, OPTIONS"
        assert json.loads(answers[0].body) == visit
        assert json.loads(answers[3].body)["detail"] == "The notebook has 3 visits."
        assert ask(live.base, VISITS, as_json, method="POST", body=b'{"localidad_id": 1, "visitor": ""}').status == 404
        assert json.loads(ask(live.base, VISITS).body) == [visit] * 3


@both_servers
def test_api_key_example_checks_every_request(seeded_database: str, serve: Serving) -> None:
    key = ("X-API-Key", "s3cr3t")
    with serve(seeded_database, f"{EXAMPLES}.service_with_key:app") as live:
        for _ in range(2):
            answer = ask(live.base, RECORD, key)
            assert (answer.status, answer.one("cache-control")[:8]) == (200, "private,")
            for wrong in ((), (("X-API-Key", "other"),)):
                refused = ask(live.base, f"{RECORD}?x=1", *wrong)
                assert (refused.status, refused.one("www-authenticate")) == (401, "ApiKey")
        assert [ask(live.base, path).status for path in ("/livez", "/readyz", "/metrics")] == [204, 200, 200]
        assert [ask(live.base, path).status for path in ("/docs", "/openapi.json", "/map")] == [401] * 3
        assert [ask(live.base, path).status for path in ("/static/style.css", "/nothing")] == [200, 404]
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") == 0)


@both_servers
def test_key_of_another_application_is_checked_before_the_mounted_service(seeded_database: str, serve: Serving) -> None:
    key = ("X-API-Key", "any")
    with serve(seeded_database, f"{EXTENDED}:behind_key", "/geo/readyz") as live:
        eventually(lambda: ask(live.base, f"/geo{LOCALIDADES}suggest/?q=a", key).status == 200)
        assert (ask(live.base, "/geo/notes", key).body, ask(live.base, "/geo/notes").status) == (b'"open"', 401)
        for target in (f"/geo{RECORD}", "/geo/match"):
            for _ in range(3):  # the service holds the answer of the first
                assert {answer.status for answer in ask_repeatedly(live.base, target, 3)} == {401}
                assert ask(live.base, target, key).status == 200
        moved = ask(live.base, f"/geo{RECORD[:-1]}", key)
        assert (moved.status, moved.one("location"), ask(live.base, RECORD, key).status) == (308, "10010001/", 404)
        if serve is with_serve:
            printed = re.findall(r"http://\S+?(/\S+)", live.output.read_text())[:3]
            assert printed == [f"/geo{LOCALIDADES}", "/geo/", "/geo/docs"]


@pytest.mark.tail
def test_test_example_passes(server: str, seeded: str, tmp_path: Path) -> None:
    for name in ("service_with_visits.py", "test_service_with_visits.py"):
        shutil.copy(ROOT / "docs" / "examples" / name, tmp_path)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:pytest_cov"]
    with new_database(server, seeded) as url:
        env = environment(service_address(url))
        ended = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
