"""Complete results of many rows and texts, in tests/golden: each candidate with its score and its differences.

Read what changes: a slip in a bound or in the order of two steps shows only as another score.
"""

from collections.abc import Iterator
from itertools import islice

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.catalogue.folding import fold
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.names.build import build_index
from localidades_api.names.find import searched
from localidades_api.names.index import NameIndex
from localidades_api.names.places import Former, IndexedPlace, Suggested
from localidades_api.names.rows import Candidate, MatchResult, MatchRow
from tests.support.golden import assert_golden
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


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    folder = tmp_path_factory.mktemp("golden") / "names"
    build_index(folder, (*PLACES, *MANY, *MORE), WITHDRAWN)
    opened = NameIndex(folder)
    yield opened
    opened.close()


def assert_lines(name: str, lines: Iterator[str]) -> None:
    assert_golden(name, "".join(f"{line}\n" for line in lines).encode())


def misspelt(text: str) -> str:
    """Return a text with two letters in the middle swapped."""
    at = len(text) // 2
    return text[: at - 1] + text[at] + text[at - 1] + text[at + 1 :]


def forms(place: IndexedPlace) -> tuple[str, ...]:
    """Return the name of a place as people write it."""
    nombre, words = place.nombre, place.nombre.split()
    return (
        nombre,
        f"{nombre}, {place.municipio}, {place.estado}",
        fold(nombre).upper(),
        misspelt(nombre),
        " ".join(words[:-1]) or nombre[:-2],
        f"{nombre} Viejo",
        f"Ejido {nombre}",
        "".join(words),
        f"{words[0][:3]}. {' '.join(words[1:])}",
        nombre[1:],
        f"{nombre} 2",
    )


def rows() -> Iterator[MatchRow]:
    """Yield each place's name in each form, in turn with other areas, points and keys."""
    places = (*PLACES, *MANY[26:28], *MORE)
    for number, place in enumerate(places):
        other = places[(number * 7 + 3) % len(places)]
        areas = (
            (place.municipio, place.estado), (None, place.estado), (None, None), (other.municipio, place.estado),
            (misspelt(place.municipio), None), (f"{place.municipio_id % 1000:03d}", f"{place.estado_id:02d}"),
            (place.municipio, "Atlántida"),
        )  # fmt: skip
        for at, nombre in enumerate(forms(place)):
            municipio, estado = areas[(number + at) % len(areas)]
            row = MatchRow(nombre, municipio, estado)
            yield row
            if place.latitud is not None and place.longitud is not None:
                away = (0.002, 0.02, 0.06, 0.3, 2.0)[(number + at) % 5]
                yield row._replace(latitud=place.latitud + away, longitud=place.longitud, ambito="RU"[at % 2])
            yield row._replace(cvegeo=f"{(place, other)[at % 2].id:09d}")
            if at % 3 == 0:
                yield row._replace(clave=f"{(place, other)[number % 2].id % 10_000:04d}")
                yield row._replace(cve_mun=f"{(place, other)[number % 2].municipio_id:05d}")


def whole_lines() -> Iterator[MatchRow]:
    """Yield places with their areas in one text, in turn with and without the country."""
    for number, place in enumerate((*PLACES, *MORE)):
        nombre, municipio, estado = place.nombre, place.municipio, place.estado
        yield MatchRow(
            (
                f"{nombre}, México", f"{nombre}, {estado}", f"{nombre}, {municipio}, {estado}, Mx.",
                f"{nombre} ({municipio}, {estado})", f"{nombre}, {misspelt(municipio)}, {estado}",
                f"{nombre} ({estado}), Estados Unidos Mexicanos", f"{nombre}, {estado}, {municipio}",
            )[number % 7]
        )  # fmt: skip
        yield MatchRow(nombre, municipio=estado)  # in the wrong column


def areas() -> Iterator[MatchRow]:
    """Yield the names of municipios and estados in each form."""
    kinds: tuple[PlaceKind, ...] = ("municipio", "estado")
    for kind in kinds:
        named: dict[str, IndexedPlace] = {getattr(one, kind): one for one in (*PLACES, *MANY[26:28], *MORE)}
        for number, (nombre, place) in enumerate(named.items()):
            written = (
                nombre,
                misspelt(nombre),
                f"Municipio de {nombre}",
                nombre.split()[0],
                f"{nombre}, {place.estado}",
            )
            for at, text in enumerate((*written, place.nombre)):
                yield MatchRow(text, estado=(None, place.estado, "Atlántida")[(number + at) % 3], kind=kind)
            keys = f"{place.municipio_id if kind == 'municipio' else place.estado_id}", "14039", "14", "99", "32999"
            yield MatchRow(nombre, cvegeo=keys[number % 5], kind=kind)
            yield MatchRow(None, cvegeo=keys[0], kind=kind)


def candidate(one: Candidate) -> str:
    faults = [f"{fault.code} {fault.given}>{fault.found} {fault.penalty:g}" for fault in one.faults]
    return " ".join([one.cvegeo, f"{one.score:g}", *([f"({', '.join(faults)})"] if faults else [])])


def result(row: MatchRow, found: MatchResult) -> str:
    given = "|".join(f"{value:g}" if isinstance(value, float) else value for value in row if value is not None)
    best = found.best.cvegeo if found.best else "-"
    gone = f" withdrawn {found.withdrawn}" if found.withdrawn else ""
    return f"{given} = {found.outcome} {best} {found.margin:g}{gone}: {'; '.join(map(candidate, found.candidates))}"


def test_results_of_rows_equal_the_golden_file(index: NameIndex) -> None:
    every = (*islice(rows(), 0, None, 3), *whole_lines(), *areas())
    assert_lines("match-rows.txt", (result(row, index.match(row)) for row in every))


BEGINNINGS = ("l", "la", "la ", "la e", "el ", "el r", "de", "d", "e", "los", "en la", "n", "oaxaca d", "zapopan de")
KEYS = ("9", "14", "5038", "14120", "50380001", "141200001", "14.120.0001", "099", "1")


def texts() -> Iterator[str]:
    """Yield the names of places as people begin to type them, in other orders and with letters wrong."""
    for beginning in (*BEGINNINGS, *KEYS):
        yield from [beginning] * 3  # of each choice of kinds, or of filters
    for number, place in enumerate((*PLACES, *MANY[26:28], *MORE)):
        words = fold(place.nombre).split()
        municipio, estado = fold(place.municipio), fold(place.estado)
        yield from (
            place.nombre[: 1 + number % 9], " ".join(reversed(words)), f"{municipio} {words[0]}",
            misspelt(place.nombre), f"{words[0]} {estado[:4]}", f"{' '.join(words)} {municipio[:5]}",
            "".join(words), " ".join(words[1:]),
            f"{place.id:09d}"[: (9, 5, 2)[number % 3]], f"x{place.nombre[1:]} {estado}", f"{place.nombre} nuevo",
        )  # fmt: skip


def suggestion(one: Suggested) -> str:
    return f"{one.cvegeo} {one.match} {one.score:g}{f' {one.name}' if one.name else ''}"


def test_suggestions_equal_the_golden_file(index: NameIndex) -> None:
    kinds: tuple[set[PlaceKind], ...] = ({"localidad"}, {"localidad", "municipio", "estado"}, {"municipio", "estado"})
    lines = (
        f"{text} = {'; '.join(map(suggestion, index.suggest(text, kinds=kinds[at % 3], limit=4)))}"
        for at, text in enumerate(texts())
    )
    assert_lines("suggestions.txt", lines)


def test_searches_equal_the_golden_file(index: NameIndex) -> None:
    filters = LocalityFilters(), LocalityFilters(estado_id=14), LocalityFilters(ambito="R")
    lines = (
        f"{text} = {' '.join(map(str, index.find(searched(text), filters[at % 3])))}" for at, text in enumerate(texts())
    )
    assert_lines("searches.txt", lines)
