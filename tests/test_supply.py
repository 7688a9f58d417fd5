"""What a deployment is made of is listed whole; an audit that can't be done says so and fails."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.wire import ROOT

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


def test_audit_that_reaches_nobody_fails_and_says_so() -> None:
    nowhere = "http://127.0.0.1:1"
    ended = make("audit", HTTPS_PROXY=nowhere, https_proxy=nowhere, HTTP_PROXY=nowhere, http_proxy=nowhere, NO_PROXY="")
    assert ended.returncode != 0
    sentence = "error: Nothing was audited: pypi.org can't be reached, or does not know a dependency."
    assert [line for line in ended.stderr.splitlines() if line.startswith("error:")] == [sentence]
    assert not (ROOT / "build" / "audit.json").exists()


def test_audit_asks_for_every_file_of_pinned_dependencies() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "audit"],  # noqa: S607  # as above
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    pinned = {path for path in tracked() if "--hash=sha256:" in (ROOT / path).read_text(encoding="utf-8")}
    assert {path for path in tracked() if re.search(rf"--requirement {re.escape(path)}\b", planned)} == pinned
    assert len(pinned) >= 7
    assert "--strict" in planned
    assert "--require-hashes" in planned


def tracked() -> list[str]:
    folders = (ROOT / "requirements", ROOT / "benchmarks", ROOT / "tests" / "clients" / "python")
    return [str(path.relative_to(ROOT)) for folder in folders for path in sorted(folder.glob("*.txt"))]


@pytest.mark.parametrize("path", [Path(".ci/run"), Path(".ci/audit")])
def test_job_of_ci_can_be_run(path: Path) -> None:
    assert os.access(ROOT / path, os.X_OK)
    subprocess.run(["bash", "-n", str(path)], cwd=ROOT, check=True)  # noqa: S607  # whichever bash there is
