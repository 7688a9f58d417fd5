"""Texts of a certain form: refused in a sentence, since a regular expression tells few readers what is wrong."""

import re

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def matching(pattern: str, sentence: str) -> AfterValidator:
    """Refuse a text that does not match as a whole. The OpenAPI document takes the pattern from `json_schema_extra`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("pattern", "{sentence}", {"sentence": sentence})
        return text

    return AfterValidator(check)
