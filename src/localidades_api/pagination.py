"""Page numbers: how they are written in a query, which positions they hold, and the links between them."""

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlencode

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from localidades_api.schemas import PAGE_SIZE

_LARGEST = 2**53 - 1  # the largest that a JSON reader keeps exactly
_MOST_DIGITS = len(str(_LARGEST))


def _only_ascii_digits(value: object) -> object:
    """Refuse what Python's int() would take besides digits: signs, spaces, underscores, other scripts."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise PydanticCustomError("page_digits", "A page is a number from 1, written in the digits 0 to 9.")
    if isinstance(value, str) and len(value) > _MOST_DIGITS:
        raise PydanticCustomError("page_size", "A page number has 16 digits at most.")
    return value


PageNumber = Annotated[
    int,
    Field(ge=1, le=_LARGEST, description="Number of the page, from 1 to `total_pages`.", examples=[1]),
    BeforeValidator(_only_ascii_digits),
]


def positions(page: int) -> tuple[int, int]:
    """Return the first and the last position of a page; positions count from 1."""
    return (page - 1) * PAGE_SIZE + 1, page * PAGE_SIZE


def link_header(path: str, parameters: dict[str, str], page: int, total_pages: int) -> str:
    """Write the Link header of a page (RFC 8288): first, prev, next, last, where there are such.

    `parameters` are what the links pin besides the page.
    """

    def related() -> Iterator[tuple[str, int]]:
        yield "first", 1
        if page > 1:
            yield "prev", page - 1
        if page < total_pages:
            yield "next", page + 1
        yield "last", max(total_pages, 1)

    pinned = urlencode(parameters)
    return ", ".join(f'<{path}?page={number}&{pinned}>; rel="{relation}"' for relation, number in related())


def neighbours(page: int, total_pages: int) -> list[int]:
    """Return the pages that navigation offers: the first, the last, and those around this one."""
    return sorted({1, max(total_pages, 1), *range(max(1, page - 2), min(total_pages, page + 2) + 1)})
