"""Reads the cells of a row: names, keys, degrees."""

import re
from collections.abc import Callable

_MAX_NUMBER = 1e15
_NO_VALUE = frozenset({"", "-", "--", "na", "n/a", "nd", "n/d", "sd", "s/d", "null", "none", "nan", "#n/a", "#n/d"})
_DECIMAL = re.compile(r"[+-]?(\d{1,6}([.,]\d{0,30})?|[.,]\d{1,30})(e[+-]\d{1,2})?", re.IGNORECASE)


class RowError(ValueError):
    """A row can't be answered; its text is a sentence for whoever sent the row. The next row is not affected."""


def read_text(text: str) -> str | None:
    """Read a name; None if the cell is empty."""
    return text.strip() or None


def read_area(text: str) -> str | None:
    """Read the name or the key of an area; a spreadsheet may have made `39.0` of a key."""
    return text.strip().removesuffix(".0") or None


def read_key(text: str) -> str | None:
    """Read a key that a spreadsheet may have made a number: `140390001.0` is `140390001`; None for no value."""
    text = text.strip()
    return None if text.casefold() in _NO_VALUE else text.removesuffix(".0")


def degrees(role: str, bound: int) -> Callable[[str], float | None]:
    """Return the reader of a column of decimal degrees, from -`bound` to `bound`."""

    def read(text: str) -> float | None:
        text = text.strip()
        if text.casefold() in _NO_VALUE:
            return None
        number = float(text.replace(",", ".")) if _DECIMAL.fullmatch(text) else bound + 1.0
        if not -bound <= number <= bound:
            raise RowError(f"`{role}` must be decimal degrees from {-bound} to {bound}, such as 20.6736.")
        return number

    return read


def as_text(role: str, value: object) -> str:
    """Return a value of JSON as the text that a cell of CSV would have; raise RowError if it is neither."""
    if value is None or value != value:  # noqa: PLR0124  # NaN, which programs write for what is missing
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"`{role}` must be a text or a number.")
    if not -_MAX_NUMBER < value < _MAX_NUMBER:
        raise RowError(f"`{role}` is a number beyond any key or degree.")
    return str(int(value)) if value == int(value) else str(value)
