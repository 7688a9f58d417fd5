"""INEGI's file of Hidalgo (tests/data): a real import."""

import zipfile

import pytest

from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import read_catalogue
from tests.support.names import HIDALGO
from tests.support.wire import LOCALIDADES


def test_file_is_read_as_it_is_published() -> None:
    """Every name, point and population, compared with a split of the file's lines."""
    with zipfile.ZipFile(HIDALGO) as archive:
        [member] = archive.namelist()
        lines = archive.read(member).decode().splitlines()[1:]
    published = [line[1:-1].split('","') for line in lines]
    assert len(published) == 5_291
    read = {row.id: row for row in read_catalogue(HIDALGO).localities}
    assert len(read) == 5_291
    for cvegeo, *_, nombre, ambito, _, _, latitud, longitud, altitud, _, poblacion, _, _, viviendas in published:
        row = read[int(cvegeo)]
        assert (row.nombre, row.ambito, row.altitud) == (nombre, ambito, int(altitud))
        assert (row.latitud, row.longitud) == pytest.approx((float(latitud), float(longitud)), abs=1e-6)
        assert [row.poblacion, row.viviendas] == [
            None if figure in {"-", "*"} else int(figure) for figure in (poblacion, viviendas)
        ]


async def test_every_localidad_is_imported_and_served(database: str) -> None:
    report = await import_into(database, HIDALGO)
    assert (report.states, report.municipalities, report.localities, report.rejected) == (1, 84, 5_291, [])
    assert report.release == "2024-10"
    async with running_app(database, wants_names=False) as app, client_of(app) as client:
        listed, pachuca = [(await client.get(path)).json() for path in (LOCALIDADES, f"{LOCALIDADES}130480001/")]
    assert listed["quantity"] == 5_291
    assert (pachuca["nombre"], pachuca["poblacion"]) == ("Pachuca de Soto", 297_848)
