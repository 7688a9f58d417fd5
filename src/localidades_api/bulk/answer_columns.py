"""The columns of answers in tables: their headers, and how each cell is written, in English or Spanish."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, count
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from localidades_api.bulk.earlier import begin_of_answers
from localidades_api.bulk.input_rows import Answer, Row, Sent
from localidades_api.catalogue.columns import EVERY_COLUMN
from localidades_api.catalogue.keys import format_key
from localidades_api.html.languages.match_words import name_fault, name_outcome
from localidades_api.html.languages.translators import LANGUAGES, Language, lenient_translator


class AnswerColumns(NamedTuple):
    """The columns of answers in a table: how the cells of each are written, by the member of the answer that it has.

    In English the headers are these names, with a prefix.
    """

    prefix: str
    cells: Mapping[str, Callable[[Answer], str]]
    language: Language = LANGUAGES[0]

    def headers(self, taken: Sequence[str]) -> list[str]:
        """Return the headers, different from those of the sender; Excel ignores case in those of a table."""
        seen = {header.casefold() for header in taken}
        if self.language == LANGUAGES[0]:
            sets = ([f"{self.prefix}{number}_{name}" for name in self.cells] for number in chain([""], count(2)))
            return next(headers for headers in sets if seen.isdisjoint(headers))
        return [next(one for one in numbered(_header(name)) if one.casefold() not in seen) for name in self.cells]

    def positions(self, width: int) -> Mapping[str, int]:
        """Return the number of each column, from 1, after `width` columns of the sender."""
        return {name: at for at, name in enumerate(self.cells, width + 1)}


# The words of Excel for false and true.
TRUTH: Mapping[Language, tuple[str, str]] = {"en": ("FALSE", "TRUE"), "es": ("FALSO", "VERDADERO")}

# The headers in Spanish; those of a locality's fields are the labels of their columns.
_HEADERS = {
    "outcome": "Resultado",
    "label": "Lugar",
    "score": "Certeza",
    "faults": "Diferencias",
    "candidates": "Opciones",
    "distancia": "Distancia (m)",
    "agrees": "Coincide",
    "problem": "Observación",
}
_INTERNAL = frozenset({"margin", "withdrawn"})  # columns that only programs use


def _header(name: str) -> str:
    return _HEADERS[name] if name in _HEADERS else EVERY_COLUMN[name].label


def numbered(header: str) -> Iterator[str]:
    """Yield a text, and then it with the numbers from 2, until one is not taken."""
    yield header
    yield from (f"{header} ({number})" for number in count(2))


def plain(name: str, answer: Answer) -> str:
    """Write a member as it is."""
    value = answer[name]
    return "" if value is None else str(value)


def _outcome(answer: Answer, language: Language = LANGUAGES[0]) -> str:
    """Write an outcome; that of a place that was accepted unseen with how probable it was."""
    word = name_outcome(answer["outcome"], language)
    is_accepted = answer["outcome"] == "accepted" and answer["score"] is not None
    return f"{word} ({math.floor(answer['score'])} %)" if is_accepted else word


def truth(name: str, answer: Answer, language: Language = LANGUAGES[0]) -> str:
    """Write a member that is true or false in Excel's words; nothing if it is neither."""
    value = answer[name]
    return "" if value is None else TRUTH[language][value]


def _number(name: str, answer: Answer) -> str:
    value = answer[name]
    return "" if value is None else f"{value:g}"


def _faults(answer: Answer, language: Language = LANGUAGES[0]) -> str:
    return "; ".join(_fault(fault, language) for fault in answer["faults"])


def _fault(fault: Mapping[str, Any], language: Language) -> str:
    """Write a fault: `spelling: Guadalajra → Guadalajara (-5.5)`."""
    name = name_fault(fault["code"], language)
    words = " → ".join(filter(None, (fault["given"], fault["found"])))
    penalty = f" (-{fault['penalty']:g})" if fault["penalty"] else ""
    return f"{name}: {words}{penalty}" if words else f"{name}{penalty}"


def _candidates(answer: Answer) -> str:
    """Write candidates: `140390001 Guadalajara, Guadalajara, Jalisco (97) | …`."""
    return " | ".join(f"{one['cvegeo']} {one['label']} ({one['score']:g})" for one in answer["candidates"])


_MATCH: Mapping[str, Callable[[Answer], str]] = {
    name: partial(plain, name)
    for name in ("outcome", "cvegeo", "label", "score", "margin", "faults", "candidates", "withdrawn", "problem")
} | {
    "outcome": _outcome,
    "score": partial(_number, "score"),
    "margin": partial(_number, "margin"),
    "faults": _faults,
    "candidates": _candidates,
}
MATCH_COLUMNS = AnswerColumns("match", _MATCH)


def match_columns(fields: Sequence[str], chosen: Collection[str] | None = None) -> AnswerColumns:
    """Return the columns of a match, or those that are chosen; those of its place in `fields` come after the label."""
    columns: dict[str, Callable[[Answer], str]] = {}
    for name, cell in MATCH_COLUMNS.cells.items():
        columns[name] = cell
        if name == "label":
            columns |= {field: partial(plain, field) for field in fields}
    if chosen is not None:
        columns = {name: cell for name, cell in columns.items() if name in chosen}
    return AnswerColumns(MATCH_COLUMNS.prefix, columns)


def _nearest(name: str, answer: Answer) -> str:
    return str(answer["results"][0][name]) if answer["results"] else ""


# Of several places, the nearest.
_NEAREST: Mapping[str, Callable[[Answer], str]] = {
    "cvegeo": lambda answer: format_key("localidad", answer["results"][0]["id"]) if answer["results"] else "",
    "label": lambda answer: _nearest("label", answer),
    "distancia": lambda answer: _nearest("distancia", answer),
    "problem": lambda answer: plain("problem", answer),
}
NEAREST_COLUMNS = AnswerColumns("nearest", _NEAREST)


_BETWEEN_SENTENCES = re.compile(r"(?<=\.) (?=[A-Z`])")
_QUOTED = re.compile("`([^`]*)`")


def quote_names(sentences: str) -> str:
    """Return sentences with quotation marks instead of backticks, for people."""
    return _QUOTED.sub(r"“\1”", sentences)


@lru_cache(maxsize=1000)  # many rows have the same problem
def say_sentences(sentences: str, language: Language) -> str:
    """Return sentences of the service in a language, for people."""
    return quote_names(" ".join(map(lenient_translator(language), _BETWEEN_SENTENCES.split(sentences))))


def in_language(columns: AnswerColumns, language: Language) -> AnswerColumns:
    """Return the columns with the headers and the words of a language, for people; English has the codes, for programs.

    Spanish has no columns that only programs use: a key that was withdrawn is said in a sentence.
    """
    if language == LANGUAGES[0]:
        return columns

    def observe(answer: Answer) -> str:
        withdrawn = answer.get("withdrawn")
        note = f"INEGI has withdrawn the place with the key {withdrawn}." if withdrawn else None
        return say_sentences(" ".join(filter(None, (answer["problem"], note))), language)

    words: Mapping[str, Callable[[Answer], str]] = {
        "outcome": lambda answer: _outcome(answer, language),
        "faults": lambda answer: _faults(answer, language),
        "problem": observe,
        "agrees": lambda answer: truth("agrees", answer, language),
    }
    cells = {name: words.get(name, cell) for name, cell in columns.cells.items() if name not in _INTERNAL}
    return AnswerColumns(columns.prefix, cells, language)


def as_cell(value: object) -> str:
    """Return a value of JSON as the text of a cell."""
    if value is None:
        return ""
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()


_NAMES = {name for columns in (MATCH_COLUMNS, NEAREST_COLUMNS) for name in columns.cells} | EVERY_COLUMN.keys()
_LABELS = {re.escape(_header(name)) for name in _NAMES - _INTERNAL}
# A header of an answer, or the sentence that a workbook has after it.
_OF_ANSWER = re.compile(
    rf"match\d*_(?:{'|'.join(_NAMES)})|(?:{'|'.join(_LABELS)})(?: \(\d+\))?"
    r"|(?:The answers begin in|Las respuestas empiezan en la) .*"
)


def width_without_answers(headers: Sequence[str]) -> int:
    """Return how many columns of a table stay: those before an earlier answer, which the new one replaces.

    All of them stay if someone has added others after it.
    """
    begin = begin_of_answers(headers)
    replaced = headers[begin:]
    is_replaced = len(set(replaced)) == len(replaced) and all(map(_OF_ANSWER.fullmatch, replaced))
    return begin if begin is not None and is_replaced else len(headers)


class SentColumns:
    """The sender's columns of a table, and the cells of each row; objects have the members of the first as columns.

    The columns of an earlier answer are left out: the new ones replace them.
    """

    def __init__(self, headers: list[str] | None) -> None:
        self._is_table = headers is not None
        self._headers = headers[: width_without_answers(headers)] if headers else []

    def begin(self, rows: Iterable[Row]) -> list[str]:
        """Return the headers; those of objects are in the first of the rows, which is read."""
        if not self._is_table and isinstance(sent := next((row.sent for row in rows), None), Mapping):
            self._headers = [str(name) for name in sent]
        return self._headers

    def cells(self, sent: Sent) -> list[str]:
        """Return the cells of a row: as they came, or a text for each column."""
        if self._is_table:
            return cast("list[str]", sent)
        members = sent if isinstance(sent, Mapping) else {}
        return [as_cell(members.get(name)) for name in self._headers]
