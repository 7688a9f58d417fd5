"""OpenRefine, headless, driven through its own HTTP interface."""

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

from tests.support.machine import free_port
from tests.support.waiting import PATIENCE, eventually

PROGRAM = shutil.which("openrefine")  # Debian's package
_ALL_ROWS = json.dumps({"facets": [], "mode": "row-based"})


class OpenRefine:
    """A running OpenRefine."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def _post(self, command: str, **fields: object) -> dict[str, Any]:
        """Run a command, and return its answer."""
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
        """Reconcile a column, with other columns as properties, and wait until that is done."""
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
        """Add columns with properties of the matched entities, and wait until they are there."""
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
        """Add a column of what an expression makes of another."""
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
