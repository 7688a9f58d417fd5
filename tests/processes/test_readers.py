"""Analysts' programs read downloads with the lines of the guide to files, zeros and accents included."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.application import database_with
from tests.support.catalogue import many
from tests.support.downloads import DOWNLOAD, read_csv
from tests.support.machine import READERS, needed
from tests.support.records import Record, in_order, row_of
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, environment, serving

pytestmark = pytest.mark.tail

GUIDE = (ROOT / "docs" / "guides" / "files.md").read_text(encoding="utf-8")
# Pairs of a language and a line.
GUIDE_LINES: list[tuple[str, str]] = re.findall(r"^```(python|sql|r)\n(.*?)\n```$", GUIDE, re.MULTILINE | re.DOTALL)

NAMES = ["NA", "null", "None", "0001", "1e5", "TRUE", 'Con "comillas", y coma', "=1+1", "Peñón, Ñandú", "&lt;<&>",
         " \u00bd  ", "-", "'apóstrofo", "a\\b", "#5", "\u20e3\U0001f600"]  # fmt: skip
PLACES = [
    *many(132),
    *(
        replace(many(1)[0], cvegeo=f"31001{number:04d}", nombre=name, nom_ent="Yucatán")
        for number, name in enumerate(NAMES, 1)
    ),
]


@pytest.fixture(scope="module")
def folder(server: str, migrated: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with each file of a release."""
    assert {language for language, _ in GUIDE_LINES} == {"python", "sql", "r"}
    folder = tmp_path_factory.mktemp("files")
    with database_with(server, migrated, {"2018-09": PLACES}) as url, serving(url) as live:
        for format_ in ("csv", "xlsx", "parquet", "gpkg"):
            answer = httpx.get(f"{live.base}{DOWNLOAD}?format={format_}", timeout=PATIENCE)
            (name,) = re.findall('filename="(.+)"', answer.headers["content-disposition"])
            (folder / name).write_bytes(answer.content)
    return folder


FRAME = """
import json, geopandas, pandas
{line}
if isinstance(localidades, geopandas.GeoDataFrame):
    assert localidades.crs.to_authority() in {{("OGC", "CRS84"), ("EPSG", "4326")}}
    assert localidades.geometry.isna().equals(localidades.longitud.isna())
    assert localidades.geometry.x.equals(localidades.longitud)
    assert localidades.geometry.y.equals(localidades.latitud)
localidades = pandas.DataFrame(localidades.drop(columns="geometry", errors="ignore"))
values = localidades.astype(object).where(localidades.notna(), None).values.tolist()
records = [dict(zip(localidades.columns, row)) for row in values]
"""
QUERY = """
import json, duckdb
found = duckdb.sql({line!r})
rows = [dict(zip(found.columns, row)) for row in found.fetchall()]
records = [{{name: value for name, value in row.items() if name != "geometry"}} for row in rows]
"""
R = """{line}
write.csv(localidades, "read.csv", row.names = FALSE, na = "", eol = "\\r\\n", fileEncoding = "UTF-8")
"""


def run_program(folder: Path, *command: str) -> str:
    env = environment(LC_ALL="C.UTF-8", PYTHONPATH=str(ROOT))
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def run_line(language: str, line: str, folder: Path, then: str) -> str:
    """Run a line of Python or SQL, then `then`, which can use `records` and `json`; return the output."""
    program = {"python": FRAME, "sql": QUERY}[language].format(line=line) + then
    return run_program(folder, needed(READERS, "`make test-tools` installs what this needs."), "-c", program)


def read_back(language: str, line: str, folder: Path) -> list[Record]:
    """Run a line of the guide and return the records that it reads."""
    if language == "r":
        run_program(
            folder, needed(shutil.which("Rscript"), "This needs R: Debian's r-base-core."), "-e", R.format(line=line)
        )
        return read_csv((folder / "read.csv").read_bytes())
    records: list[Record] = json.loads(run_line(language, line, folder, "print(json.dumps(records))"))
    return records


@pytest.mark.parametrize(("language", "line"), GUIDE_LINES, ids=[line[:40] for _, line in GUIDE_LINES])
def test_guide_line_reads_every_record(language: str, line: str, folder: Path) -> None:
    assert read_back(language, line, folder) == [row_of(place) for place in in_order(PLACES)]
