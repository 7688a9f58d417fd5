"""The columns of a CSV answer, for people who read a spreadsheet."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from localidades_api.bulk.rows import Answer
from localidades_api.catalogue.keys import written

# The names of an answer's columns, without their prefix, and how each cell is written.
AnswerColumns: TypeAlias = Mapping[str, Callable[[Answer], str]]


def _plain(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else str(value)


def _certain(name: str, answer: Answer) -> str:
    """Write a member of the place that a row means; nothing if a person has to choose, as tables are joined on it."""
    return _plain(name, answer) if answer["outcome"] in {"exact", "sure"} else ""


def _number(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else f"{value:g}"


def _faults(answer: Answer) -> str:
    return "; ".join(map(_fault, answer["faults"]))


def _fault(fault: Mapping[str, Any]) -> str:
    """Write a fault: `spelling: Guadalajra → Guadalajara (-5.5)`."""
    words = " → ".join(filter(None, (fault["given"], fault["found"])))
    return f"{fault['code']}: {words} (-{fault['penalty']:g})" if words else f"{fault['code']} (-{fault['penalty']:g})"


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


def _nearest(name: str, answer: Answer) -> str:
    return str(answer["results"][0][name]) if answer["results"] else ""


# Of several places, the nearest.
NEAREST_COLUMNS: AnswerColumns = {
    "cvegeo": lambda answer: written("localidad", answer["results"][0]["id"]) if answer["results"] else "",
    "label": lambda answer: _nearest("label", answer),
    "distancia": lambda answer: _nearest("distancia", answer),
    "problem": lambda answer: _plain("problem", answer),
}
