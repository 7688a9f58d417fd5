import random
import re
import string
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import names
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.importer.transform import CatalogueRecords
from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow

TOWN = 2500  # people
SHORT = re.compile(r" del? ")

pytestmark = pytest.mark.tail


@pytest.fixture(scope="module")
def catalogue(real_catalogues: Path) -> CatalogueRecords:
    return names.read_catalogue(real_catalogues / "catun_localidad_2018-09.zip")


@pytest.fixture(scope="module")
def index(
    real_catalogues: Path, catalogue: CatalogueRecords, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NameIndex]:
    """Lend the index of the release 2018-09 with the names of 2012-06."""
    earlier = names.read_catalogue(real_catalogues / "catun_localidad_2012-06.zip")
    folder = tmp_path_factory.mktemp("real") / "names"
    build_index(folder, names.places_of(catalogue, earlier), names.withdrawn_of(catalogue, earlier))
    with closing(NameIndex(folder)) as index:
        yield index


def area_of(index: NameIndex, municipio_id: int) -> tuple[str, str]:
    return index.areas.municipios[municipio_id], index.areas.estados[municipio_id // 1000]


def test_queries_as_people_type_them_lead_to_what_they_mean(index: NameIndex) -> None:
    outcome = names.Outcome("queries", "97 %")
    for case in names.typed_queries(Path(__file__).parent / "queries.tsv"):
        outcome.add(case.text, case.key, [suggested.id for suggested in index.suggest(case.text, kinds=case.kinds)])
    assert outcome.first >= 0.97 * outcome.count, outcome.failures
    assert outcome.five >= 0.995 * outcome.count, outcome.failures


def test_rows_of_the_release_itself_are_never_another_places(index: NameIndex, catalogue: CatalogueRecords) -> None:
    """Except for a village with the name of its cabecera."""
    row: MatchRow
    nombres = {row.id: fold(row.nombre) for row in catalogue.localities}
    for row, key in islice(names.rows_of(catalogue), 0, None, 20):
        seat = key // KEYS_OF_A_MUNICIPIO * KEYS_OF_A_MUNICIPIO + 1
        namesake = seat if nombres.get(seat) == nombres[key] else None
        assert index.match(row).id in {key, namesake, None}, row


def certain_of_seats(index: NameIndex, rows: Iterable[tuple[MatchRow, int]]) -> tuple[int, dict[int, MatchRow]]:
    """Return how many rows that mean seats are certain, and those whose key is another than the seat's."""
    keys = [(row, seat, index.match(row).id) for row, seat in rows]
    return sum(key is not None for *_, key in keys), {seat: row for row, seat, key in keys if key not in {None, seat}}


def test_name_of_a_municipio_leads_to_its_seat_first(index: NameIndex, catalogue: CatalogueRecords) -> None:
    """Or to that of its namesake in the estado: alone, nothing tells the two apart. Most are certain."""
    keys = {row.id for row in catalogue.localities}
    seats: dict[tuple[int, str], set[int]] = {}
    for id_, name in index.areas.municipios.items():
        if (seat := id_ * KEYS_OF_A_MUNICIPIO + 1) in keys:
            seats.setdefault((id_ // 1000, name), set()).add(seat)
    assert len(seats) > 2450
    certain = 0
    for (estado_id, name), wanted in seats.items():
        result = index.match(MatchRow(name, None, index.areas.estados[estado_id]))
        assert result.candidates[0].id in wanted, name
        assert result.id is None or wanted == {result.id}, name
        certain += result.id is not None
    assert certain > len(seats) / 2


def test_homonyms_without_a_point_are_never_certain_but_for_a_cabecera(
    index: NameIndex, catalogue: CatalogueRecords
) -> None:
    by_name: dict[tuple[int, str], list[int]] = {}
    for row in catalogue.localities:
        by_name.setdefault((row.municipio_id, fold(row.nombre)), []).append(row.id)
    homonyms = {name: ids for name, ids in by_name.items() if len(ids) > 1}
    assert len(homonyms) > 10_000
    for (municipio_id, name), ids in islice(homonyms.items(), 0, None, 4):
        result = index.match(MatchRow(name, *area_of(index, municipio_id)))
        seat = municipio_id * KEYS_OF_A_MUNICIPIO + 1
        assert result.outcome == "ambiguous" or result.id in {seat}.intersection(ids), (name, municipio_id)
        assert {candidate.id for candidate in result.candidates} & set(ids), (name, municipio_id)


def test_short_names_of_towns_and_municipios_are_hardly_ever_another_place(
    index: NameIndex, catalogue: CatalogueRecords
) -> None:
    towns = [
        (MatchRow(short, *area_of(index, row.municipio_id)), row.id)
        for row in catalogue.localities
        if (row.poblacion or 0) >= TOWN and (short := SHORT.split(row.nombre)[0]) != row.nombre
    ]
    assert len(towns) > 500
    _, wrong = certain_of_seats(index, towns)
    assert len(wrong) <= 3, wrong
    seats = [
        (MatchRow(short, *area_of(index, id_)), id_ * KEYS_OF_A_MUNICIPIO + 1)
        for id_, name in index.areas.municipios.items()
        if (short := SHORT.split(name)[0]) != name
    ]
    certain, wrong = certain_of_seats(index, seats)
    assert certain
    assert len(wrong) <= 5, wrong


def with_a_letter_wrong(name: str) -> str:
    """Put another letter in place of one; which, the name itself decides."""
    chance = random.Random(name)  # noqa: S311  # the same in every run
    at = chance.choice([index for index, letter in enumerate(name) if letter.isalpha()])
    others = [letter for letter in string.ascii_lowercase if letter != fold(name[at])]
    return name[:at] + chance.choice(others) + name[at + 1 :]


@pytest.mark.parametrize(
    "typed", [str.upper, fold, lambda name: " ".join(reversed(name.split())), with_a_letter_wrong],
    ids=["in capitals", "folded", "in another order", "with a letter wrong"],
)  # fmt: skip
def test_name_is_among_the_first_five_suggestions_of_its_municipio(
    index: NameIndex, catalogue: CatalogueRecords, typed: Callable[[str], str]
) -> None:
    """Homonyms count for each other; the names with signs of their own are those that INEGI's files damaged most."""
    odd = [row for row in catalogue.localities if set(row.nombre) & set("°´#:&½`'\"")]
    missing = []
    for row in [*islice(catalogue.localities, 0, None, 2000), *islice(odd, 0, None, 20)]:
        suggested = index.suggest(typed(row.nombre), municipio_id=row.municipio_id, limit=5)
        if fold(row.nombre) not in [fold(place.nombre) for place in suggested]:
            missing.append((row.nombre, row.id))
    # A number in letters is none with a letter wrong.
    assert missing == ([("Parcela Diecisiete", 20015051)] if typed is with_a_letter_wrong else [])
