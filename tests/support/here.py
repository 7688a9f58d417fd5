"""Runs commands in this process, for tests that need no other."""

import subprocess
from dataclasses import dataclass

from typer.testing import CliRunner

from localidades_api.cli import app
from tests.support.service_address import database_timeout


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def here(*arguments: str, url: str | None = None, **settings: str) -> Ended:
    """Run a command, with or without a database."""
    patience = None if url is None else str(database_timeout(url))
    variables: dict[str, str | None] = {"COLUMNS": "200", "NO_COLOR": "1", "DATABASE_URL": url}
    variables |= {"LOCALIDADES_DATABASE_TIMEOUT": patience, **settings}
    result = CliRunner().invoke(app, arguments, env=variables)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr
    return Ended(result.exit_code, result.stdout, result.stderr)


def assert_sentence(result: "Ended | subprocess.CompletedProcess[str]", *words: str) -> None:
    """Check that a command exited with 1 and one line of explanation, without a traceback or a password."""
    assert result.returncode == 1, result
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in result.stderr + result.stdout
    assert "s3cr3t" not in result.stderr + result.stdout
    assert result.stdout == ""
