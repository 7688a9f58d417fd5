"""What is published is whole: the wheel has the package and its migrations, and serves where there is only Python."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.embedded import lend_folder
from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ROOT, ask, environment, serving

COMMAND_NAME = "localidades-api"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that was built from an sdist, as `make dist` and `pip install` of an sdist do."""
    folder = tmp_path_factory.mktemp("dist")
    built = build("sdist", ROOT, folder)
    with tarfile.open(built) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", folder / built.name.removesuffix(".tar.gz"), folder)


def build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, capture_output=True, timeout=PATIENCE, check=True)
    [built] = folder.glob({"sdist": "*.tar.gz", "wheel": "*.whl"}[target])
    return built


def test_wheel_holds_the_package_its_migrations_and_no_more(wheel: Path) -> None:
    is_clone = (ROOT / ".git").exists()
    git = needed(shutil.which("git") if is_clone else None, "git says what is tracked, in a clone")
    command = [git, "ls-files", "-z", "src/localidades_api", "migrations"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {path.removeprefix("src/") for path in listed.split("\0") if path and (ROOT / path).is_file()}
    expected = {path if path.startswith("localidades_api/") else f"localidades_api/{path}" for path in tracked}
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    described = {path for path in packed if ".dist-info/" in path}
    assert packed - described == expected
    assert {path.partition("/")[2] for path in described} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


@pytest.fixture
def home() -> Iterator[Path]:
    """Lend the home of a user who has nothing."""
    with lend_folder() as folder:
        yield folder


def with_uvx(wheel: Path, constraints: Path, home: Path, env: Mapping[str, str]) -> list[str]:
    """Fetch what the wheel needs as `uvx localidades-api` does; return the command."""
    uvx = needed(ROOT / "build" / "uv" / "bin" / "uvx", "uvx runs a wheel; `make` installs it")
    command = [uvx, "--quiet", "--python", sys.executable, "--constraints", str(constraints), "--from", str(wheel)]
    subprocess.run([*command, COMMAND_NAME, "--version"], cwd=home, env=env, capture_output=True, check=True)
    return [*command, COMMAND_NAME]


def with_pip(wheel: Path, constraints: Path, home: Path, env: Mapping[str, str]) -> list[str]:
    """Install the wheel as `pip install` does, in an environment of its own, as pipx does; return the command."""
    installed = home / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", installed.parent], env=env, capture_output=True, check=True)
    install = [str(installed / "pip"), "install", "--no-cache-dir", "--no-compile", "--constraint", str(constraints)]
    subprocess.run([*install, str(wheel)], cwd=home, env=env, capture_output=True, check=True)
    return [str(installed / COMMAND_NAME)]


@pytest.mark.tail
@pytest.mark.timeout(400)
@pytest.mark.parametrize("install", [with_uvx, with_pip])
def test_wheel_serves_where_it_is_installed_and_keeps_what_it_made(
    install: Callable[[Path, Path, Path, Mapping[str, str]], list[str]], wheel: Path, home: Path
) -> None:
    # The newest versions may be minutes old: what runs here is what `make run` runs.
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
    command = install(wheel, pinned, home, environment(**settings))
    for _ in range(2):  # the first makes the database, the second finds it
        with serving("", command=command, **settings) as live:
            answered = ask(live.base, LOCALIDADES)
            assert answered.status == 200
            assert answered.all("catalogue-release") == ["demo"]
