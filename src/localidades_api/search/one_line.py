"""A place that is written on one line, such as `Guadalajara, Jalisco`, or that is asked for by its key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localidades_api.search.rows import MatchResult, MatchRow

if TYPE_CHECKING:
    from localidades_api.search.index import NameIndex

_KEY_DIGITS = {8, 9}
_CERTAIN = ("none", "ambiguous", "sure", "exact")


def match_line(index: "NameIndex", text: str) -> MatchResult:
    """Return what a text means that may hold the municipio and the estado after the name, or that is a key."""
    results = []
    for row in _readings(index, text):
        result = index.match(row)
        if result.outcome == "exact":
            return result
        results.append(result)
    return max(results, key=lambda result: (_CERTAIN.index(result.outcome), result.best.score if result.best else 0))


def _readings(index: "NameIndex", text: str) -> Iterator[MatchRow]:
    """Yield the rows that a text may be; the text as a whole comes last, and is always one of them."""
    digits = text.strip()
    if digits.isdecimal() and len(digits) in _KEY_DIGITS:
        yield MatchRow(cvegeo=digits)
        return
    name, _, last = (part.strip() for part in text.rpartition(","))
    if name and last:
        inner, _, municipio = (part.strip() for part in name.rpartition(","))
        is_estado = index.areas.find_state(last) is not None
        if is_estado and inner and municipio:
            yield MatchRow(inner, municipio, last)
        if is_estado:
            yield MatchRow(name, None, last)
        elif index.areas.find_municipios(last, None):
            yield MatchRow(name, last)
    yield MatchRow(text)
