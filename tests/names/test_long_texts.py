"""Of a text, only as much counts as any name of the catalogue has."""

import tracemalloc
from collections.abc import Callable

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.names.find import searched
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.rows import MatchRow

ASKED: dict[str, Callable[[NameIndex, str], object]] = {
    "nombre": lambda index, text: index.match(MatchRow(text)),
    "municipio": lambda index, text: index.match(MatchRow("Ixtapa", text)),
    "estado": lambda index, text: index.match(MatchRow("Ixtapa", None, text)),
    "municipio with its estado": lambda index, text: index.match(MatchRow("Ixtapa", text, "Jalisco")),
    "every area": lambda index, text: index.match(MatchRow("Ixtapa", text, text)),
    "cve_mun": lambda index, text: index.match(MatchRow("Ixtapa", cve_mun=text)),
    "clave": lambda index, text: index.match(MatchRow("Ixtapa", "Centla", clave=text)),
    "the name of a municipio": lambda index, text: index.match(MatchRow(text, kind="municipio")),
    "the name of an estado": lambda index, text: index.match(MatchRow(text, estado=text, kind="estado")),
    "a suggestion": lambda index, text: index.suggest(text, kinds=("localidad", "municipio", "estado")),
    "a search": lambda index, text: index.find(searched(text), LocalityFilters()),
    "a search of municipios": lambda index, text: index.find_areas(text, "municipio"),
}


@pytest.mark.parametrize("name", ASKED)
def test_end_of_a_long_text_changes_nothing_and_is_not_kept(index: NameIndex, name: str) -> None:
    ask = ASKED[name]
    text = "Santa María Huatulco, " * 20
    assert ask(index, text) == ask(index, text[:MAX_TEXT]) == ask(index, text[:MAX_TEXT] + "xyz " * 20)
    tracemalloc.start()
    try:
        for number in range(30):
            ask(index, f"{number} x" * 30_000)  # one word of 100 kB, or 30,000 of them
            ask(index, f"{number} x," + f"{number}y" * 30_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1024**2


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Ixtapa" + " " * 300 + "Nuevo", 140670010),
        (" " * 300 + "Ixtapa", None),
        ("Ixtapa, Puerto Vallarta, Jalisco" + " (" * 300, 140670010),
    ],
)
def test_long_name_is_matched_by_its_beginning(index: NameIndex, text: str, right: int | None) -> None:
    best = index.match(MatchRow(text)).best
    assert (best and best.id) == right
