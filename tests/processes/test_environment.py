"""Commands of a user without a name or a home, as a container may run them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

pytestmark = pytest.mark.tail

AS_NOBODY = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
COMMAND = "from localidades_api.cli import app; app()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the package as installed: with its migrations and guides, outside a clone."""
    if not shutil.which("unshare") or subprocess.run([*AS_NOBODY, "true"], check=False, capture_output=True).returncode:
        pytest.skip("the system lets nobody make a user namespace, in which a user has no name")
    folder = tmp_path_factory.mktemp("installed")
    package = folder / "localidades_api"
    copies = {one: package / one for one in ("migrations", "docs/guides", "docs/es/guides")}
    for source, target in {"src/localidades_api": package, **copies}.items():
        shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run_as_nobody(installed: Path, *words: str, script: str = COMMAND, **variables: str) -> tuple[int, str, str]:
    """Return the exit code and what was written to both streams."""
    command = [*AS_NOBODY, sys.executable, "-c", script, *words]
    env = {"PYTHONPATH": str(installed), **variables}
    ended = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_user_without_a_name_needs_no_data_folder(installed: Path) -> None:
    status, _, errors = run_as_nobody(installed, "openapi")
    assert (status, errors) == (0, "")
    script = "from localidades_api.settings import read_settings; print(read_settings().data_dir)"
    assert run_as_nobody(installed, script=script)[1] == "/var/lib/localidades-api\n"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("DATABASE_URL", "postgresql://u@h.invalid/d", "The database does not answer: check that it is running"),
        ("DATABASE_URL", "postgresql://h.invalid/d", "DATABASE_URL, or a variable such as PGPORT or PGUSER"),
        ("DATABASE_URL", "postgresql://u@h.invalid/d?sslmode=verify-full",
         "DATABASE_URL, or a variable such as PGSSLMODE: root certificate"),
        ("LOCALIDADES_DATA_DIR", "{folder}", "initdb failed: initdb: could not look up effective user ID 54321"),
        ("LOCALIDADES_DATA_DIR", "~/data", "LOCALIDADES_DATA_DIR: `~` can't be expanded, because the user has no home:"
         " write the whole path.\n"),
    ],
)  # fmt: skip
def test_error_for_a_user_without_a_name_is_explained(
    installed: Path, tmp_path: Path, variable: str, value: str, sentence: str
) -> None:
    status, _, errors = run_as_nobody(installed, "releases", **{variable: value.format(folder=tmp_path / "data")})
    assert status == 1
    assert errors.startswith(f"error: {sentence}")
