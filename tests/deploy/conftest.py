"""Fixtures for guides and examples: the client's package, and a clone."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.catalogue import many, write_catalogue
from tests.support.waiting import PATIENCE
from tests.support.wire import COMMAND, ROOT


@pytest.fixture(scope="session")
def client_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the package `localidades_client`, as `pip install ./src` installs it."""
    folder = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT / "src", capture_output=True, timeout=PATIENCE, check=True)
    [wheel] = folder.glob("*.whl")
    shutil.unpack_archive(wheel, folder, "zip")
    return folder / "localidades_client"


@pytest.fixture
def clone(client_package: Path, tmp_path: Path) -> Path:
    """Return a reader's clone with a virtual environment, a table, and INEGI's files of two months."""
    (tmp_path / client_package.name).symlink_to(client_package)  # Python finds it in the folder that it is started in
    for name in ("docs", "alembic.ini", "migrations"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "visits.csv").symlink_to(ROOT / "docs" / "examples" / "visits.csv")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    commands = {
        "python": f'exec "{sys.executable}" "$@"',
        "alembic": f'exec "{sys.executable}" -m alembic "$@"',
        "localidades-api": f'exec "{COMMAND[0]}" {COMMAND[1]} "{COMMAND[2]}" "$@"',
    }
    for name, script in commands.items():
        path = tmp_path / ".venv" / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    for month, count in enumerate((132, 135), start=11):
        table = write_catalogue(tmp_path / "AGEEML_utf.csv", many(count))
        with zipfile.ZipFile(tmp_path / f"catun_localidad_2026-{month}.zip", "w") as archive:
            archive.write(table, table.name)
    return tmp_path
