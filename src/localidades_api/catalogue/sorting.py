"""The orders of a list of localities."""

from typing import Annotated, Literal

from pydantic import Field

Sort = Literal["clave", "-clave", "nombre", "-nombre", "poblacion", "-poblacion"]

DEFAULT_SORT: Sort = "clave"  # that of the positions of a release

SortParam = Annotated[
    Sort,
    Field(
        description="Order of the list; a minus reverses it. Names are sorted as in Spanish: ñ comes after n, and"
        " accents and capitals decide only between names that are otherwise the same. Places without a population"
        " come last in both directions. Among equals, the lower id comes first.",
        examples=["-poblacion"],
    ),
]
