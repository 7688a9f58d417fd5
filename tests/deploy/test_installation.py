"""The published packages serve on a machine with nothing but Python, and the list of their components is complete."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from localidades_api.html.guides import GUIDES
from tests.support.machine import needed
from tests.support.servers import lend_folder
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ROOT, ask, environment, serving

pytestmark = pytest.mark.tail

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
    sdist, wheel, client_sdist, client_wheel, field = (
        path
        for name in ("localidades_api-*.tar.gz", "*_api-*.whl", "*_client-*.tar.gz", "*_client-*.whl", "*-field-*.tgz")
        for path in (clone / "dist").glob(name)
    )
    assert len([*(clone / "dist").iterdir()]) == 5
    return Packages(sdist, wheel, client_sdist, client_wheel, field, tracked)


def read(package: Path) -> dict[str, bytes]:
    """Return the files of a package by their paths, which begin in an archive for tar with a folder's name."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(package) as archive:
        files = {one.name.partition("/")[2]: archive.extractfile(one) for one in archive.getmembers()}
        return {name: file.read() for name, file in files.items() if file}


def test_packages_of_the_service_have_the_tracked_files(packages: Packages) -> None:
    with tarfile.open(packages.sdist) as archive:
        assert {name.partition("/")[2] for name in archive.getnames()} == packages.tracked | {"PKG-INFO"}
    guides = {f"docs/{folder}guides/{name}.md" for folder in ("", "es/") for name in GUIDES}
    expected = {
        path.removeprefix("src/") if path.startswith("src/") else f"localidades_api/{path}"
        for path in packages.tracked
        if path.startswith(("src/localidades_api/", "migrations/", "docs/guides/pictures/")) or path in guides
    }
    packed = read(packages.wheel)
    assert {path for path in packed if ".dist-info/" not in path} == expected
    assert {path.partition(".dist-info/")[2] for path in packed} - {""} == {
        "METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


def test_packages_of_the_client_have_its_modules(packages: Packages) -> None:
    source = ROOT / "src" / "localidades_api"
    modules = {name: f"client/{name}" for name in ("__init__.py", "frames.py", "network.py")} | {"py.typed": "py.typed"}
    packed = read(packages.client_wheel)
    [described] = [content.decode() for path, content in packed.items() if path.endswith("/METADATA")]
    assert {path: content for path, content in packed.items() if ".dist-info/" not in path} == {
        f"localidades_client/{to}": (source / of).read_bytes() for to, of in modules.items()
    }
    assert re.findall("^Requires-Dist: (.*)", described, re.MULTILINE) == ["httpx>=0.28"]
    assert packages.client_wheel.name.split("-")[1] == packages.wheel.name.split("-")[1]
    built_from = {f"localidades_api/{name}" for name in ["__init__.py", *modules.values()]}
    with tarfile.open(packages.client_sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names == built_from | {"pyproject.toml", "LICENSE", "PKG-INFO", ".gitignore"}


def test_npm_package_of_the_field_has_its_scripts_and_types(packages: Packages) -> None:
    packed = read(packages.field)
    described = json.loads(packed.pop("package.json"))
    scripts = (ROOT / "src" / "localidades_api" / "html" / "static").glob("localidad-*.js")
    sources = [*(ROOT / "npm").glob("*.d.ts"), *scripts, ROOT / "npm" / "README.md", ROOT / "LICENSE"]
    assert packed == {path.name: path.read_bytes() for path in sources}
    exported = {name for one in described["exports"].values() for name in one.values()} | {described["types"]}
    assert {f"./{name}" for name in packed} - {"./README.md", "./LICENSE"} == exported
    assert packages.field.name == f"{described['name']}-{packages.wheel.name.split('-')[1]}.tgz"
    assert "dependencies" not in described
    imports = re.findall(' from "./(.*)";$', packed["localidad-cascada.js"].decode(), re.MULTILINE)
    assert imports == ["localidad-field.js"]


ASK = """
import importlib.util, json, sys
from localidades_client import Client, ClientError, ProblemError

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


def write_constraints(folder: Path) -> str:
    """Write the versions of `make run`, because the newest may be minutes old; return the file's path."""
    pins = re.findall(r"^([a-z0-9._-]+==[^\s;]+)", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE)
    (folder / "constraints.txt").write_text("\n".join(pins))
    return str(folder / "constraints.txt")


def test_client_needs_only_httpx(packages: Packages, live_server: str, tmp_path: Path) -> None:
    uv = needed(ROOT / "build" / "uv" / "bin" / "uv", "uv installs a wheel; `make` installs it")
    into = ["--python", sys.executable, "--target", str(tmp_path), "--constraints", write_constraints(tmp_path)]
    subprocess.run([uv, "pip", "install", *into, packages.client_wheel], capture_output=True, check=True)
    program, env = [sys.executable, "-S", "-W", "error", "-c", ASK, live_server], environment(PYTHONPATH=str(tmp_path))
    ended = subprocess.run(program, cwd=tmp_path, env=env, stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    assert json.loads(ended.stdout) == [["010020001", "Aguascalientes", "010020001", 404], []]


@pytest.mark.timeout(400)
def test_installed_wheel_serves(packages: Packages) -> None:
    uvx = needed(ROOT / "build" / "uv" / "bin" / "uvx", "uvx runs a wheel; `make` installs it")
    with lend_folder() as home:
        settings = {
            "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), "UV_CACHE_DIR": str(home / "uv"),
            "PATH": os.defpath, "PYTHONPATH": "", "LOCALIDADES_DATA_DIR": str(home / "postgres"),
        }  # fmt: skip
        command = [uvx, "--quiet", "--python", sys.executable, "--constraints", write_constraints(home)]
        command += ["--from", f"localidades-api[embedded] @ {packages.wheel.as_uri()}", "localidades-api"]
        # Installs it.
        subprocess.run([*command, "--version"], cwd=home, env=environment(**settings), capture_output=True, check=True)
        with serving("", command=command, **settings) as live:
            answered = ask(live.base, LOCALIDADES)
            assert (answered.status, answered.all("catalogue-release")) == (200, ["demo"])
            assert ask(live.base, "/help/data").status == 200


# -- Components


def make(target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command, env = ["make", target], os.environ | variables
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=150, check=False)


def test_sbom_lists_the_pinned_dependencies() -> None:
    made = make("sbom")
    assert made.returncode == 0, made.stderr
    document = json.loads((ROOT / "build" / "sbom.cdx.json").read_bytes())
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "localidades-api")
    listed = {}
    for one in document["components"]:
        hashes = {found["content"] for reference in one["externalReferences"] for found in reference["hashes"]}
        listed[one["name"]] = (one["version"], hashes)
    pinned = re.findall(
        r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)(.*?)(?=^[a-z0-9]|\Z)",
        (ROOT / "requirements" / "serve.txt").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert len(pinned) >= 30
    assert listed == {name: (version, set(re.findall(r"sha256:(\w{64})", rest))) for name, version, rest in pinned}


def test_audit_without_the_network_fails() -> None:
    assert make("build/supply/.venv/supply.stamp").returncode == 0
    nowhere = "http://127.0.0.1:1"
    ended = make("audit", HTTPS_PROXY=nowhere, https_proxy=nowhere, HTTP_PROXY=nowhere, http_proxy=nowhere, NO_PROXY="")
    assert ended.returncode != 0
    sentence = "error: Nothing was audited: the advisory service can't be reached, or does not know a dependency."
    assert [line for line in ended.stderr.splitlines() if line.startswith("error:")] == [sentence]
    assert not (ROOT / "build" / "audit.json").exists()
