"""Pagination: limits, parameters and arithmetic of pages."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import Field

from localidades_api.catalogue.messages import MAX_NUMBER, whole_number
from localidades_api.errors import InvalidPageError

PAGE_SIZE = 50
MAX_PAGE_SIZE = 1000
# Some 95 kB, with a form that lists Oaxaca's 570 municipios.
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
    """Return the number of pages that some records take."""
    return -(-quantity // size)


def positions(page: int, size: int = PAGE_SIZE) -> tuple[int, int]:
    """Return the first and the last position of a page, from 1."""
    return (page - 1) * size + 1, page * size


def page_of_first_record(page: int, size: int, other_size: int) -> int:
    """Return the page of another size that has the first record of this page."""
    first, _ = positions(page, size)
    return -(-first // other_size)


def neighbours(page: int, total_pages: int) -> list[int]:
    """Return the pages that a page links to: the first, the last, and those around it."""
    return sorted({1, max(total_pages, 1), *range(max(1, page - 2), min(total_pages, page + 2) + 1)})


class Paging(NamedTuple):
    """A page of a list; `parameters` are those of its links, without page, size and format."""

    quantity: int
    page: int
    page_size: int
    parameters: Mapping[str, str] = {}

    @property
    def total_pages(self) -> int:
        """The number of pages."""
        return count_pages(self.quantity, self.page_size)

    def check(self) -> Self:
        """Raise InvalidPageError for a page past the last; an empty list has one empty page."""
        if self.page > max(self.total_pages, 1):
            raise InvalidPageError(self.total_pages)
        return self

    @property
    def indexes(self) -> range:
        """The indexes of the page's records, from 0."""
        first, last = positions(self.page, self.page_size)
        return range(first - 1, min(last, self.quantity))
