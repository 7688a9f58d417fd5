"""The columns of answers in tables: how each cell is written, in English or Spanish."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

from pydantic_core import to_json

from localidades_api.bulk.rows import Answer
from localidades_api.catalogue.keys import format_key
from localidades_api.languages.match_words import name_fault, name_outcome
from localidades_api.languages.translators import LANGUAGES, Language, lenient_translator

# The names of an answer's columns, without their prefix, and how each cell is written.
AnswerColumns: TypeAlias = Mapping[str, Callable[[Answer], str]]


def _plain(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else str(value)


def _certain(name: str, answer: Answer) -> str:
    """Write a member of the matched place; nothing if a person has to choose, since tables are joined on it."""
    return _plain(name, answer) if answer["outcome"] in {"exact", "sure"} else ""


def _number(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else f"{value:g}"


def _faults(answer: Answer, language: Language = LANGUAGES[0]) -> str:
    return "; ".join(_fault(fault, language) for fault in answer["faults"])


def _fault(fault: Mapping[str, Any], language: Language) -> str:
    """Write a fault: `spelling: Guadalajra → Guadalajara (-5.5)`."""
    name = name_fault(fault["code"], language)
    words = " → ".join(filter(None, (fault["given"], fault["found"])))
    return f"{name}: {words} (-{fault['penalty']:g})" if words else f"{name} (-{fault['penalty']:g})"


def _candidates(answer: Answer) -> str:
    """Write candidates: `140390001 Guadalajara, Guadalajara, Jalisco (97) | …`."""
    return " | ".join(f"{one['cvegeo']} {one['label']} ({one['score']:g})" for one in answer["candidates"])


MATCH_COLUMNS: AnswerColumns = {
    "outcome": lambda answer: str(answer["outcome"]),
    "cvegeo": lambda answer: _certain("cvegeo", answer),
    "label": lambda answer: _certain("label", answer),
    "score": lambda answer: _number("score", answer),
    "margin": lambda answer: _number("margin", answer),
    "faults": _faults,
    "candidates": _candidates,
    "withdrawn": lambda answer: _plain("withdrawn", answer),
    "problem": lambda answer: _plain("problem", answer),
}


def match_columns(fields: Sequence[str]) -> AnswerColumns:
    """Return the columns of a match; those of its place in `fields` come after the label."""
    columns: dict[str, Callable[[Answer], str]] = {}
    for name, cell in MATCH_COLUMNS.items():
        columns[name] = cell
        if name == "label":
            columns |= {field: partial(_certain, field) for field in fields}
    return columns


def _nearest(name: str, answer: Answer) -> str:
    return str(answer["results"][0][name]) if answer["results"] else ""


# Of several places, the nearest.
NEAREST_COLUMNS: AnswerColumns = {
    "cvegeo": lambda answer: format_key("localidad", answer["results"][0]["id"]) if answer["results"] else "",
    "label": lambda answer: _nearest("label", answer),
    "distancia": lambda answer: _nearest("distancia", answer),
    "problem": lambda answer: _plain("problem", answer),
}


_BETWEEN_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z`])")


def in_language(columns: AnswerColumns, language: Language) -> AnswerColumns:
    """Return the columns with the words of a language; English has the codes, for programs."""
    if language == LANGUAGES[0]:
        return columns
    translate = lenient_translator(language)

    @lru_cache(maxsize=1000)  # many rows have the same problem
    def say(sentences: str) -> str:
        return " ".join(map(translate, _BETWEEN_SENTENCES.split(sentences)))

    words: AnswerColumns = {
        "outcome": lambda answer: name_outcome(answer["outcome"], language),
        "faults": lambda answer: _faults(answer, language),
        "problem": lambda answer: say(_plain("problem", answer)),
    }
    return {name: words.get(name, cell) for name, cell in columns.items()}


def column_names(prefix: str, columns: AnswerColumns, taken: Sequence[str]) -> list[str]:
    """Return the names of the answer's columns, different from those of the sender."""
    number, names = 1, [f"{prefix}_{column}" for column in columns]
    while not set(names).isdisjoint(taken):
        number += 1
        names = [f"{prefix}{number}_{column}" for column in columns]
    return names


def as_cell(value: object) -> str:
    """Return a value of JSON as the text of a cell."""
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()
