"""Runs commands in this process, for tests that need no other."""

import subprocess

from typer.testing import CliRunner

from localidades_api.cli import app
from tests.support.service_address import database_timeout


def invoke(*arguments: str, url: str | None = None, **settings: str) -> "subprocess.CompletedProcess[str]":
    timeout = None if url is None else str(database_timeout(url))
    variables: dict[str, str | None] = {"COLUMNS": "200", "NO_COLOR": "1", "DATABASE_URL": url}
    variables |= {"LOCALIDADES_DATABASE_TIMEOUT": timeout, **settings}
    result = CliRunner().invoke(app, arguments, env=variables)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def assert_error(result: "subprocess.CompletedProcess[str]", *words: str) -> None:
    """Check that a command exited with 1 and one line of explanation, without a traceback or a password."""
    assert result.returncode == 1, result
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in result.stderr + result.stdout
    assert "s3cr3t" not in result.stderr + result.stdout
    assert result.stdout == ""
