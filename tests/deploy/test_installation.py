"""The published packages are complete and serve on a machine with nothing but Python."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from localidades_api.catalogue.attribution import ORIGIN
from localidades_api.html.guides import GUIDES
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
    """The packages that `make dist` builds from a clone, and the paths that git tracks there; `field` is npm's."""

    sdist: Path
    wheel: Path
    client_sdist: Path
    client_wheel: Path
    field: Path
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
    dist = clone / "dist"
    [sdist], [wheel] = dist.glob("localidades_api-*.tar.gz"), dist.glob("localidades_api-*.whl")
    [client_sdist], [client_wheel] = dist.glob("localidades_client-*.tar.gz"), dist.glob("localidades_client-*.whl")
    [field] = dist.glob("localidad-field-*.tgz")
    assert {*dist.iterdir()} == {sdist, wheel, client_sdist, client_wheel, field}
    return Packages(sdist, wheel, client_sdist, client_wheel, field, tracked)


def test_sdist_has_the_tracked_files(packages: Packages) -> None:
    with tarfile.open(packages.sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed == packages.tracked | {"PKG-INFO"}


def test_wheel_has_the_package_migrations_and_guides(packages: Packages) -> None:
    guides = {f"docs/{folder}guides/{name}.md" for folder in ("", "es/") for name in GUIDES}
    expected = {
        path.removeprefix("src/") if path.startswith("src/") else f"localidades_api/{path}"
        for path in packages.tracked
        if path.startswith(("src/localidades_api/", "migrations/", "docs/guides/pictures/")) or path in guides
    }
    with zipfile.ZipFile(packages.wheel) as archive:
        packed = set(archive.namelist())
    described = {path for path in packed if ".dist-info/" in path}
    assert packed - described == expected
    assert {path.partition("/")[2] for path in described} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["wheel", "client_wheel"])
def test_metadata_say_who_made_the_package_and_for_which_pythons(packages: Packages, name: str) -> None:
    with zipfile.ZipFile(getattr(packages, name)) as archive:
        [path] = [path for path in archive.namelist() if path.endswith("/METADATA")]
        described = Metadata.from_email(archive.read(path))
    tried = re.search(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "nightly.yml").read_text())
    assert tried is not None
    versions = [f"Programming Language :: Python :: {version}" for version in re.findall(r"[0-9.]+", tried[1])]
    assert described.classifiers is not None
    named = [one for one in described.classifiers if re.search(r":: [0-9]+\.[0-9]+$", one)]
    assert [named[0], named[-1]] == versions  # the oldest and the newest are tried each night
    assert "Typing :: Typed" in described.classifiers
    assert str(described.requires_python) == f">={versions[0].rpartition(' ')[2]}"
    assert described.author == "The localidades-api authors"
    assert described.author in (ROOT / "LICENSE").read_text()
    assert described.project_urls is not None
    assert described.project_urls["INEGI's catalogue"] == ORIGIN
    assert described.license_expression == "MIT"


CLIENT_MODULES = {
    "__init__.py": "client.py", "frames.py": "frames.py", "network.py": "network.py", "py.typed": "py.typed",
}  # fmt: skip


def test_wheel_of_the_client_has_its_modules(packages: Packages) -> None:
    source = ROOT / "src" / "localidades_api"
    with zipfile.ZipFile(packages.client_wheel) as archive:
        packed = {path: archive.read(path) for path in archive.namelist() if ".dist-info/" not in path}
        [metadata] = [archive.read(path).decode() for path in archive.namelist() if path.endswith("/METADATA")]
    assert packed == {f"localidades_client/{to}": (source / of).read_bytes() for to, of in CLIENT_MODULES.items()}
    assert re.findall("^Requires-Dist: (.*)", metadata, re.MULTILINE) == ["httpx>=0.28"]
    assert packages.client_wheel.name.split("-")[1] == packages.wheel.name.split("-")[1]


def test_sdist_of_the_client_has_what_its_wheel_is_built_from(packages: Packages) -> None:
    with tarfile.open(packages.client_sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    modules = {f"localidades_api/{name}" for name in ["__init__.py", *CLIENT_MODULES.values()]}
    assert packed == modules | {"pyproject.toml", "LICENSE", "PKG-INFO", ".gitignore"}


def test_npm_package_of_the_field_has_its_scripts_and_types(packages: Packages) -> None:
    static = ROOT / "src" / "localidades_api" / "html" / "static"
    with tarfile.open(packages.field) as archive:
        packed = {
            one.name.removeprefix("package/"): file.read()
            for one in archive.getmembers()
            if (file := archive.extractfile(one))
        }
    described = json.loads(packed.pop("package.json"))
    sources = [
        *(ROOT / "npm").glob("*.d.ts"),
        *static.glob("localidad-*.js"),
        ROOT / "npm" / "README.md",
        ROOT / "LICENSE",
    ]
    assert packed == {path.name: path.read_bytes() for path in sources}
    exported = {name for one in described["exports"].values() for name in one.values()} | {described["types"]}
    assert {f"./{name}" for name in packed if name.startswith("localidad-")} == exported
    assert packages.field.name == f"{described['name']}-{described['version']}.tgz"
    assert described["version"] == packages.wheel.name.split("-")[1]
    assert "dependencies" not in described
    imports = re.findall('^import .* from "./(.*)";$', packed["localidad-cascada.js"].decode(), re.MULTILINE)
    assert imports == ["localidad-field.js"]


ASK = """
import importlib.util, json, sys
from localidades_client import AsyncClient, Client, ClientError, ProblemError

with Client(sys.argv[1]) as catalogue:
    [matched] = catalogue.match(["Asientos, Ags."])
    answers = [matched["match_cvegeo"], catalogue.get("01")["nombre"], catalogue.suggest("asi")[0]["cvegeo"]]
    try:
        catalogue.get("99")
    except ProblemError as error:
        answers.append(error.status)
found = [name for name in ("fastapi", "localidades_api", "pandas", "sqlalchemy") if importlib.util.find_spec(name)]
print(json.dumps([answers, found]))
"""


def ask_with_client(command: Sequence[str], service: str, folder: Path, **settings: str) -> None:
    """Check the answers of a service to an installed client, and that the service's packages are not beside it."""
    program = [*command, "-W", "error", "-c", ASK, service]
    env = environment(**settings)
    ended = subprocess.run(program, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [["010020001", "Aguascalientes", "010020001", 404], []]


def required_by(requirement: str) -> set[str]:
    """Return the names of a distribution that is installed here and of all that it needs."""
    found, coming = set[str](), [Requirement(requirement)]
    while coming:
        one = coming.pop()
        if canonicalize_name(one.name) not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found.add(canonicalize_name(one.name))
            coming += map(Requirement, metadata.requires(one.name) or ())
    return found


def test_client_needs_only_httpx(packages: Packages, live_server: str, tmp_path: Path) -> None:
    for name in required_by("httpx"):
        for file in metadata.files(name) or ():
            if ".." not in file.parts and file.suffix != ".pyc":  # a command
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), tmp_path / file)
    shutil.unpack_archive(packages.client_wheel, tmp_path, "zip")
    ask_with_client([sys.executable, "-S"], live_server, tmp_path, PYTHONPATH=str(tmp_path))


MAX_CLIENT = 5_000_000  # bytes, with its dependencies; those of the service take six hundred million


@pytest.mark.tail
def test_client_is_installed_small(packages: Packages, live_server: str, home: Path) -> None:
    python = home / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", python.parent.parent], capture_output=True, check=True)
    [site_packages] = home.glob("venv/lib/python*/site-packages")
    before = {path.name for path in site_packages.iterdir()}
    pip = [str(python), "-m", "pip", "install", "--no-cache-dir", "--no-compile", "--constraint", str(pins_of(home))]
    subprocess.run([*pip, str(packages.client_wheel)], cwd=home, capture_output=True, check=True)
    installed = [path for path in site_packages.iterdir() if path.name not in before]
    names = {path.name.partition("-")[0] for path in installed if path.suffix == ".dist-info"}
    assert {canonicalize_name(name) for name in names} == required_by("httpx") | {"localidades-client"}
    files = [file for path in installed for file in [path, *path.rglob("*")] if file.is_file()]
    assert sum(file.stat().st_size for file in files) < MAX_CLIENT
    ask_with_client([str(python)], live_server, home, PYTHONPATH="")


@pytest.fixture
def home() -> Iterator[Path]:
    """Yield the empty home of a user."""
    with lend_folder() as folder:
        yield folder


def pins_of(home: Path) -> Path:
    """Write the versions of `make run` as constraints, because the newest may be minutes old."""
    pins = re.findall(r"^([a-z0-9._-]+==[^\s;]+)", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE)
    (home / "constraints.txt").write_text("\n".join(pins))
    return home / "constraints.txt"


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
    settings = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "UV_CACHE_DIR": str(home / "uv"),
        "PATH": os.defpath,
        "PYTHONPATH": "",
        "LOCALIDADES_DATA_DIR": str(home / "postgres"),
    }
    command = install(packages.wheel, pins_of(home), home, environment(**settings))
    with serving("", command=command, **settings) as live:
        answered = ask(live.base, LOCALIDADES)
        assert answered.status == 200
        assert answered.all("catalogue-release") == ["demo"]
        assert ask(live.base, "/help/data").status == 200
