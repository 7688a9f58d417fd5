"""What a deployment is made of is listed whole; an audit that can't be done says so and fails; packages are whole."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

SUPPLY = ROOT / "build" / "supply" / ".venv"
PINNED = ROOT / "requirements" / "serve.txt"


def make(target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Make a target with the tools that `make sbom` has installed, and install none."""
    if not (SUPPLY / "supply.stamp").exists():
        assert "CI" not in os.environ, "CI runs `make sbom` before the tests"
        pytest.skip("`make sbom` installs what lists and audits the dependencies")
    return subprocess.run(
        ["make", "--old-file=build/supply/.venv/supply.stamp", target],  # noqa: S607  # whichever make there is
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def pins() -> dict[str, tuple[str, set[str]]]:
    """Return the version and the hashes of each package that serving needs."""
    found = {}
    for name, version, rest in re.findall(
        r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)(.*?)(?=^[a-z0-9]|\Z)", PINNED.read_text(), re.MULTILINE | re.DOTALL
    ):
        found[name] = (version, set(re.findall(r"sha256:([0-9a-f]{64})", rest)))
    return found


@pytest.mark.tail
def test_list_of_components_is_what_is_pinned_and_the_same_each_time() -> None:
    path = ROOT / "build" / "sbom.cdx.json"
    made = make("sbom")
    assert (made.returncode, made.stderr) == (0, "")
    first = path.read_bytes()
    document = json.loads(first)
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "localidades-api")
    listed = {
        component["name"]: (
            component["version"],
            {one["content"] for reference in component["externalReferences"] for one in reference["hashes"]},
        )
        for component in document["components"]
    }
    assert listed == pins()
    assert len(listed) >= 30
    assert make("sbom").returncode == 0
    assert path.read_bytes() == first


@pytest.mark.tail
def test_audit_that_reaches_nobody_fails_and_says_so() -> None:
    nowhere = "http://127.0.0.1:1"
    ended = make("audit", HTTPS_PROXY=nowhere, https_proxy=nowhere, HTTP_PROXY=nowhere, http_proxy=nowhere, NO_PROXY="")
    assert ended.returncode != 0
    sentence = "error: Nothing was audited: the advisory service can't be reached, or does not know a dependency."
    assert [line for line in ended.stderr.splitlines() if line.startswith("error:")] == [sentence]
    assert not (ROOT / "build" / "audit.json").exists()


def test_audit_asks_for_every_file_of_pinned_dependencies() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "audit"],  # noqa: S607  # as above
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout
    pinned = {path for path in tracked() if "--hash=sha256:" in (ROOT / path).read_text(encoding="utf-8")}
    assert {path for path in tracked() if re.search(rf"--requirement {re.escape(path)}\b", planned)} == pinned
    assert len(pinned) >= 7
    assert "--strict" in planned
    assert "--require-hashes" in planned


# Without the extra, pip before 23.3 ignores the pin, takes the newest from the index and refuses it for its version.
def test_package_is_pinned_with_the_extras_that_others_want() -> None:
    lines = re.findall(r"^([a-z0-9].+?)(?: \\)?$", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    pinned = [Requirement(line) for line in lines]
    extras = {one.name: one.extras for one in pinned}
    wanted = [
        wish
        for one in pinned
        if one.marker is None or one.marker.evaluate()
        for wish in map(Requirement, distribution(one.name).requires or [])
        if wish.extras
        if wish.marker is None or any(wish.marker.evaluate({"extra": extra}) for extra in {"", *one.extras})
    ]
    assert "pytest-cov" in extras
    assert {"toml"} in [wish.extras for wish in wanted if wish.name == "coverage"]
    assert [str(wish) for wish in wanted if not wish.extras <= extras[canonicalize_name(wish.name)]] == []


def tracked() -> list[str]:
    folders = (ROOT / "requirements", ROOT / "benchmarks", ROOT / "tests" / "clients" / "python")
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted(folder.glob("*.txt"))]


# What making, testing and editing leave in a clone.
LEFT_BEHIND = [
    ".cache/plugin/a.json", ".coverage", ".env", ".hypothesis/a", ".idea/a.xml", ".mypy_cache/a.json", ".venv/bin/a",
    "benchmarks/.venv/bin/a", "benchmarks/peers/fastify/node_modules/a/index.js", "build/docs/.venv/bin/a",
    "build/site/index.html", "dist/a.whl", "docs/.cache/a", "htmlcov/index.html", "notes.txt", "postgres/a",
    "src/localidades_api.egg-info/a", "src/localidades_api/__pycache__/a.pyc", "tests/browser/node_modules/a/index.js",
    "tests/clients/python/.venv/bin/a",
]  # fmt: skip


def test_sdist_of_a_clone_that_was_worked_in_holds_what_is_tracked_and_no_more(tmp_path: Path) -> None:
    is_clone = (ROOT / ".git").exists()
    git = needed(shutil.which("git") if is_clone else None, "git says what is tracked, in a clone")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = {path for path in listed.split("\0") if path and (ROOT / path).is_file()}
    clone = tmp_path / "clone"
    for path in [*paths, *LEFT_BEHIND]:
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_bytes(b"" if path in LEFT_BEHIND else (ROOT / path).read_bytes())
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=clone, capture_output=True, timeout=PATIENCE, check=True)
    [built] = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert packed == paths | {"PKG-INFO"}
