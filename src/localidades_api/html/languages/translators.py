"""Translations of pages, messages and the OpenAPI document."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from io import StringIO
from typing import Literal, get_args

from babel.messages.pofile import read_po
from typing_extensions import TypeAliasType

from localidades_api.catalogue.columns import EVERY_COLUMN, MATCHED, RECORD

# A named type: the OpenAPI document has it once, and generated clients give it that name.
Language = TypeAliasType("Language", Literal["en", "es"])
LANGUAGES: tuple[Language, ...] = get_args(Language.__value__)


def translator(language: Language) -> Callable[[str], str]:
    """Return a function that translates the English texts of pages; a missing translation raises KeyError."""
    return str if language == LANGUAGES[0] else _messages(language).__getitem__


def document_translator(language: Language) -> Callable[[str], str]:
    """Return a function that translates the texts of the OpenAPI document, except those of added routes."""
    if language == LANGUAGES[0]:
        return str
    of_columns = {column.meaning: f"{column.meaning_es}." for column in EVERY_COLUMN.values()}
    known = {**of_columns, **_messages(f"openapi.{language}")}
    return lambda text: known.get(text, text)


def lenient_translator(language: Language) -> Callable[[str], str]:
    """Return a function that translates known texts and leaves others, such as some of pydantic's, in English.

    Names in braces, as in pydantic's messages, match any text.
    """
    if language == LANGUAGES[0]:
        return str
    known = _messages(language)

    def translate(text: str) -> str:
        if text in known:
            return known[text]
        for pattern, message in _patterns(language):
            if matched := pattern.fullmatch(text):
                parts = {name: part.replace(" or ", known[" or "]) for name, part in matched.groupdict().items()}
                return message.format(**parts)
        return text

    return translate


@lru_cache
def _patterns(language: Language) -> list[tuple[re.Pattern[str], str]]:
    """Return a pattern and a translation for each message with names in braces, the longest message first."""
    found = [(re.split(r"\{(\w+)\}", text), message) for text, message in _messages(language).items() if "{" in text]
    found.sort(key=lambda one: -sum(map(len, one[0][::2])))
    return [(re.compile("".join(_group(parts)), re.DOTALL), message) for parts, message in found]


def _group(parts: Sequence[str]) -> Iterator[str]:
    for at, part in enumerate(parts):
        yield f"(?P<{part}>.+)" if at % 2 else re.escape(part)


@lru_cache
def _messages(name: str) -> Mapping[str, str]:
    """Read a file of translations, with the names of columns in it; tests check that none is missing."""
    text = (files("localidades_api.html.languages") / f"{name}.po").read_text("utf-8")
    for columns, names in (("{record_columns}", RECORD), ("{matched_columns}", MATCHED)):
        text = text.replace(columns, ", ".join(names))
    found = read_po(StringIO(text), abort_invalid=True)
    return {str(message.id): str(message.string) for message in found if message.id}
