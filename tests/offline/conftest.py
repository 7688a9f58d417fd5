"""Two releases as files, and a service with both."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localidades_api.offline import Catalogue
from tests.support.application import serving_files
from tests.support.catalogue import Place, many, write_catalogue


def earlier_places() -> list[Place]:
    """Return the places of an earlier release: renamed, under other keys, and withdrawn."""
    places = {place.cvegeo: place for place in many(132)}
    moved = next(place for place in places.values() if place.nombre == "Lugar 21")
    del places[moved.cvegeo]
    del places["010010002"], places["010010003"], places["010020001"]
    gone = [
        replace(moved, cvegeo=f"{moved.cvegeo[:5]}0999"),
        Place("010010888", "Ninguno"),  # two places have this name and point now
        Place("010020777", "Asientos", latitud="-", longitud="-"),  # no point, so it may be another place
        Place("010010999", "Rancho Perdido"),
        replace(places["010010004"], nombre="Ardillas Viejas"),
    ]
    places |= {place.cvegeo: place for place in gone}
    renamed = {place.cvegeo[:5] for place in places.values() if place.nombre == "Lugar 5"}
    return [
        replace(place, nom_mun="Villa Antigua") if place.cvegeo[:5] in renamed else place for place in places.values()
    ]


@pytest.fixture(scope="session")
def releases(small_catalogue: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files of the current release and of an earlier one."""
    folder = tmp_path_factory.mktemp("earlier")
    return [small_catalogue, write_catalogue(folder / "catun_localidad_2019-01.csv", earlier_places())]


@pytest.fixture(scope="session")
def service(server: str, migrated: str, releases: list[Path]) -> Iterator[str]:
    """Yield the address of a service that has imported both releases, the earlier one first."""
    with serving_files(server, migrated, reversed(releases)) as address:
        yield address


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache folder for tests that don't change it."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def catalogue(releases: list[Path], cache: Path) -> Iterator[Catalogue]:
    """Yield the current release with the names of the earlier one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALIDADES_CACHE_DIR", str(cache))
        opened = Catalogue.open(*releases)
    with opened:
        yield opened
