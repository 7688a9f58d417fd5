"""The list of components is complete, and an audit without the network fails."""

import json
import os
import re
import subprocess

import pytest

from tests.support.wire import ROOT

pytestmark = pytest.mark.tail


def make(target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", target],  # noqa: S607  # whichever is installed
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    """Install the tools that list and audit dependencies."""
    installed = make("build/supply/.venv/supply.stamp")
    assert installed.returncode == 0, installed.stderr


def pins() -> dict[str, tuple[str, set[str]]]:
    """Return the version and hashes of each package of requirements/serve.txt."""
    found = {}
    for name, version, rest in re.findall(
        r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)(.*?)(?=^[a-z0-9]|\Z)",
        (ROOT / "requirements" / "serve.txt").read_text(),
        re.MULTILINE | re.DOTALL,
    ):
        found[name] = (version, set(re.findall(r"sha256:([0-9a-f]{64})", rest)))
    return found


def test_sbom_lists_the_pinned_dependencies() -> None:
    made = make("sbom")
    assert (made.returncode, made.stderr) == (0, "")
    document = json.loads((ROOT / "build" / "sbom.cdx.json").read_bytes())
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


def test_audit_without_the_network_fails() -> None:
    nowhere = "http://127.0.0.1:1"
    ended = make("audit", HTTPS_PROXY=nowhere, https_proxy=nowhere, HTTP_PROXY=nowhere, http_proxy=nowhere, NO_PROXY="")
    assert ended.returncode != 0
    sentence = "error: Nothing was audited: the advisory service can't be reached, or does not know a dependency."
    assert [line for line in ended.stderr.splitlines() if line.startswith("error:")] == [sentence]
    assert not (ROOT / "build" / "audit.json").exists()
