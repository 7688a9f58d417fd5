"""Clients that are generated as the guide says compile, and read the running service."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.deploy.guides import DOCS, SERVICE
from tests.support.catalogue import TRAPS
from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ask

pytestmark = pytest.mark.tail

CLIENTS = Path(__file__).parents[1] / "clients"
PYTHON = CLIENTS / "python"
ENVIRONMENT = PYTHON / ".venv" / "bin"
WITH_RUFF = f"{ENVIRONMENT}{os.pathsep}{os.environ['PATH']}"  # the generator formats with the ruff on its path

CHOSEN = [place.nombre for place in TRAPS if place.cvegeo.startswith("01001")]
FOUND = {
    "quantity": 132, "first": "Aguascalientes", "chosen": CHOSEN, "cvegeo": "010010001", "municipio": "Municipio 001",
    "poblacion": 863893, "suggestion": "Aguascalientes, Municipio 001, Aguascalientes", "match": "prefix",
    "problem": "Not Found", "changes": 0, "matched": "010010001", "localidades": 132,
}  # fmt: skip


def run_program(folder: Path, program: Path | str, *arguments: object, **variables: str) -> str:
    """Run a program in a folder and return its output; fail if it does."""
    assert shutil.which(program), f"{program} is not there: `make test-tools` installs it"
    env = {**os.environ, "NO_PROXY": "*", **variables}
    words = [program, *map(str, arguments)]
    ended = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def needs_node() -> None:
    """Skip a test without Node.js, except in CI."""
    if shutil.which("npm") is None and not os.environ.get("CI"):
        pytest.skip("Node.js 20 or newer, with npm, is not on this machine")


LIBRARIES = [Path("/usr/share/java", name) for name in ("jakarta-annotation-api.jar", "httpmime.jar")]  # Debian's


def test_java_client_compiles_and_reads_the_service(live_server: str, tmp_path: Path) -> None:
    compiler = needed(shutil.which("javac"), "there is no Java compiler (openjdk-17-jdk-headless) on this machine")
    libraries = [needed(path, f"{path.name} is not on this machine: .ci/install has its package") for path in LIBRARIES]
    [generator] = (PYTHON / ".venv").rglob("openapi-generator.jar")  # has Jackson, which the client needs
    options = in_guide("| Java | `", "").partition("`")[0].split()
    arguments = ("generate", "-i", f"{live_server}/openapi.json", "-g", "java", "-o", "client", *options)
    run_program(tmp_path, "java", "-jar", generator, *arguments)
    sources = [*(tmp_path / "client" / "src" / "main" / "java").rglob("*.java"), CLIENTS / "java" / "Main.java"]
    path = os.pathsep.join(map(str, ["built", generator, *libraries]))
    run_program(tmp_path, compiler, "-d", "built", "-cp", path, *sources)
    assert run_program(tmp_path, "java", "-cp", path, "Main", live_server) == "Aguascalientes\n"


# -- The guide


def in_guide(beginning: str, service: str, end: str = "") -> str:
    """Return the guide's text after the beginning of a line, with the URL of a service."""
    text = (DOCS / "guides" / "clients.md").read_text(encoding="utf-8")
    [found] = re.findall(f"^{re.escape(beginning)}(.*?\n){re.escape(end)}", text, re.MULTILINE | re.DOTALL)
    return str(found).replace(SERVICE, service.removeprefix("http://"))


@pytest.fixture(scope="module")
def first_places(live_server: str) -> str:
    """Return the expected output of both scripts of the guide."""
    answer = ask(live_server, "/api/census/localidades/?estado_id=1&page_size=3")
    return "".join(f"{place['id']} {place['nombre']}\n" for place in json.loads(answer.body)["results"])


# The generator brings its own TypeScript; a reader's is the newest or the one before.
COMPILERS = ("node_modules/typescript/bin/tsc", "node_modules/typescript-7/bin/tsc")


def typescript_folder(folder: Path, service: str) -> Path:
    """Prepare a folder with the types of a service, as the guide does."""
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    shutil.copy(CLIENTS / "package.json", folder)
    (folder / "tsconfig.json").write_text(in_guide("```json\n", service, "```"))
    run_program(folder, "npx", "--no", "--package", *in_guide("npx --package ", service).split())
    return folder


@pytest.mark.usefixtures("needs_node")
def test_typescript_client_compiles_and_reads_the_service(live_server: str, first_places: str, tmp_path: Path) -> None:
    folder = typescript_folder(tmp_path, live_server)
    (folder / "client.ts").write_text(in_guide("```ts\n", live_server, "```"))
    shutil.copy(CLIENTS / "typescript" / "every_kind.ts", folder)
    for compiler in COMPILERS:
        run_program(folder, "node", compiler, "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess")
        assert run_program(folder, "node", "built/client.js") == first_places
        assert json.loads(run_program(folder, "node", "built/every_kind.js", live_server)) == FOUND


_PAGE = """
import { createRoot } from "react-dom/client";
import { PlaceField } from "./PlaceField.js";
createRoot(document.querySelector("form")!).render(<PlaceField name="cvegeo" />);
"""


@pytest.mark.usefixtures("needs_node")
async def test_react_example_compiles_and_sends_the_chosen_key(
    live_server: str, browser: Browser, tmp_path: Path
) -> None:
    folder = await asyncio.to_thread(typescript_folder, tmp_path, live_server)
    field = (DOCS / "examples" / "PlaceField.tsx").read_text(encoding="utf-8")
    (folder / "PlaceField.tsx").write_text(field.replace(SERVICE, live_server.removeprefix("http://")))
    (folder / "page.tsx").write_text(_PAGE)
    for compiler in COMPILERS:
        await asyncio.to_thread(run_program, folder, "node", compiler)
    bundled = await asyncio.to_thread(
        run_program, folder, folder / "node_modules" / ".bin" / "esbuild", "page.tsx", "--bundle", "--jsx=automatic"
    )
    (folder / "page.html").write_text(f"<!doctype html><meta charset=utf-8><form></form><script>{bundled}</script>")
    page = await browser.new_page()
    await page.goto((folder / "page.html").as_uri())
    key = page.locator("[name=cvegeo]")
    await page.get_by_label("Localidad").fill("ardillas")
    await expect(key).to_have_value("")
    await page.get_by_role("button", name="Ardillas de Abajo").click()
    await expect(key).to_have_value("010010004")
    await expect(page.get_by_role("button")).to_have_count(0)
    await page.get_by_label("Localidad").fill("asient")
    await expect(key).to_have_value("")
    await page.get_by_role("button", name="Asientos").click()
    await expect(key).to_have_value("010020001")
    await page.close()


def test_python_client_type_checks_and_reads_the_service(live_server: str, first_places: str, tmp_path: Path) -> None:
    package, config, script = tmp_path / "localidades_api_client", tmp_path / "config.yaml", PYTHON / "client.py"
    config.write_text(in_guide("```yaml\n", "", "```"))
    generate = (*in_guide("openapi-python-client ", live_server).split(), "--config", config, "--fail-on-warning")
    run_program(tmp_path, ENVIRONMENT / "openapi-python-client", *generate, PATH=WITH_RUFF)
    # Except for `client.py`, which is the same for every document.
    check = ("-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "--python-executable")
    checked = (ENVIRONMENT / "python", package / "api", package / "models", script)
    run_program(tmp_path, sys.executable, *check, *checked, MYPYPATH=str(tmp_path))
    printed = run_program(tmp_path, ENVIRONMENT / "python", script, live_server, PYTHONPATH=str(tmp_path))
    assert json.loads(printed) == {**FOUND, "lines": 1 + len(CHOSEN)}
    (tmp_path / "client.py").write_text(in_guide("```python\n", live_server, "```"))
    assert run_program(tmp_path, ENVIRONMENT / "python", "client.py", PYTHONPATH=str(tmp_path)) == first_places
