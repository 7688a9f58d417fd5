"""OpenRefine reconciles a table against the running service and extends it."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from tests.support.machine import free_port
from tests.support.waiting import PATIENCE, eventually

PROGRAM = shutil.which("openrefine")  # Debian's package
pytestmark = [
    pytest.mark.tail,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        PROGRAM is None and "CI" not in os.environ, reason="OpenRefine (Debian's `openrefine`) is not on this machine"
    ),
]

ALL_ROWS = json.dumps({"facets": [], "mode": "row-based"})
HEAD = ("nombre", "municipio", "estado", "cvegeo")
TABLE = (
    ("ASIENTOS", "Municipio 002", "AGS.", "010020001"),
    ("Asintos", "Municipio 002", "Aguascalientes", "010020001"),
    ("Ardillas de Abajo", "municipio 1", "Aguascalientes", "010010004"),
    ("Ninguno", "Municipio 001", "Aguascalientes", ""),
    ("D'Artagnan No. 5", "Municipio 001", "Aguascalientes", "010010010"),
    ("Qwrtz", "Municipio 001", "Aguascalientes", ""),
)


@pytest.fixture(scope="module")
def openrefine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Yield a client of a running OpenRefine."""
    folder, port = tmp_path_factory.mktemp("openrefine"), free_port()
    words = [str(PROGRAM), "-p", str(port), "-d", str(folder / "projects"), "-m", "512M", "-x", "refine.headless=true"]
    env = {**os.environ, "HOME": str(folder)}
    with (folder / "openrefine.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=env)
    try:
        base = f"http://127.0.0.1:{port}/command/core/"
        with httpx.Client(base_url=base, timeout=PATIENCE, trust_env=False) as client:

            def answers() -> bool:
                try:
                    return client.get("get-version").is_success
                except httpx.TransportError:
                    return False

            eventually(answers)
            yield client
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)


def post(client: httpx.Client, command: str, files: Any = None, **fields: object) -> httpx.Response:  # noqa: ANN401  # httpx's
    """Run a command; what isn't text is sent as JSON."""
    token = client.get("get-csrf-token").json()["token"]
    data = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    url = f"{command}?csrf_token={token}"  # a form with a file has it in the address only
    answer = client.post(url, data={"csrf_token": token, **data}, files=files)
    assert not answer.is_error, answer.text
    return answer


def reconciled(
    client: httpx.Client, service: str, table: Sequence[Sequence[str]], *properties: str
) -> list[dict[str, str]]:
    """Match a table with the service, add keys and properties, and return its rows."""
    lines = "\n".join("\t".join(row) for row in (HEAD, *table)).encode()
    options = {"separator": "\t", "processQuotes": False, "guessCellValueTypes": False}
    created = post(client, "create-project-from-upload", {"project-file": ("places.tsv", lines)},
                   **{"project-name": "places", "format": "text/line-based/*sv", "options": options})  # fmt: skip
    project = httpx.URL(created.headers["location"]).params["project"]
    manifest = httpx.get(service, trust_env=False, follow_redirects=True, timeout=PATIENCE).raise_for_status().json()
    spaces = {name: manifest[name] for name in ("identifierSpace", "schemaSpace")}

    def run(command: str, **fields: object) -> None:
        assert post(client, command, project=project, engine=ALL_ROWS, **fields).json()["code"] in {"ok", "pending"}
        running = {"project": project}
        eventually(lambda: not client.get("get-processes", params=running).json()["processes"], within=300)

    config = {
        "mode": "standard-service",
        "service": service,
        **spaces,
        "type": next(kind for kind in manifest["defaultTypes"] if kind["id"] == "localidad"),
        "autoMatch": True,
        "columnDetails": [{"column": name, "property": {"id": name, "name": name}} for name in ("municipio", "estado")],
        "limit": 0,
    }
    run("reconcile", columnName="nombre", config=config)
    added = {"baseColumnName": "nombre", "columnInsertIndex": "1"}
    run("add-column", **added, newColumnName="key", expression="grel:cell.recon.match.id", onError="set-to-blank")
    extension = {"properties": [{"id": name, "name": name} for name in properties]}
    run("extend-data", **added, endpoint=service, **spaces, extension=extension)
    exported = post(client, "export-rows/places.tsv", project=project, format="tsv", engine=ALL_ROWS)
    head, *rows = [line.split("\t") for line in exported.content.decode().splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("path", ["/api/census/reconcile/", "/api/census/reconcile"])
def test_openrefine_matches_names_and_fetches_columns(openrefine: httpx.Client, live_server: str, path: str) -> None:
    rows = reconciled(openrefine, f"{live_server}{path}", TABLE, "municipio", "latitud")
    assert [row["key"] for row in rows] == [row[3] for row in TABLE]
    fetched = {(row["Latitud"], row["Municipio"]) for row in rows if row["key"] == "010010004"}
    assert fetched == {("21.880833", "Municipio 001")}
