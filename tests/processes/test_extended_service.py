"""Applications that extend the service, under `serve --app` and the `uvicorn` command, with the guide's examples."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from tests.support.commands import assert_error
from tests.support.metrics import await_metrics, value
from tests.support.postgres import new_database
from tests.support.service_address import service_address
from tests.support.waiting import PATIENCE, eventually
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


def test_cached_response_bypasses_the_application(seeded_database: str) -> None:
    with serving(seeded_database, "--app", f"{EXTENDED}:app") as live:
        await_names(live.base)  # which empties the cache
        first = ask(live.base, RECORD)
        before = number_of_request(live.base)
        assert {answer.body for answer in ask_repeatedly(live.base, RECORD, 5)} == {first.body}
        assert number_of_request(live.base) == before + 1


def test_cached_response_passes_added_middleware(seeded_database: str) -> None:
    with serving(seeded_database, "--app", f"{EXTENDED}:stamped") as live:
        await_names(live.base)
        first = ask(live.base, RECORD)
        before = number_of_request(live.base)
        for answer in ask_repeatedly(live.base, RECORD, 5):
            assert (answer.one("x-stamp"), answer.body) == ("mine", first.body)
        assert number_of_request(live.base) == before + 6
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") == 5)


def test_added_middleware_runs_in_every_worker(seeded_database: str) -> None:
    with serving(seeded_database, "--workers", "2", "--app", f"{EXTENDED}:stamped") as live:
        eventually(lambda: live.output.read_text().count("Application startup complete") == 2)
        for _ in range(8):  # connections, so that each worker gets some
            for target in (RECORD, "/livez", "/nothing", "/static/style.css"):
                assert {answer.one("x-stamp") for answer in ask_repeatedly(live.base, target, 3)} == {"mine"}
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") >= 8)


@pytest.mark.parametrize(
    ("application", "sentence"),
    [
        ("nonesuch:app", "--app must name a module and its attribute, such as service:app (No module named"),
        ("localidades_api.asgi:nothing", "(module 'localidades_api.asgi' has no attribute 'nothing')"),
        ("localidades_api.asgi:app:x", "--app must name a module and its attribute"),
        ("localidades_api.settings:Settings", "--app localidades_api.settings:Settings is not a FastAPI application"),
    ],
)
def test_unknown_application_is_explained(seeded: str, application: str, sentence: str) -> None:
    refused = run("serve", "--port", "0", "--app", application, env=environment(seeded))
    assert refused.returncode == 1
    assert_error(refused, sentence)


def test_unknown_application_ends_the_workers(seeded: str) -> None:
    words = ("serve", "--port", "0", "--workers", "2", "--app", "nonesuch:app")
    refused = run(*words, env=environment(seeded))
    assert refused.returncode == 1
    assert "A worker can't start: --app must name a module" in refused.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_error_in_the_users_application_is_not_reported_as_our_bug(seeded: str, workers: str) -> None:
    words = ("serve", "--port", "0", "--workers", workers, "--app", f"{EXAMPLES}.service_with_key:app")
    failed = run(*words, env=environment(seeded))
    assert failed.returncode == 1
    assert "KeyError: 'SERVICE_KEY'" in failed.stderr  # at the end of a traceback
    assert f"--app {EXAMPLES}.service_with_key:app raises KeyError when it is imported" in failed.stderr
    assert "bug" not in failed.stderr


def test_bad_setting_is_named_with_any_application(seeded: str) -> None:
    wrong = environment(seeded, LOCALIDADES_POOL_SIZE="none")
    assert_error(run("serve", "--port", "0", "--app", f"{EXTENDED}:app", env=wrong), "LOCALIDADES_POOL_SIZE")


# -- The examples of docs/guides/extending.md

Serving = Callable[..., AbstractContextManager[Live]]


def with_serve(url: str, application: str, probe: str = "/readyz") -> AbstractContextManager[Live]:
    return serving(url, "--app", application, probe=probe, SERVICE_KEY="s3cr3t")


def with_uvicorn(url: str, application: str, probe: str = "/readyz") -> AbstractContextManager[Live]:
    return serving_with_uvicorn(url, application=application, probe=probe, SERVICE_KEY="s3cr3t")


both_servers = pytest.mark.parametrize("serve", [with_serve, with_uvicorn])


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
def test_mounted_example_answers_below_its_path(seeded_database: str, serve: Serving) -> None:
    with serve(seeded_database, f"{EXAMPLES}.service_mounted:app", "/geo/readyz") as live:
        for _ in range(2):  # the second comes from the response cache
            assert json.loads(ask(live.base, f"/geo{RECORD}").body)["id"] == 10010001
            moved = ask(live.base, f"/geo{RECORD[:-1]}")
            assert (moved.status, moved.one("location")) == (308, "10010001/")
        assert ask(live.base, RECORD).status == 404


def test_test_example_passes(server: str, seeded: str, tmp_path: Path) -> None:
    for name in ("service_with_visits.py", "test_service_with_visits.py"):
        shutil.copy(ROOT / "docs" / "examples" / name, tmp_path)
    with new_database(server, seeded) as url:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:pytest_cov"]
        env = environment(service_address(url))
        ended = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
