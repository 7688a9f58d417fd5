"""Reads a place written on one line, such as `Guadalajara, Jalisco`, or a key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from localidades_api.search.rows import MatchResult, MatchRow

if TYPE_CHECKING:
    from localidades_api.search.index import NameIndex

_KEY_DIGITS = {8, 9}


def match_line(index: "NameIndex", text: str) -> tuple[MatchRow, MatchResult]:
    """Return what a text means, and the text as a row: a name, perhaps with municipio and estado after it, or a key.

    The reading with the most areas counts if it finds anything: another may not make certain what it leaves in doubt.
    """
    readings = list(_readings(index, text))
    for row in readings[:-1]:
        result = index.match(row)
        if result.outcome != "none":
            return row, result
    return readings[-1], index.match(readings[-1])


def _readings(index: "NameIndex", text: str) -> Iterator[MatchRow]:
    """Yield the rows that a text may be, those with the most areas first, and the text as a whole last."""
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
