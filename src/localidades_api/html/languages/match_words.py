"""The words for the codes of a match; a test checks that none is missing.

Tables in English contain the codes.
"""

from collections.abc import Mapping

from localidades_api.html.languages.translators import LANGUAGES, Language, translator

OUTCOMES: Mapping[str, str] = {
    "exact": "exact match",
    "sure": "sure match",
    "ambiguous": "ambiguous match",
    "none": "without a match",
    "problem": "row with a problem",
    # By a person, on the page: a place, the likeliest option of many rows at once, and none of the options.
    "chosen": "chosen match",
    "accepted": "match accepted unseen",
    "rejected": "match rejected",
}
FAULTS: Mapping[str, str] = {
    "wording": "wording",
    "article": "article",
    "order": "order of the words",
    "spacing": "spacing",
    "spelling": "spelling",
    "kind": "kind of place",
    "number": "number",
    "contrast": "word that tells places apart",
    "added": "extra word",
    "missing": "missing word",
    "name": "another name",
    "address": "street or colonia, not used",
    "bracket": "part in brackets",
    "homonym": "another place of the name",
    "seat": "seat of the municipio",
    "everyday": "everyday name",
    "former_name": "former name",
    "former_key": "former key",
    "withdrawn_key": "withdrawn key",
    "unknown_key": "unknown key",
    "key": "another key",
    "municipio": "municipio",
    "estado": "estado",
    "distance": "distance",
    "point": "municipio of the coordinates",
    "ambito": "urban or rural",
}


def name_outcome(code: str, language: Language) -> str:
    """Return the word for an outcome in a table."""
    return code if language == LANGUAGES[0] else translator(language)(OUTCOMES[code])


def name_fault(code: str, language: Language) -> str:
    """Return the word for a fault in a table."""
    return code if language == LANGUAGES[0] else translator(language)(FAULTS[code])
