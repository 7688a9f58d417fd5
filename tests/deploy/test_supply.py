"""The list of components is complete, and an audit without the network fails."""

import json
import os
import re
import subprocess

import pytest

from tests.support.wire import ROOT

pytestmark = pytest.mark.tail


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
