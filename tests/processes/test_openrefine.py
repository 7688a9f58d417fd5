"""OpenRefine reconciles a table against the running service and extends it."""

import csv
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.application import import_file
from tests.support.machine import free_port
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import ROOT, serving

PROGRAM = shutil.which("openrefine")  # Debian's package
_ALL_ROWS = json.dumps({"facets": [], "mode": "row-based"})


class OpenRefine:
    """A running OpenRefine."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def _post(self, command: str, **fields: object) -> dict[str, Any]:
        """Run a command and return its response."""
        token = self._client.get("/command/core/get-csrf-token").json()["token"]
        answer = self._client.post(f"/command/core/{command}", data={"csrf_token": token, **fields})
        answer.raise_for_status()
        content: dict[str, Any] = answer.json()
        assert content["code"] in {"ok", "pending"}, content
        return content

    def create_project(self, table: str) -> str:
        """Create a project from tab-separated lines, and return its id."""
        token = self._client.get("/command/core/get-csrf-token").json()["token"]
        answer = self._client.post(
            f"/command/core/create-project-from-upload?csrf_token={token}",
            data={
                "project-name": "places",
                "format": "text/line-based/*sv",
                "options": json.dumps({"separator": "\t", "processQuotes": False, "guessCellValueTypes": False}),
            },
            files={"project-file": ("places.tsv", table.encode(), "text/tab-separated-values")},
        )
        assert answer.status_code == 302, answer.text
        return str(httpx.URL(answer.headers["location"]).params["project"])

    def reconcile(self, project: str, service: str, column: str, details: Mapping[str, str], kind: str) -> None:
        """Reconcile a column with other columns as properties, and wait for the end."""
        manifest = _manifest(service)
        columns = [{"column": name, "property": {"id": pid, "name": pid}} for name, pid in details.items()]
        config = {
            "mode": "standard-service",
            "service": service,
            "identifierSpace": manifest["identifierSpace"],
            "schemaSpace": manifest["schemaSpace"],
            "type": next(
                {"id": one["id"], "name": one["name"]} for one in manifest["defaultTypes"] if one["id"] == kind
            ),
            "autoMatch": True,
            "columnDetails": columns,
            "limit": 0,
        }
        self._post("reconcile", project=project, columnName=column, config=json.dumps(config), engine=_ALL_ROWS)
        self._await_processes(project)

    def extend(self, project: str, service: str, column: str, properties: Sequence[str]) -> None:
        """Add columns with properties of the matched entities, and wait for the end."""
        manifest = _manifest(service)
        self._post(
            "extend-data",
            project=project,
            baseColumnName=column,
            endpoint=service,
            identifierSpace=manifest["identifierSpace"],
            schemaSpace=manifest["schemaSpace"],
            extension=json.dumps({"properties": [{"id": id_, "name": id_} for id_ in properties]}),
            columnInsertIndex="1",
            engine=_ALL_ROWS,
        )
        self._await_processes(project)

    def add_column(self, project: str, column: str, name: str, expression: str) -> None:
        """Add a column computed from another by an expression."""
        self._post(
            "add-column",
            project=project,
            baseColumnName=column,
            newColumnName=name,
            expression=expression,
            columnInsertIndex="1",
            onError="set-to-blank",
            engine=_ALL_ROWS,
        )

    def export(self, project: str) -> list[dict[str, str]]:
        """Return the rows of a project."""
        token = self._client.get("/command/core/get-csrf-token").json()["token"]
        fields = {"project": project, "format": "tsv", "engine": _ALL_ROWS, "csrf_token": token}
        answer = self._client.post("/command/core/export-rows/places.tsv", data=fields)
        answer.raise_for_status()
        head, *rows = [line.split("\t") for line in answer.content.decode().splitlines()]
        return [dict(zip(head, row, strict=True)) for row in rows]

    def _await_processes(self, project: str) -> None:
        def is_idle() -> bool:
            return not self._client.get("/command/core/get-processes", params={"project": project}).json()["processes"]

        eventually(is_idle, within=300)


def _manifest(service: str) -> dict[str, Any]:
    """Return the manifest of a service, as OpenRefine's page fetches it."""
    answer = httpx.get(service, trust_env=False, follow_redirects=True).raise_for_status()
    content: dict[str, Any] = answer.json()
    return content


@contextmanager
def running_openrefine(folder: Path) -> Iterator[OpenRefine]:
    """Start OpenRefine with its projects in a folder, and stop it."""
    assert PROGRAM
    port = free_port()
    with (folder / "openrefine.log").open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, "-p", str(port), "-d", str(folder / "projects"), "-m", "512M", "-x", "refine.headless=true"],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "HOME": str(folder)},
        )
    try:
        base = f"http://127.0.0.1:{port}"
        eventually(lambda: _answers(base))
        with httpx.Client(base_url=base, timeout=PATIENCE, trust_env=False) as client:
            yield OpenRefine(client)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)


def _answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/command/core/get-version", trust_env=False).is_success
    except httpx.TransportError:
        return False


pytestmark = [
    pytest.mark.tail,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        PROGRAM is None and "CI" not in os.environ, reason="OpenRefine (Debian's `openrefine`) is not on this machine"
    ),
]

HEAD = ("nombre", "municipio", "estado", "cvegeo")
DETAILS = {"municipio": "municipio", "estado": "estado"}
TABLE = (
    ("ASIENTOS", "Municipio 002", "AGS.", "010020001"),
    ("Azientos", "Municipio 002", "Aguascalientes", "010020001"),
    ("Ardillas de Abajo", "municipio 1", "Aguascalientes", "010010004"),
    ("Ninguno", "Municipio 001", "Aguascalientes", ""),
    ("D'Artagnan No. 5", "Municipio 001", "Aguascalientes", "010010010"),
    ("Qwrtz", "Municipio 001", "Aguascalientes", ""),
)


@pytest.fixture(scope="module")
def openrefine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenRefine]:
    """Yield a running OpenRefine."""
    with running_openrefine(tmp_path_factory.mktemp("openrefine")) as running:
        yield running


def reconciled(
    openrefine: OpenRefine, service: str, table: Sequence[Sequence[str]], *properties: str
) -> list[dict[str, str]]:
    """Match a table with the service, add keys and properties, and return its rows."""
    project = openrefine.create_project("\n".join("\t".join(row) for row in (HEAD, *table)))
    openrefine.reconcile(project, service, "nombre", DETAILS, "localidad")
    openrefine.add_column(project, "nombre", "key", "grel:cell.recon.match.id")
    openrefine.extend(project, service, "nombre", properties)
    return openrefine.export(project)


@pytest.mark.parametrize("path", ["/api/census/reconcile/", "/api/census/reconcile"])
def test_openrefine_matches_names_and_fetches_columns(openrefine: OpenRefine, live_server: str, path: str) -> None:
    rows = reconciled(openrefine, f"{live_server}{path}", TABLE, "municipio", "latitud")
    assert [row["key"] for row in rows] == [row[3] for row in TABLE]
    assert {(row["Latitud"], row["Municipio"]) for row in rows if row["key"] == "010010004"} == {
        ("21.880833", "Municipio 001")
    }


def test_openrefine_finds_the_keys_of_hundreds_of_dirty_names(
    openrefine: OpenRefine, real_catalogues: Path, server: str, migrated: str
) -> None:
    with (ROOT / "tests" / "data" / "dirty_names.tsv").open(encoding="utf-8") as lines:
        dirty = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    table = [tuple(row[name] for name in HEAD) for row in dirty[::2]]
    with new_database(server, migrated) as url:
        for release in ("2012-06", "2018-09"):
            import_file(url, real_catalogues / f"catun_localidad_{release}.zip")
        with serving(url, LOCALIDADES_DATABASE_TIMEOUT="60") as live:  # the first request waits for the index
            rows = reconciled(openrefine, f"{live.base}/api/census/reconcile/", table, "poblacion", "cvegeo")
    matched = [row for row in rows if row["key"]]
    assert len(rows) == 871
    # Three in four are certain, nearly all of them correct (docs/decisions/certainty.md).
    assert len(matched) >= 0.72 * len(rows)
    assert sum(row["key"] == row["cvegeo"] for row in matched) >= 0.995 * len(matched)
    assert [row["Clave INEGI (CVEGEO)"] for row in matched] == [row["key"] for row in matched]
    assert sum(bool(row["Población"]) for row in matched) > 100
