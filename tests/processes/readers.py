"""Runs the lines of the guide to files that read a download with pandas, DuckDB or R."""

import re
import shutil
import subprocess
from pathlib import Path

from tests.support.machine import READERS, needed
from tests.support.wire import ROOT, environment

_GUIDE = (ROOT / "docs" / "guides" / "files.md").read_text(encoding="utf-8")
# Pairs of a language and a line.
GUIDE_LINES: list[tuple[str, str]] = re.findall(r"^```(python|sql|r)\n(.*?)\n```$", _GUIDE, re.MULTILINE | re.DOTALL)

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
records = [dict(zip(localidades.columns, row)) for row in values]
"""
_QUERY = """
import json, duckdb
found = duckdb.sql({line!r})
rows = [dict(zip(found.columns, row)) for row in found.fetchall()]
records = [{{name: value for name, value in row.items() if name != "geometry"}} for row in rows]
"""
_R = """{line}
write.csv(localidades, "read.csv", row.names = FALSE, na = "", eol = "\\r\\n", fileEncoding = "UTF-8")
"""


def run_line(language: str, line: str, folder: Path, then: str, patience: float = 120) -> str:
    """Run a line of Python or SQL, then `then`, which can use `records` and `json`; return the output."""
    program = {"python": _FRAME, "sql": _QUERY}[language].format(line=line) + then
    return _output_of(folder, patience, needed(READERS, "`make test-tools` installs what this needs."), "-c", program)


def run_line_of_r(line: str, folder: Path, patience: float = 120) -> bytes:
    """Run a line of R; return the data frame as CSV."""
    r = needed(shutil.which("Rscript"), "This needs R: Debian's r-base-core.")
    _output_of(folder, patience, r, "-e", _R.format(line=line))
    return (folder / "read.csv").read_bytes()


def _output_of(folder: Path, patience: float, *command: str) -> str:
    variables = environment(LC_ALL="C.UTF-8") | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=patience, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
