"""The language of a response: negotiation by Accept-Language (RFC 9110 §12.5.4)."""

import re
from functools import lru_cache

from starlette.datastructures import Headers

from localidades_api.html.languages.translators import LANGUAGES, Language

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
