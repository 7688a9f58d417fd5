"""The language of HTML pages: negotiation by Accept-Language (RFC 9110 §12.5.4), and translations."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal, get_args

from babel.messages.pofile import read_po
from starlette.datastructures import Headers

Language = Literal["en", "es"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_MAX_HEADER = 1000
_QVALUE = r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?"
_RANGE = re.compile(rf"\s*([A-Za-z]{{1,8}})(?:-[A-Za-z0-9-]{{1,32}})?\s*(?:;\s*[Qq]=({_QVALUE}))?\s*")


def choose_language(accept_language: str | None) -> Language:
    """Return the supported language that an Accept-Language header prefers, English if it names none."""
    return _choose((accept_language or "")[:_MAX_HEADER])


@lru_cache(maxsize=256)  # clients send a few dozen
def _choose(accept_language: str) -> Language:
    best, preferred = 0.0, LANGUAGES[0]
    for element in accept_language.split(","):
        if matched := _RANGE.fullmatch(element):
            for language in LANGUAGES:
                if matched[1].lower() == language and (quality := float(matched[2] or 1)) > best:
                    best, preferred = quality, language
    return preferred


def preferred_language(headers: Headers) -> Language:
    """Return the language that the Accept-Language header prefers, its lines joined by commas."""
    return choose_language(", ".join(headers.getlist("accept-language")))


def translator(language: Language) -> Callable[[str], str]:
    """Return a function that translates the English texts of pages; a missing translation raises KeyError."""
    return str if language == LANGUAGES[0] else _messages(language).__getitem__


def document_translator(language: Language) -> Callable[[str], str]:
    """Return a function that translates the texts of the OpenAPI document, except those of added routes."""
    known = {} if language == LANGUAGES[0] else _messages(f"openapi.{language}")
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
    """Return a pattern and a translation for each message with names in braces."""
    found = [(re.split(r"\{(\w+)\}", text), message) for text, message in _messages(language).items() if "{" in text]
    return [(re.compile("".join(_group(parts)), re.DOTALL), message) for parts, message in found]


def _group(parts: Sequence[str]) -> Iterator[str]:
    """Yield the pattern of a message that was split at its names."""
    for at, part in enumerate(parts):
        yield f"(?P<{part}>.+)" if at % 2 else re.escape(part)


@lru_cache
def _messages(name: str) -> Mapping[str, str]:
    """Read a file of translations; tests check that none is missing."""
    with (files("localidades_api.languages") / f"{name}.po").open("rb") as file:
        return {str(message.id): str(message.string) for message in read_po(file) if message.id}
