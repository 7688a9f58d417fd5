"""Pagination: numbers in a query, the positions of a page, and links between pages."""

from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple, Self
from urllib.parse import urlencode

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from localidades_api.catalogue.schemas import MAX_HTML_PAGE_SIZE, MAX_PAGE_SIZE, PAGE_SIZE, count_pages
from localidades_api.errors import InvalidPageError

_MAX_NUMBER = 2**53 - 1  # the largest that a JSON reader keeps exactly
MAX_DIGITS = len(str(_MAX_NUMBER))


def whole_number(sentence: str) -> BeforeValidator:
    """Refuse what int() accepts besides ASCII digits: signs, spaces, underscores, other scripts."""

    def check(value: object) -> object:
        if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
            raise PydanticCustomError("digits", "{sentence}", {"sentence": sentence})
        if isinstance(value, str) and len(value) > MAX_DIGITS:
            raise PydanticCustomError("number_size", "A number has at most 16 digits.")
        return value

    return BeforeValidator(check)


PageNumber = Annotated[
    int,
    Field(ge=1, le=_MAX_NUMBER, description="Number of the page, from 1 to `total_pages`.", examples=[1]),
    whole_number("A page number is a whole number from 1, written with the digits 0 to 9."),
]
PageSize = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_PAGE_SIZE,
        description="Maximum number of records per page. An HTML page has at most"
        f" {MAX_HTML_PAGE_SIZE}; a larger size redirects to the HTML page with the first of the requested records.",
        examples=[PAGE_SIZE],
    ),
    whole_number("A page size is a whole number from 1, written with the digits 0 to 9."),
]


def positions(page: int, size: int = PAGE_SIZE) -> tuple[int, int]:
    """Return the first and the last position of a page, from 1."""
    return (page - 1) * size + 1, page * size


class Paging(NamedTuple):
    """Which page of how many records; `parameters` are what links to others have besides page, size and format."""

    quantity: int
    page: int
    page_size: int
    parameters: Mapping[str, str] = {}

    @property
    def total_pages(self) -> int:
        """How many pages there are."""
        return count_pages(self.quantity, self.page_size)

    def check(self) -> Self:
        """Raise InvalidPageError for a page past the last; an empty list has one page, and nothing on it."""
        if self.page > max(self.total_pages, 1):
            raise InvalidPageError(self.total_pages)
        return self

    @property
    def places(self) -> range:
        """The indexes of its records, from 0."""
        first, last = positions(self.page, self.page_size)
        return range(first - 1, min(last, self.quantity))


def link_header(path: str, parameters: Mapping[str, str], page: int, total_pages: int) -> str:
    """Write the Link header of a page (RFC 8288): first, prev, next and last, as far as they exist.

    `parameters` are the parameters of the links besides `page`.
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
    """Return the pages to link from a page: the first, the last, and those around it."""
    return sorted({1, max(total_pages, 1), *range(max(1, page - 2), min(total_pages, page + 2) + 1)})
