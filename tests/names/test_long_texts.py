"""Of a text, only as much counts as any name of the catalogue has."""

import tracemalloc
from collections.abc import Callable

import pytest

from localidades_api.catalogue.filters import LocalityFilters
from localidades_api.names.index import NameIndex
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.rows import MatchRow
from localidades_api.names.suggestions.find import searched

ASKED: dict[str, Callable[[NameIndex, str], object]] = {
    "nombre": lambda index, text: index.match(MatchRow(text)),
    "areas": lambda index, text: index.match(MatchRow("Ixtapa", text, text)),
    "municipio with its estado": lambda index, text: index.match(MatchRow("Ixtapa", text, "Jalisco")),
    "keys": lambda index, text: index.match(MatchRow("Ixtapa", "Centla", clave=text, cve_mun=text)),
    "municipio": lambda index, text: index.match(MatchRow(text, kind="municipio")),
    "estado": lambda index, text: index.match(MatchRow(text, estado=text, kind="estado")),
    "suggestion": lambda index, text: index.suggest(text, kinds=("localidad", "municipio", "estado")),
    "search": lambda index, text: index.find(searched(text), LocalityFilters()),
    "search of municipios": lambda index, text: index.find_areas(text, "municipio"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_end_of_a_long_text_changes_nothing_and_is_not_kept(
    index: NameIndex, ask: Callable[[NameIndex, str], object]
) -> None:
    text = "Santa María Huatulco, " * 20
    assert ask(index, text) == ask(index, text[:MAX_TEXT]) == ask(index, text[:MAX_TEXT] + "xyz " * 20)
    tracemalloc.start()
    try:
        for number in range(12):
            ask(index, f"{number} x" * 30_000)  # one word of 100 kB, or 30,000 of them
            ask(index, f"{number} x," + f"{number}y" * 30_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1024**2
