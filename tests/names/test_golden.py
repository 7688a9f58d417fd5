"""What rows, beginnings and searches lead to among invented places: tests/golden has a line for each.

A line has what is given and, behind the arrow, the outcome and the place, which a person can judge. To try another
text, add a line that ends with the arrow, and run this test with --regen.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import KEY_DIGITS
from localidades_api.names.build import build_index
from localidades_api.names.find import searched
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former, IndexedPlace
from localidades_api.names.rows import MatchRow
from tests.support.golden import GOLDEN, assert_golden
from tests.support.names import PLACES, WITHDRAWN

# More homonyms than are compared.
MANY = (
    *(IndexedPlace(141200100 + at, "Las Palmas", 14120, "Zapopan", 14, "Jalisco", "R", at) for at in range(27)),
    *(
        IndexedPlace((32001 + at) * 10_000 + 1, "Villa Unión", 32001 + at, f"Mpio {at}", 32, "Zacatecas", is_seat=True)
        for at in range(26)
    ),
)
# More similar names than are compared, and a town that is known by a part of its name.
MORE = (
    *(IndexedPlace(141200200 + at, f"Pozo {at}", 14120, "Zapopan", 14, "Jalisco", "R", 9 * at) for at in range(14)),
    IndexedPlace(141200001, "Zapopan", 14120, "Zapopan", 14, "Jalisco", "U", 1_257_547, 20.72, -103.39, is_seat=True),
    IndexedPlace(141200066, "Santa Ana Tepetitlán", 14120, "Zapopan", 14, "Jalisco", "U", 32_000, 20.61, -103.44),
    IndexedPlace(30080001, "San José del Cabo", 3008, "Los Cabos", 3, "Baja California Sur", "U", 69_788, is_seat=True),
    IndexedPlace(30080002, "San José", 3008, "Los Cabos", 3, "Baja California Sur", "R", 12),
    IndexedPlace(30010001, "Ciudad Constitución", 3001, "Comondú", 3, "Baja California Sur", "U", 40_935, is_seat=True),
    IndexedPlace(151060001, "Toluca de Lerdo", 15106, "Toluca", 15, "México", "U", 223_876, is_seat=True),
    IndexedPlace(151060020, "San Lorenzo Tepaltitlán", 15106, "Toluca", 15, "México", "U", 30_000, 19.3, -99.63),
    IndexedPlace(80370001, "Juárez", 8037, "Juárez", 8, "Chihuahua", "U", 1_321_004, is_seat=True),
    IndexedPlace(100120052, "Ciudad Juárez", 10012, "Lerdo", 10, "Durango", "U", 7_643, 25.47, -103.59),
    IndexedPlace(50070001, "Cuatro Ciénegas de Carranza", 5007, "Cuatro Ciénegas", 5, "Coahuila de Zaragoza", "U",
                 10_395, is_seat=True, former=(Former("Villa Carranza", "Cuatro Ciénegas", 50070012),)),
)  # fmt: skip
INDEXED = (*PLACES, *MANY, *MORE)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    folder = tmp_path_factory.mktemp("golden") / "names"
    build_index(folder, INDEXED, WITHDRAWN)
    opened = NameIndex(folder)
    yield opened
    opened.close()


def assert_lines(name: str, answer: Callable[[str], str]) -> None:
    """Compare each line of a golden file with the answer to what it gives."""
    given = [line.rpartition(" ->")[0] for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]
    assert_golden(name, "".join(f"{one} -> {answer(one)}".rstrip() + "\n" for one in given).encode())


def test_rows_lead_to_the_judged_places(index: NameIndex) -> None:
    def answer(given: str) -> str:
        cells: dict[str, Any] = dict(cell.split("=", 1) for cell in given.split("; "))
        for axis in cells.keys() & {"latitud", "longitud"}:
            cells[axis] = float(cells[axis])
        found = index.match(MatchRow(**cells))
        return f"{found.outcome} {found.best.label if found.best else ''}"

    assert_lines("matches.txt", answer)


def test_beginnings_suggest_the_judged_places(index: NameIndex) -> None:
    def answer(given: str) -> str:
        kinds, _, text = given.partition(": ")
        wanted = {kind for kind in KEY_DIGITS if kind in kinds.split(",")}
        return " | ".join(one.label for one in index.suggest(text, kinds=wanted, limit=3))

    assert_lines("suggestions.txt", answer)


def test_searches_find_the_judged_places(index: NameIndex) -> None:
    def answer(given: str) -> str:
        filters, _, text = given.partition(": ")
        chosen = LocalityFilters(**dict([filters.split("=")] if filters else []))
        found = [name for _, name in index.at(index.find(searched(text), chosen))]
        return f"{len(found)} {', '.join(found[:3])}"

    assert_lines("searches.txt", answer)
