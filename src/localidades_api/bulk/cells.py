"""Reads the cells of a row: names, keys, degrees."""

from collections.abc import Callable

from localidades_api.catalogue.degrees import (
    BOUNDS,
    Axis,
    DegreesOutOfRangeError,
    UnreadableDegreesError,
    read_degrees,
)

_MAX_NUMBER = 1e15
_NO_VALUE = frozenset({"", "-", "--", "na", "n/a", "nd", "n/d", "sd", "s/d", "null", "none", "nan", "#n/a", "#n/d"})


class RowError(ValueError):
    """A row can't be answered; its text is a sentence for whoever sent the row. The next row is not affected."""


class UnreadablePointError(ValueError):
    """A row's point can't be read, but the rest of the row can; its text is a sentence for whoever sent the row."""


def unquoted(text: str) -> str:
    """Return what a cell says that a formula keeps as text: `="010010001"`, as the service's own download has it."""
    return text[2:-1].replace('""', '"') if text.startswith('="') and text.endswith('"') else text


def read_text(text: str) -> str | None:
    """Read a name; None if the cell is empty."""
    return text.strip() or None


def read_area(text: str) -> str | None:
    """Read the name or the key of an area; a spreadsheet may have made `39.0` of a key."""
    return text.strip().removeprefix("'").removesuffix(".0") or None


def read_key(text: str) -> str | None:
    """Read a key that a spreadsheet may have made a number: `140390001.0` is `140390001`; None for no value."""
    text = text.strip().removeprefix("'")  # which makes a text of a number
    return None if text.casefold() in _NO_VALUE else text.removesuffix(".0")


def degrees(axis: Axis) -> Callable[[str], float | None]:
    """Return the reader of a column of degrees."""

    def read(text: str) -> float | None:
        if text.strip().casefold() in _NO_VALUE:
            return None
        try:
            return read_degrees(text, axis)
        except UnreadableDegreesError:
            raise UnreadablePointError(f"`{axis}` can't be read as degrees, such as 20.6736.") from None
        except DegreesOutOfRangeError:
            raise RowError(
                f"`{axis}` must be decimal degrees from {-BOUNDS[axis]} to {BOUNDS[axis]}, such as 20.6736."
            ) from None

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
