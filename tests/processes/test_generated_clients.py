"""Clients that others' generators make of the OpenAPI document compile, and read the running service."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.catalogue import TRAPS
from tests.support.wire import ask

CLIENTS = Path(__file__).parents[1] / "clients"
TYPESCRIPT = CLIENTS / "typescript"
PYTHON = CLIENTS / "python"
ENVIRONMENT = PYTHON / ".venv" / "bin"

CHOSEN = [place.nombre for place in TRAPS if place.cvegeo.startswith("01001")]
FOUND = {
    "quantity": 132,
    "first": "Aguascalientes",
    "chosen": CHOSEN,
    "cvegeo": "010010001",
    "municipio": "Municipio 001",
    "poblacion": 863893,
    "suggestion": "Aguascalientes, Municipio 001, Aguascalientes",
    "match": "prefix",
    "problem": "Not Found",
    "changes": 0,
    "matched": "010010001",
    "localidades": 132,
}


@pytest.fixture(scope="module")
def document(live_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lend the document that the service gives, as a file."""
    answer = ask(live_server, "/openapi.json")
    assert answer.status == 200
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(answer.body)
    return path


def run_program(folder: Path, program: Path | str, *arguments: object, **variables: str) -> str:
    """Run a program in a folder, and return what it says; its end must be a good one."""
    assert shutil.which(program), f"{program} is not there: `make test` installs it"
    env: Mapping[str, str] = {**os.environ, "NO_PROXY": "*", **variables}
    ended = subprocess.run(
        [program, *map(str, arguments)], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_generated_typescript_client_compiles_and_reads_the_service(
    live_server: str, document: Path, tmp_path: Path
) -> None:
    if shutil.which("npm") is None and not os.environ.get("CI"):
        pytest.skip("Node.js 20 or newer, with npm, is not on this machine")
    for name in ("package.json", "tsconfig.json", "client.ts"):
        shutil.copy(TYPESCRIPT / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT / "node_modules")
    programs = tmp_path / "node_modules" / ".bin"
    run_program(tmp_path, programs / "openapi-typescript", document, "--output", "schema.d.ts")
    run_program(tmp_path, programs / "tsc", "--project", ".")
    assert json.loads(run_program(tmp_path, "node", "built/client.js", live_server)) == FOUND


def test_generated_python_client_has_sound_types_and_reads_the_service(
    live_server: str, document: Path, tmp_path: Path
) -> None:
    package, script = tmp_path / "localidades_api_client", PYTHON / "client.py"
    generate = ("generate", "--path", document, "--meta", "none", "--output-path", package, "--fail-on-warning",
                "--config", PYTHON / "config.yaml")  # fmt: skip
    path = f"{ENVIRONMENT}{os.pathsep}{os.environ['PATH']}"  # the generator formats with the ruff that it finds
    run_program(tmp_path, ENVIRONMENT / "openapi-python-client", *generate, PATH=path)

    # Not the package's `client.py`, which is the same for every document.
    check = ("--strict", "--config-file=", "--follow-imports=silent", "--python-executable", ENVIRONMENT / "python")
    run_program(
        tmp_path,
        sys.executable,
        "-m",
        "mypy",
        *check,
        package / "api",
        package / "models",
        script,
        MYPYPATH=str(tmp_path),
    )

    printed = run_program(tmp_path, ENVIRONMENT / "python", script, live_server, PYTHONPATH=str(tmp_path))
    assert json.loads(printed) == {**FOUND, "lines": 1 + len(CHOSEN)}
