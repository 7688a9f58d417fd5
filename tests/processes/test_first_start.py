"""The first start, which makes a database and loads a catalogue: nobody waits for an answer meanwhile."""

import http.client
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.embedded import find_processes, lend_folder
from tests.support.machine import free_port
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import NULL, Process, await_end_of_group, environment, start_command

LOADED = "published release 2020-01"


@contextmanager
def started(port: int, **settings: str) -> Iterator[tuple[Process, Path]]:
    """Start `serve`, and wait for nothing; lend it with its log. In the end nothing of it is left."""
    with tempfile.NamedTemporaryFile() as output, NULL.open() as stdin:
        streams = (stdin.fileno(), output.fileno(), output.fileno())
        process = start_command("serve", "--port", str(port), streams=streams, env=environment("", **settings))
        try:
            yield process, Path(output.name)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            await_end_of_group(process.pid)


def ask_once(port: int, log: Path) -> tuple[int, bool] | None:
    """Ask whether the process lives; return the status, and whether the catalogue was loaded once it was connected.

    Return None if nobody takes the connection, or it is closed without an answer.
    """
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        try:
            connection.connect()
            is_loaded = LOADED in log.read_text()
            connection.request("GET", "/livez")
            return connection.getresponse().status, is_loaded
        except (OSError, http.client.HTTPException):
            return None


@pytest.mark.parametrize("on_management_port", [False, True])
def test_connection_is_taken_once_there_is_an_answer(small_catalogue: Path, *, on_management_port: bool) -> None:
    with lend_folder() as folder:
        port, probes = free_port(), free_port()
        settings = {"LOCALIDADES_DATA_DIR": str(folder / "data"), "LOCALIDADES_SEED": str(small_catalogue)}
        if on_management_port:
            settings["LOCALIDADES_MANAGEMENT_PORT"] = str(probes)
        with started(port, **settings) as (process, log):
            answers: list[tuple[int, bool]] = []

            def answers_at_last() -> bool:
                assert process.poll() is None, log.read_text()
                answer = ask_once(probes if on_management_port else port, log)
                answers.extend([answer] if answer else [])
                return bool(answers)

            eventually(answers_at_last, within=2 * PATIENCE)
            assert answers == [(204, True)]
        assert not find_processes(folder)


def test_port_in_use_is_refused_before_a_database_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started(port, LOCALIDADES_DATA_DIR=str(tmp_path / "data")) as (process, log):
            assert process.wait(PATIENCE) == 1
            assert f"Port {port} is in use" in log.read_text()
    assert not (tmp_path / "data").exists()
