"""Filters as SQL conditions, and searches by the words of a name."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, String, cast, func, literal_column
from sqlalchemy.dialects.postgresql import TSQUERY

from localidades_api.domain.filters import LocalityFilters
from localidades_api.domain.folding import fold
from localidades_api.domain.keys import municipalities_of
from localidades_api.storage.models import WORDS_OF_NAME, localities

MAX_INDEXED_WORDS = 3  # the longest words are looked up in the index; the names found are then searched for the rest
# The same without the index: for a few names it is faster to read each than to look up a word of the whole country.
WORDS_AS_READ = WORDS_OF_NAME.replace("folded", "folded || ''")


def conditions(filters: LocalityFilters) -> list[ColumnElement[bool]]:
    """Return the conditions of the filters, without the one on the release."""
    columns = localities.c
    found: list[ColumnElement[bool]] = []
    if filters.municipio_id is not None:
        found.append(columns.municipio_id == filters.municipio_id)
    if filters.estado_id is not None:
        found.append(columns.municipio_id.between(*municipalities_of(filters.estado_id)))
    if filters.clave is not None:
        found.append(columns.clave == filters.clave)
    if filters.ambito is not None:
        found.append(columns.ambito == filters.ambito)
    if filters.cvegeo is not None:
        found.append(columns.id == func.any([int(key) for key in filters.cvegeo.split(",")]))
    if filters.search is not None:
        words = distinct_words(fold(filters.search))
        found.append(_have(WORDS_OF_NAME, words[:MAX_INDEXED_WORDS]))  # without words it matches nothing
        if rest := words[MAX_INDEXED_WORDS:]:
            found.append(_have(WORDS_AS_READ, rest))
    return found


def distinct_words(folded: str) -> list[str]:
    """Return the words that a name must have, longest first; `san` is left out beside `santa`, which begins with it."""
    words = sorted(set(folded.split()), key=lambda word: (len(word), word), reverse=True)
    return [word for index, word in enumerate(words) if not any(one.startswith(word) for one in words[:index])]


def prefixes(words: Iterable[str]) -> str:
    """Write a tsquery for names that have a word that begins with each of these."""
    return " & ".join(f"'{word}':*" for word in words)


def _have(expression: str, words: Iterable[str]) -> ColumnElement[bool]:
    column: ColumnElement[str] = literal_column(expression)
    return column.bool_op("@@")(cast(cast(prefixes(words), String), TSQUERY))
