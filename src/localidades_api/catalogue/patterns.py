"""Text that must match a pattern, with an error in words: a regular expression tells few readers what is wrong."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


def matching(pattern: str, sentence: str) -> AfterValidator:
    """Refuse a text that does not match as a whole. The OpenAPI document takes the pattern from `json_schema_extra`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("pattern", "{sentence}", {"sentence": sentence})
        return text

    return AfterValidator(check)


RELEASE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
NameOfRelease = Annotated[
    str,
    Field(json_schema_extra={"pattern": RELEASE_NAME}),
    matching(
        RELEASE_NAME,
        "The name of a release has up to 64 letters, digits, dots, hyphens and underscores, and begins with a letter or"
        " a digit, such as 2018-09.",
    ),
]

_KEY = "^([0-9]{2}|[0-9]{5}|[0-9]{9})$"
KeyOfPlace = Annotated[
    str,
    Field(json_schema_extra={"pattern": _KEY}),
    matching(_KEY, "A key has its leading zeros: nine digits, five for a municipio, two for an estado."),
]
