"""The published packages are complete and serve on a machine with nothing but Python."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.embedded import lend_folder
from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ROOT, ask, environment, serving

COMMAND_NAME = "localidades-api"

# Remains of builds, tests and editors in a clone.
LEFT_BEHIND = [
    ".cache/plugin/a.json", ".coverage", ".data/cluster-18/PG_VERSION", ".env", ".hypothesis/a", ".idea/a.xml",
    ".mypy_cache/a.json", ".venv/bin/a", "benchmarks/.venv/bin/a", "benchmarks/peers/fastify/node_modules/a/index.js",
    "build/docs/.venv/bin/a", "build/site/index.html", "dist/a.whl", "docs/.cache/a", "htmlcov/index.html", "notes.txt",
    "postgres/a", "src/localidades_api.egg-info/a", "src/localidades_api/__pycache__/a.pyc",
    "tests/browser/node_modules/a/index.js", "tests/clients/python/.venv/bin/a",
]  # fmt: skip


class Packages(NamedTuple):
    """The packages that `make dist` builds from a clone, and the paths that git tracks there."""

    sdist: Path
    wheel: Path
    tracked: set[str]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Return the packages of a clone with remains of work."""
    is_clone = (ROOT / ".git").exists()
    git = needed(shutil.which("git") if is_clone else None, "git says what is tracked, in a clone")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {path for path in listed.split("\0") if path and (ROOT / path).is_file()}
    clone = tmp_path_factory.mktemp("clone")
    for path in [*tracked, *LEFT_BEHIND]:
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_bytes(b"" if path in LEFT_BEHIND else (ROOT / path).read_bytes())
    make = ["make", "dist", f"VENV={sys.prefix}", f"--old-file={sys.prefix}/run.stamp"]  # this environment is complete
    subprocess.run(make, cwd=clone, capture_output=True, timeout=PATIENCE, check=True)
    [sdist], [wheel] = (clone / "dist").glob("*.tar.gz"), (clone / "dist").glob("*.whl")
    return Packages(sdist, wheel, tracked)


def test_sdist_has_the_tracked_files(packages: Packages) -> None:
    with tarfile.open(packages.sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed == packages.tracked | {"PKG-INFO"}


def test_wheel_has_the_package_and_migrations(packages: Packages) -> None:
    expected = {
        path.removeprefix("src/") if path.startswith("src/") else f"localidades_api/{path}"
        for path in packages.tracked
        if path.startswith(("src/localidades_api/", "migrations/"))
    }
    with zipfile.ZipFile(packages.wheel) as archive:
        packed = set(archive.namelist())
    described = {path for path in packed if ".dist-info/" in path}
    assert packed - described == expected
    assert {path.partition("/")[2] for path in described} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


@pytest.fixture
def home() -> Iterator[Path]:
    """Yield the empty home of a user."""
    with lend_folder() as folder:
        yield folder


def with_uvx(wheel: Path, constraints: Path, home: Path, env: Mapping[str, str]) -> list[str]:
    """Install the wheel's dependencies as `uvx localidades-api` does; return the command."""
    uvx = needed(ROOT / "build" / "uv" / "bin" / "uvx", "uvx runs a wheel; `make` installs it")
    command = [uvx, "--quiet", "--python", sys.executable, "--constraints", str(constraints), "--from", str(wheel)]
    subprocess.run([*command, COMMAND_NAME, "--version"], cwd=home, env=env, capture_output=True, check=True)
    return [*command, COMMAND_NAME]


def with_pip(wheel: Path, constraints: Path, home: Path, env: Mapping[str, str]) -> list[str]:
    """Install the wheel with pip in a new environment, as pipx does; return the command."""
    installed = home / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", installed.parent], env=env, capture_output=True, check=True)
    install = [str(installed / "pip"), "install", "--no-cache-dir", "--no-compile", "--constraint", str(constraints)]
    subprocess.run([*install, str(wheel)], cwd=home, env=env, capture_output=True, check=True)
    return [str(installed / COMMAND_NAME)]


@pytest.mark.tail
@pytest.mark.timeout(400)
@pytest.mark.parametrize("install", [with_uvx, with_pip])
def test_installed_wheel_serves(
    install: Callable[[Path, Path, Path, Mapping[str, str]], list[str]], packages: Packages, home: Path
) -> None:
    # The versions of `make run`, because the newest may be minutes old.
    pinned = home / "constraints.txt"
    pins = re.findall(r"^([a-z0-9._-]+==[^\s;]+)", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE)
    pinned.write_text("\n".join(pins))
    settings = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "UV_CACHE_DIR": str(home / "uv"),
        "PATH": os.defpath,
        "PYTHONPATH": "",
        "LOCALIDADES_DATA_DIR": str(home / "postgres"),
    }
    command = install(packages.wheel, pinned, home, environment(**settings))
    with serving("", command=command, **settings) as live:
        answered = ask(live.base, LOCALIDADES)
        assert answered.status == 200
        assert answered.all("catalogue-release") == ["demo"]
