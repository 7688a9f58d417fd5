import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import names
from localidades_api.domain.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.search.build import build_index
from localidades_api.search.index import NameIndex
from localidades_api.search.rows import MatchRow

TOWN = 2500  # people
SHORT = re.compile(r" del? ")

pytestmark = pytest.mark.tail


@pytest.fixture(scope="module")
def real_index(real_catalogues: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Lend the index of the release 2018-09 with the names of 2012-06."""
    catalogue = names.read_catalogue(real_catalogues / "catun_localidad_2018-09.zip")
    earlier = names.read_catalogue(real_catalogues / "catun_localidad_2012-06.zip")
    folder = tmp_path_factory.mktemp("real") / "names"
    build_index(folder, names.places_of(catalogue, earlier), names.withdrawn_of(catalogue, earlier))
    index = NameIndex(folder)
    yield index
    index.close()


def test_queries_as_people_type_them_lead_to_what_they_mean(real_index: NameIndex, real_catalogues: Path) -> None:
    assert real_catalogues.is_dir()
    outcome = names.Outcome("queries", "97 %")
    for case in names.typed_queries(Path(__file__).parent / "queries.tsv"):
        outcome.add(case.text, case.key, [found.id for found in real_index.suggest(case.text, kinds=case.kinds)])
    assert outcome.first >= 0.97 * outcome.count, outcome.failures
    assert outcome.five >= 0.995 * outcome.count, outcome.failures


def test_labels_lead_to_their_places(real_index: NameIndex, real_catalogues: Path) -> None:
    assert real_catalogues.is_dir()
    for case in islice(names.labels(real_index), 0, None, 50):
        assert real_index.suggest(case.text, limit=1)[0].id == case.key, case.text


def test_rows_of_the_release_itself_are_never_another_places(real_index: NameIndex, real_catalogues: Path) -> None:
    catalogue = names.read_catalogue(real_catalogues / "catun_localidad_2018-09.zip")
    row: MatchRow
    for row, key in islice(names.rows_of(catalogue), 0, None, 20):
        assert real_index.match(row).id in {key, None}, row


def test_typing_on_loses_none_of_the_largest_places(real_index: NameIndex, real_catalogues: Path) -> None:
    assert real_catalogues.is_dir()
    places = sorted(map(real_index.place, range(400)), key=lambda place: -(place.poblacion or 0))[:150]
    for place, text in [(one, text) for one in places for text in (one.nombre, real_index.label(one))]:
        shown = False
        for length in range(3, len(text) + 1):
            is_there = place.id in {found.id for found in real_index.suggest(text[:length])}
            assert is_there >= shown, text[:length]
            shown = is_there


def certain_of_seats(index: NameIndex, rows: Iterable[tuple[MatchRow, int]]) -> tuple[int, dict[int, MatchRow]]:
    """Return how many rows that mean seats are certain, and those whose key is another than the seat's."""
    keys = [(row, seat, index.match(row).id) for row, seat in rows]
    return sum(key is not None for *_, key in keys), {seat: row for row, seat, key in keys if key not in {None, seat}}


def test_municipios_by_estado_and_name_are_hardly_ever_in_another(real_index: NameIndex, real_catalogues: Path) -> None:
    catalogue = names.read_catalogue(real_catalogues / "catun_localidad_2018-09.zip")
    population = {row.id: row.poblacion or 0 for row in catalogue.localities}
    areas = real_index.areas
    rows = [
        (MatchRow(name, None, areas.estados[id_ // 1000]), id_ * KEYS_OF_A_MUNICIPIO + 1)
        for id_, name in areas.municipios.items()
    ]
    certain, wrong = certain_of_seats(real_index, rows)
    assert certain > len(rows) / 2
    elsewhere = {
        seat: row
        for seat, row in wrong.items()
        if (real_index.match(row).id or 0) // KEYS_OF_A_MUNICIPIO != seat // KEYS_OF_A_MUNICIPIO
    }
    assert {seat: row for seat, row in elsewhere.items() if population.get(seat, 0) > TOWN} == {}
    assert len(elsewhere) <= 5, elsewhere


def test_short_names_of_municipios_are_hardly_ever_another_place_in_them(
    real_index: NameIndex, real_catalogues: Path
) -> None:
    assert real_catalogues.is_dir()
    rows = [
        (MatchRow(short, name, real_index.areas.estados[id_ // 1000]), id_ * KEYS_OF_A_MUNICIPIO + 1)
        for id_, name in real_index.areas.municipios.items()
        if (short := SHORT.split(name)[0]) != name
    ]
    certain, wrong = certain_of_seats(real_index, rows)
    assert certain
    assert len(wrong) <= 5, wrong
