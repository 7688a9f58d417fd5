"""What answers wrap records in."""

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, Field

T = TypeVar("T")

PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 1000
# With the choice of Oaxaca's 570 municipios and links that keep the longest name of a release these are some 95 kB.
MAX_HTML_PAGE_SIZE = 100


class Page(BaseModel, Generic[T]):
    """One page of a list, and the size of the whole."""

    quantity: Annotated[int, Field(description="Records in the whole list.", ge=0, examples=[304363])]
    total_pages: Annotated[int, Field(description="Pages in the whole list.", ge=0, examples=[6088])]
    results: Annotated[
        list[T],
        Field(description=f"The records of this page: `page_size` at most, {PAGE_SIZE} where that is not given."),
    ]


class Found(BaseModel, Generic[T]):
    """What was found, the best first."""

    results: list[T]
