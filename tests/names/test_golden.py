"""What rows, beginnings and searches lead to among invented places: tests/golden has a line for each.

A line has what is given and, behind the arrow, the outcome and the place, which a person can judge. To try another
text, add a line that ends with the arrow, and run this test with --regen.
"""

from collections.abc import Callable
from typing import Any

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.keys import KINDS
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former
from localidades_api.names.rows import MatchRow
from localidades_api.names.suggestions.find import searched
from localidades_api.names.weights import SURE
from tests.support.golden import GOLDEN, assert_golden
from tests.support.names import PLACES, WITHDRAWN, place, places_of

# More homonyms and similar names than are compared.
MANY = (
    *(place(141200100 + at, "Las Palmas", "Zapopan", "Jalisco", at) for at in range(27)),
    *(place((32001 + at) * 10_000 + 1, "Villa Unión", f"Mpio {at}", "Zacatecas") for at in range(26)),
    *(place(141200200 + at, f"Pozo {at}", "Zapopan", "Jalisco", 9 * at) for at in range(14)),
    *(place(230040010 + at, "Benito Juárez", "Othón P. Blanco", "Quintana Roo", 200) for at in range(9)),
)
# Towns that are known by a part of their name, which hamlets beside them and elsewhere have, or other towns.
TOWNS = places_of("""
    30010001  | Ciudad Constitución     | Comondú               | Baja California Sur | 40935
    30010002  | San José                | Comondú               | Baja California Sur | 90
    30020001  | Santa Rosalía           | Mulegé                | Baja California Sur | 14160
    30020002  | Mulegé                  | Mulegé                | Baja California Sur | 3821
    30080001  | San José del Cabo       | Los Cabos             | Baja California Sur | 69788
    30080002  | San José                | Los Cabos             | Baja California Sur | 12
    30080003  | San Lucas               | Los Cabos             | Baja California Sur | 40
    80370001  | Juárez                  | Juárez                | Chihuahua           | 1321004
    100120052 | Ciudad Juárez           | Lerdo                 | Durango             | 7643
    130100002 | Cardonal                | Atitalaquia           | Hidalgo             | 2000
    130150001 | Cardonal                | Cardonal              | Hidalgo             |
    130150002 | 18 de Marzo             | Cardonal              | Hidalgo             |
    130150003 | Álamo                   | Cardonal              | Hidalgo             |
    130660001 | Tezontepec              | Villa de Tezontepec   | Hidalgo             | 9000
    130670001 | Tezontepec de Aldama    | Tezontepec de Aldama  | Hidalgo             | 8000
    130670002 | Panuaya                 | Tezontepec de Aldama  | Hidalgo             | 3000
    140610060 | Ciudad Juárez           | Mezquitic             | Jalisco             | 60
    140610061 | Rancho Juárez           | Mezquitic             | Jalisco             | 6
    141200001 | Zapopan                 | Zapopan               | Jalisco             | 1257547
    141200066 | Santa Ana Tepetitlán    | Zapopan               | Jalisco             | 32000
    151060001 | Toluca de Lerdo         | Toluca                | México              | 223876
    151060020 | San Lorenzo Tepaltitlán | Toluca                | México              | 30000
    202090003 | La Trinidad             | San Juan Mixtepec     | Oaxaca              |
    230050001 | Cancún                  | Benito Juárez         | Quintana Roo        | 888797
""")
CIENEGAS = place(
    50070001, "Cuatro Ciénegas de Carranza", "Cuatro Ciénegas", "Coahuila de Zaragoza", 10_395,
    former=(Former("Villa Carranza", "Cuatro Ciénegas", 50070012),),
)  # fmt: skip


@pytest.fixture(scope="module")
def index(index_of: Callable[..., NameIndex]) -> NameIndex:
    return index_of(*PLACES, *MANY, *TOWNS, CIENEGAS, withdrawn=WITHDRAWN)


def assert_lines(name: str, answer: Callable[[str], str]) -> None:
    """Compare each line of a golden file, except headings, with the answer to what it gives."""
    lines = []
    for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines():
        given, arrow, _ = line.rpartition(" ->")
        lines.append(f"{given} -> {answer(given)}".rstrip() if arrow else line)
    assert_golden(name, "".join(f"{line}\n" for line in lines).encode())


def test_rows_lead_to_the_judged_places(index: NameIndex) -> None:
    """`seguro` is the least probability of a certain place; behind the place is what differs."""

    def answer(given: str) -> str:
        cells: dict[str, Any] = dict(cell.split("=", 1) for cell in given.split("; "))
        bound = float(cells.pop("seguro", SURE))
        for axis in cells.keys() & {"latitud", "longitud"}:
            cells[axis] = float(cells[axis])
        found = index.match(MatchRow(**cells), bound)
        if not found.best:
            return found.outcome
        return "; ".join([f"{found.outcome} {found.best.label}", *(fault.code for fault in found.best.faults)])

    assert_lines("matches.txt", answer)


def test_beginnings_suggest_the_judged_places(index: NameIndex) -> None:
    """In brackets is why."""

    def answer(given: str) -> str:
        kinds, _, text = given.partition(": ")
        wanted = {kind for kind in KINDS if kind in kinds.split(",")}
        return " | ".join(f"{one.label} [{one.match}]" for one in index.suggest(text, kinds=wanted, limit=3))

    assert_lines("suggestions.txt", answer)


def test_searches_find_the_judged_places(index: NameIndex) -> None:
    def answer(given: str) -> str:
        filters, _, text = given.partition(": ")
        chosen = LocalityFilters.model_validate(dict(one.split("=") for one in filters.split("&") if one))
        found = [name for _, name in index.at(index.find(searched(text), chosen))]
        return f"{len(found)} {', '.join(found[:3])}"

    assert_lines("searches.txt", answer)
