"""README's steps in a copy of the clone: `make run` serves the demo, whose output README shows."""

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.deploy.guides import SERVICE, assert_prints, blocks_of, shell, steps_of
from tests.support.catalogue import many, write_catalogue
from tests.support.http_server import Response, at_paths, http_server
from tests.support.machine import free_port
from tests.support.servers import copy_clone, find_processes, lend_folder
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import ROOT, await_end_of_group, await_names, environment

pytestmark = pytest.mark.tail

INEGI = "https://www.inegi.org.mx/contenidos/app/ageeml/catun_localidad.zip"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def step(words: str) -> str:
    """Return the block of README that contains these words."""
    (found,) = [block.text for block in blocks_of("../README.md") if words in block.text]
    return found


def made_clone(folder: Path) -> Path:
    """Copy the clone with an environment where `make` has nothing to install."""
    clone = copy_clone(folder)
    for name in ("Makefile", "pyproject.toml", "requirements"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, clone / name)
    (clone / ".venv").mkdir()
    (clone / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (clone / "build" / "uv" / "bin").mkdir(parents=True)
    for stamp in ("build/uv/bin/uv", ".venv/run.stamp"):  # in the order in which `make` creates them
        (clone / stamp).touch()
    return clone


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """Yield a copy of the clone; fail if a process of it is left."""
    with lend_folder() as folder:
        yield made_clone(folder / "clone")


@pytest.fixture(scope="module")
def printed(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the service as README does, on a free port; yield its output, and stop it with Ctrl-C."""
    script = step("make run").replace("make run", f"make run PORT={free_port()}")
    log = tmp_path_factory.mktemp("run") / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", "-euc", script],  # noqa: S607  # whichever the reader has
            cwd=clone,
            env=environment(PYTHONPATH=str(clone / "src")),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(lambda: "Serving release" in log.read_text() or process.poll() is not None, within=2 * PATIENCE)
        assert process.poll() is None, log.read_text()
        yield log.read_text()
        os.killpg(process.pid, signal.SIGINT)
        process.wait(PATIENCE)
        await_end_of_group(process.pid)
        assert not find_processes(clone)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def service(printed: str) -> str:
    """Return the address that `make run` prints for the site."""
    (address,) = re.findall(r"^  site +(http://127\.0\.0\.1:[0-9]+)/$", printed, re.MULTILINE)
    return str(address)


def test_addresses_printed_by_make_run_and_links_in_the_readme_work(printed: str, service: str, clone: Path) -> None:
    assert f"  data     {clone.resolve() / '.data'}\n" in printed
    assert list(clone.glob(".data/cluster-*/PG_VERSION"))
    await_names(service)
    addresses = {service + path for path in re.findall(rf"http://{SERVICE}([^)>'\s`]*)", README)}
    assert len(addresses) >= 10
    addresses |= set(re.findall(r"^  (?:list|site|docs) +(\S+)$", printed, re.MULTILINE))
    with httpx.Client(follow_redirects=True, timeout=PATIENCE) as client:
        assert {address: client.get(address).status_code for address in addresses} == dict.fromkeys(addresses, 200)


def test_examples_in_the_readme_print_what_they_show(service: str, clone: Path) -> None:
    for command, answer in steps_of(step("$ curl").replace(SERVICE, service.removeprefix("http://"))):
        assert_prints(command, answer, clone)


# This test comes last, because it replaces the demo.
def test_import_from_a_url_replaces_the_demo(service: str, clone: Path, tmp_path: Path) -> None:
    table, packed = write_catalogue(tmp_path / "AGEEML_utf.csv", many(135)), tmp_path / "catun_localidad.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(table, table.name)
    script = step("localidades-api import")
    assert INEGI in script
    with http_server(at_paths({f"/{packed.name}": Response(packed.read_bytes())})) as inegi:
        script = script.replace(INEGI, f"{inegi}/{packed.name}")
        shell(script, clone, PYTHONPATH=str(clone / "src"), PATH=os.environ["PATH"])
    served = httpx.get(f"{service}/api/census/releases/", timeout=PATIENCE).json()
    assert [(one["release"], one["current"]) for one in served["results"]] == [("2026-11", True)]
