"""The real OpenRefine reconciles a table against the running service, and extends it."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.application import import_file
from tests.support.openrefine import PROGRAM, OpenRefine, running_openrefine
from tests.support.postgres import new_database
from tests.support.wire import serving

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
    """Lend a running OpenRefine."""
    with running_openrefine(tmp_path_factory.mktemp("openrefine")) as running:
        yield running


def reconciled(
    openrefine: OpenRefine, service: str, table: Sequence[Sequence[str]], *properties: str
) -> list[dict[str, str]]:
    """Match a table with the service, add the keys and the properties, and return its rows."""
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


def test_openrefine_finds_the_keys_of_a_thousand_dirty_names(
    openrefine: OpenRefine, real_catalogues: Path, server: str, migrated: str
) -> None:
    names = real_catalogues.parent / "matching" / "dirty_names.tsv"
    if not names.is_file():
        pytest.skip("the dirty names (beside the project) are not on this machine")
    with names.open(encoding="utf-8") as lines:
        dirty = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    table = [tuple(row[name] for name in HEAD) for row in dirty[::2][:1000]]
    with new_database(server, migrated) as url:
        for release in ("2012-06", "2018-09"):
            import_file(url, real_catalogues / f"catun_localidad_{release}.zip")
        with serving(url, LOCALIDADES_DATABASE_TIMEOUT="60") as live:  # the first request waits for the index
            rows = reconciled(openrefine, f"{live.base}/api/census/reconcile/", table, "poblacion", "cvegeo")
    matched = [row for row in rows if row["key"]]
    assert len(rows) == 1000
    # Three in four are certain, and nearly all of these are right (docs/decisions/certainty.md).
    assert len(matched) >= 0.73 * len(rows)
    assert sum(row["key"] == row["cvegeo"] for row in matched) >= 0.995 * len(matched)
    assert [row["Clave geoestadística"] for row in matched] == [row["key"] for row in matched]
    assert sum(bool(row["Población"]) for row in matched) > 100
