"""The envelopes of answers with many records."""

from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, Field

T = TypeVar("T")

PAGE_SIZE = 50
MAX_PAGE_SIZE = 1000
# With the choice of Oaxaca's 570 municipios and links that keep the longest name of a release these are some 95 kB.
MAX_HTML_PAGE_SIZE = 100


def count_pages(quantity: int, size: int = PAGE_SIZE) -> int:
    """Return the number of pages for a number of records."""
    return -(-quantity // size)


class Page(BaseModel, Generic[T]):
    """One page of a list, and the size of the whole list."""

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of a list in the OpenAPI document and in generated clients, such as LocalityPage."""
        return f"{params[0].__name__}Page"

    quantity: Annotated[int, Field(description="Records in the whole list.", ge=0, examples=[304363])]
    total_pages: Annotated[int, Field(description="Pages in the whole list.", ge=0, examples=[6088])]
    results: Annotated[
        list[T],
        Field(description=f"The records on this page, at most `page_size` (by default {PAGE_SIZE})."),
    ]


class Found(BaseModel, Generic[T]):
    """The results, best first."""

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of the results in the OpenAPI document and in generated clients, such as MatchResults."""
        return f"{params[0].__name__}Results"

    results: list[T]
