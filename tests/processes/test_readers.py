"""The lines of the guide to files: analysts' programs read what the service holds, zeros and accents included."""

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.downloads import DOWNLOAD, read_csv
from tests.support.machine import READERS, needed
from tests.support.postgres import new_database
from tests.support.records import Record, in_order, row_of
from tests.support.wire import ROOT, environment, serving

GUIDE = (ROOT / "docs" / "guides" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|sql|r)\n(.*?)\n```$", GUIDE, re.MULTILINE | re.DOTALL)
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
    """Lend a folder with each file of a release."""
    folder = tmp_path_factory.mktemp("files")
    with new_database(server, migrated) as url:
        import_file(url, write_catalogue(folder / "catun_localidad_2018-09.csv", PLACES))
        with serving(url) as live:
            for format_ in ("csv", "xlsx", "parquet", "gpkg"):
                answer = httpx.get(f"{live.base}{DOWNLOAD}?format={format_}", timeout=60)
                (name,) = re.findall('filename="(.+)"', answer.headers["content-disposition"])
                (folder / name).write_bytes(answer.content)
    return folder


_FRAME = """
import json, geopandas, pandas
{line}
if isinstance(localidades, geopandas.GeoDataFrame):
    assert localidades.crs.to_authority() in {{("OGC", "CRS84"), ("EPSG", "4326")}}
    assert localidades.geometry.isna().equals(localidades.longitud.isna())
    assert localidades.geometry.x.equals(localidades.longitud)
    assert localidades.geometry.y.equals(localidades.latitud)
localidades = pandas.DataFrame(localidades.drop(columns="geometry", errors="ignore"))
values = localidades.astype(object).where(localidades.notna(), None).values.tolist()
print(json.dumps([dict(zip(localidades.columns, row)) for row in values]))
"""
_QUERY = """
import json, duckdb
found = duckdb.sql({line!r})
rows = [dict(zip(found.columns, row)) for row in found.fetchall()]
print(json.dumps([{{name: value for name, value in row.items() if name != "geometry"}} for row in rows]))
"""
_R = """{line}
write.csv(localidades, "read.csv", row.names = FALSE, na = "", eol = "\\r\\n", fileEncoding = "UTF-8")
"""


def output_of(folder: Path, *command: str) -> str:
    ended = subprocess.run(
        command, cwd=folder, env=environment(LC_ALL="C.UTF-8"), capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def read_back(language: str, line: str, folder: Path) -> list[Record]:
    """Run a line of the guide, and return the records that it reads."""
    if language == "r":
        output_of(
            folder,
            needed(shutil.which("Rscript"), "This test needs R: Debian's r-base-core."),
            "-e",
            _R.format(line=line),
        )
        return read_csv((folder / "read.csv").read_bytes())
    program = {"python": _FRAME, "sql": _QUERY}[language].format(line=line)
    records: list[Record] = json.loads(
        output_of(folder, needed(READERS, "This test needs `make test`."), "-c", program)
    )
    return records


@pytest.mark.parametrize(("language", "line"), BLOCKS, ids=[line[:40] for _, line in BLOCKS])
def test_line_of_the_guide_reads_every_record_as_it_is(language: str, line: str, folder: Path) -> None:
    assert read_back(language, line, folder) == [row_of(place) for place in in_order(PLACES)]


def test_guide_has_lines_for_every_kind_of_reader() -> None:
    assert Counter(language for language, _ in BLOCKS) == {"python": 5, "sql": 2, "r": 1}
