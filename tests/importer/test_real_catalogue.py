"""INEGI's own files, where they lie beside the project; a machine without them skips all of this."""

import gc
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.releases import get_release_snapshot
from tests.support.application import import_into

CUTS = {"2012-06": 299_638, "2018-09": 304_363}
CVEGEO, CLAVE, NOMBRE, LATITUD, LONGITUD = 0, 7, 8, 12, 13


@pytest.fixture(scope="module", autouse=True)
def _without_cycle_collection() -> Iterator[None]:
    """Spare the collector the millions of objects that these tests keep."""
    gc.disable()
    yield
    gc.enable()


def lines_of(path: Path) -> list[list[str]]:
    """Return the rows of the member in windows-1252; the importer reads the one in UTF-8."""
    with zipfile.ZipFile(path) as archive:
        [member] = [name for name in archive.namelist() if not name.endswith("_utf.csv")]
        text = archive.read(member).decode("windows-1252")
    return [line[1:-1].split('","') for line in text.split("\r\n")[1:] if line]


async def test_both_cuts_are_published_compared_and_walked_through(database: str, real_catalogues: Path) -> None:
    """Every locality of the files, taken apart by nothing but a split, comes once and in order."""
    files = {cut: real_catalogues / f"catun_localidad_{cut}.zip" for cut in CUTS}
    reports = [await import_into(database, file) for file in files.values()]
    assert {report.release: report.localities for report in reports} == CUTS
    assert [(report.states, report.rejected, report.withdrawn) for report in reports] == [(32, [], 0)] * 2
    assert reports[0].municipalities == 2_457
    comparison = reports[1].comparison
    assert (reports[0].comparison.previous, comparison.previous) == (None, "2012-06")
    assert (comparison.added, comparison.removed, comparison.renamed) == (18_149, 13_424, 4_749)
    rows = {cut: lines_of(file) for cut, file in files.items()}
    old, new = ({row[CVEGEO]: row[LATITUD : LONGITUD + 1] for row in rows[cut]} for cut in CUTS)
    assert comparison.relocated == sum(old[key] != new[key] for key in old.keys() & new.keys())
    service = Database.for_reading(database, pool_size=1, timeout=5)
    try:
        repository = CatalogueRepository(service)
        for release in (await get_release_snapshot(service)).every:
            walked = []
            for page in range(1, release.total_pages + 1):
                [results] = await repository.list_pages(release, page, page)
                walked += json.loads(f"[{results}]")
            expected = sorted((row[CLAVE], row[CVEGEO], row[NOMBRE]) for row in rows[release.name])
            assert [(one["clave"], f"{one['id']:09d}", one["nombre"]) for one in walked] == expected
    finally:
        await service.dispose()
