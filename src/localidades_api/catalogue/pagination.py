"""Pagination: the limits, the numbers in a query, and which records a page has."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import Field

from localidades_api.catalogue.messages import MAX_NUMBER, whole_number
from localidades_api.errors import InvalidPageError

PAGE_SIZE = 50
MAX_PAGE_SIZE = 1000
# With the choice of Oaxaca's 570 municipios and links that keep the longest name of a release these are some 95 kB.
MAX_HTML_PAGE_SIZE = 100

PageNumber = Annotated[
    int,
    Field(ge=1, le=MAX_NUMBER, description="Number of the page, from 1 to `total_pages`.", examples=[1]),
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


def count_pages(quantity: int, size: int = PAGE_SIZE) -> int:
    """Return the number of pages for a number of records."""
    return -(-quantity // size)


def positions(page: int, size: int = PAGE_SIZE) -> tuple[int, int]:
    """Return the first and the last position of a page, from 1."""
    return (page - 1) * size + 1, page * size


def page_of_first_record(page: int, size: int, other_size: int) -> int:
    """Return the page of another size that has the first record of a page."""
    first, _ = positions(page, size)
    return -(-first // other_size)


def neighbours(page: int, total_pages: int) -> list[int]:
    """Return the pages to link from a page: the first, the last, and those around it."""
    return sorted({1, max(total_pages, 1), *range(max(1, page - 2), min(total_pages, page + 2) + 1)})


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
