"""INEGI's own files, where they lie beside the project; a machine without them skips all of this."""

import asyncio
import gc
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from localidades_api.database.pool import Database
from localidades_api.database.queries.catalogue import CatalogueRepository
from localidades_api.database.queries.releases import get_release_snapshot
from localidades_api.importer.run import ImportReport
from localidades_api.importer.transform import CatalogueRecords
from tests.support.application import import_into
from tests.support.catalogue import read_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import in_thread

CUTS = {"2012-06": 299_638, "2018-09": 304_363}
CVEGEO, CLAVE, NOMBRE, LATITUD, LONGITUD = 0, 7, 8, 12, 13


class Original(NamedTuple):
    """A row of a file, taken apart by nothing but a split."""

    cvegeo: str
    clave: str
    nombre: str
    place: tuple[str, str]


class Imported(NamedTuple):
    """A database that holds both cuts, one after the other, and what the imports reported."""

    url: str
    first: ImportReport
    second: ImportReport


@pytest.fixture(scope="module", autouse=True)
def _without_cycle_collection() -> Iterator[None]:
    """Spare the collector the millions of objects that these tests keep."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def texts(real_catalogues: Path) -> dict[str, str]:
    """Lend the text of each cut from its member in windows-1252; the importer reads the one in UTF-8."""
    found = {}
    for cut in CUTS:
        with zipfile.ZipFile(real_catalogues / f"catun_localidad_{cut}.zip") as archive:
            [member] = [name for name in archive.namelist() if not name.endswith("_utf.csv")]
            found[cut] = archive.read(member).decode("windows-1252")
    return found


@pytest.fixture(scope="module")
def originals(texts: dict[str, str]) -> dict[str, list[Original]]:
    """Lend the rows of each cut in the order of the list: clave, then CVEGEO."""
    found = {}
    for cut, text in texts.items():
        rows = [line[1:-1].split('","') for line in text.split("\r\n")[1:] if line]
        places = [Original(row[CVEGEO], row[CLAVE], row[NOMBRE], (row[LATITUD], row[LONGITUD])) for row in rows]
        found[cut] = sorted(places, key=lambda place: (place.clave, place.cvegeo))
    return found


@pytest.fixture(scope="module")
def catalogues(real_catalogues: Path) -> dict[str, CatalogueRecords]:
    """Lend both cuts as the importer reads them from their zips."""
    return {cut: read_catalogue(real_catalogues / f"catun_localidad_{cut}.zip") for cut in CUTS}


@pytest.fixture(scope="module")
def imported(server: str, migrated: str, real_catalogues: Path) -> Iterator[Imported]:
    """Lend a database into which both cuts were imported."""

    async def import_both(url: str) -> list[ImportReport]:
        return [await import_into(url, real_catalogues / f"catun_localidad_{cut}.zip") for cut in CUTS]

    with new_database(server, migrated) as url:
        yield Imported(url, *in_thread(lambda: asyncio.run(import_both(url))))


def test_both_cuts_are_published_under_their_dates_without_a_rejected_row(imported: Imported) -> None:
    reports = (imported.first, imported.second)
    assert {report.release: report.localities for report in reports} == CUTS
    assert [(report.states, report.rejected, report.withdrawn) for report in reports] == [(32, [], 0)] * 2
    assert imported.first.municipalities == 2_457


def test_second_cut_is_compared_with_the_first(imported: Imported, originals: dict[str, list[Original]]) -> None:
    assert imported.first.comparison.previous is None
    comparison = imported.second.comparison
    assert comparison.previous == "2012-06"
    assert (comparison.added, comparison.removed, comparison.renamed) == (18_149, 13_424, 4_749)
    old, new = ({place.cvegeo: place for place in originals[cut]} for cut in CUTS)
    both = old.keys() & new.keys()
    assert comparison.added == len(new.keys() - old.keys())
    assert comparison.removed == len(old.keys() - new.keys())
    assert comparison.renamed == sum(old[key].nombre != new[key].nombre for key in both)
    assert comparison.relocated == sum(old[key].place != new[key].place for key in both)


@pytest.mark.parametrize("cut", CUTS)
async def test_walk_over_all_pages_gives_every_locality_of_the_file_once_in_order(
    imported: Imported, originals: dict[str, list[Original]], cut: str
) -> None:
    database = Database.for_reading(imported.url, pool_size=1, timeout=5)
    try:
        repository = CatalogueRepository(database)
        every, current = (await get_release_snapshot(database))[:2]
        assert current is not None
        assert current.name == "2018-09"
        [release] = [release for release in every if release.name == cut]
        walked: list[dict[str, Any]] = []
        for page in range(1, release.total_pages + 1):
            [results] = await repository.list_pages(release, page, page)
            walked += json.loads(f"[{results}]")
        assert not await repository.list_pages(release, release.total_pages + 1, release.total_pages + 1)
    finally:
        await database.dispose()
    assert release.total_pages == {"2012-06": 5_993, "2018-09": 6_088}[cut]
    assert [(f"{row['id']:09d}", f"{row['municipio_id']:05d}", row["clave"], row["nombre"]) for row in walked] == [
        (place.cvegeo, place.cvegeo[:5], place.clave, place.nombre) for place in originals[cut]
    ]


@pytest.mark.parametrize(
    ("cut", "separator", "encoding"),
    [
        ("2012-06", ",", "windows-1252"),
        ("2012-06", "\t", "utf-8"),
        ("2018-09", ",", "utf-8-sig"),
        ("2018-09", ",", "windows-1252"),
        ("2018-09", "\t", "utf-8-sig"),
        ("2018-09", "\t", "windows-1252"),
    ],
)
def test_text_in_every_encoding_and_separator_is_the_catalogue_of_the_zip(
    tmp_path: Path,
    catalogues: dict[str, CatalogueRecords],
    texts: dict[str, str],
    cut: str,
    separator: str,
    encoding: str,
) -> None:
    path = tmp_path / ("AGEEML.csv" if separator == "," else "AGEEML.txt")
    path.write_bytes(texts[cut].replace('","', f'"{separator}"').encode(encoding))
    same = read_catalogue(path) == catalogues[cut]  # a difference of 300,000 records is not worth printing
    path.unlink()
    assert same
