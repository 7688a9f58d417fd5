"""Analysts' programs read downloads with the lines of the guide to files, zeros and accents included."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.processes.readers import GUIDE_LINES, run_line, run_line_of_r
from tests.support.application import database_with
from tests.support.catalogue import many
from tests.support.downloads import DOWNLOAD, read_csv
from tests.support.records import Record, in_order, row_of
from tests.support.waiting import PATIENCE
from tests.support.wire import serving

pytestmark = pytest.mark.tail

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
    folder = tmp_path_factory.mktemp("files")
    with database_with(server, migrated, {"2018-09": PLACES}) as url, serving(url) as live:
        for format_ in ("csv", "xlsx", "parquet", "gpkg"):
            answer = httpx.get(f"{live.base}{DOWNLOAD}?format={format_}", timeout=PATIENCE)
            (name,) = re.findall('filename="(.+)"', answer.headers["content-disposition"])
            (folder / name).write_bytes(answer.content)
    return folder


def read_back(language: str, line: str, folder: Path) -> list[Record]:
    """Run a line of the guide and return the records that it reads."""
    if language == "r":
        return read_csv(run_line_of_r(line, folder))
    records: list[Record] = json.loads(run_line(language, line, folder, "print(json.dumps(records))"))
    return records


@pytest.mark.parametrize(("language", "line"), GUIDE_LINES, ids=[line[:40] for _, line in GUIDE_LINES])
def test_guide_line_reads_every_record(language: str, line: str, folder: Path) -> None:
    assert read_back(language, line, folder) == [row_of(place) for place in in_order(PLACES)]


def test_layers_can_be_joined_and_use_their_spatial_index(folder: Path) -> None:
    run_line(
        "python",
        'localidades = geopandas.read_parquet("localidades-2018-09.parquet")',
        folder,
        """
import warnings
import pyogrio
import shapely
warnings.simplefilter("error")
layers = [geopandas.read_parquet("localidades-2018-09.parquet"), geopandas.read_file("localidades-2018-09.gpkg")]
assert [layer.crs.to_epsg() for layer in layers] == [4326, 4326]
mexico = geopandas.GeoDataFrame(geometry=[shapely.box(-119, 14, -86, 33)], crs="EPSG:4326")
assert [len(layer.sjoin(mexico)) for layer in layers] == [layers[0].geometry.notna().sum()] * 2
assert pyogrio.read_info("localidades-2018-09.gpkg")["capabilities"]["fast_spatial_filter"]
""",
    )


def test_guide_covers_every_kind_of_reader() -> None:
    assert Counter(language for language, _ in GUIDE_LINES) == {"python": 5, "sql": 2, "r": 1}
