"""The columns of an earlier answer in a table that comes back, and what people have decided in them."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from localidades_api.catalogue.keys import KIND_BY_DIGITS
from localidades_api.html.languages.match_words import OUTCOMES, name_outcome
from localidades_api.html.languages.translators import LANGUAGES

CERTAIN = frozenset({"exact", "sure"})
DECIDED = frozenset({"chosen", "accepted", "rejected"})  # by a person: in a file, or on the page
FIRST_HEADERS = ("match_outcome", "match_cvegeo")
_FIRST_HEADERS = (
    re.compile(r"(?:Resultado|match\d*_outcome)(?: \(\d+\))?"),
    re.compile(r"(?:Clave INEGI \(CVEGEO\)|match\d*_cvegeo)(?: \(\d+\))?"),
)
_KEY = re.compile(r"\D{0,2}(\d{1,9})(?!\d)")  # alone, or with the name of its place behind it

_MAX_COLUMNS = 60  # among which an answer without a header is looked for


class EarlierAnswer(NamedTuple):
    """The cells of an earlier answer that a person may have changed: its outcome in words, and its key."""

    outcome: str
    key: str

    @property
    def code(self) -> str | None:
        """The outcome, which an answer in any language says; None for another text."""
        return _codes().get(self.outcome.partition(" (")[0])  # a percentage may follow

    @property
    def percentage(self) -> float | None:
        """The probability, in percent, of a place that was accepted unseen."""
        found = re.search(r"\((\d{1,2}|100) %\)", self.outcome)
        return float(found[1]) if found else None

    @property
    def digits(self) -> str:
        """The digits of the key; empty if there is none."""
        found = _KEY.match(self.key)
        return found[1] if found else ""


@cache
def _codes() -> Mapping[str, str]:
    return {name_outcome(code, language): code for language in LANGUAGES for code in OUTCOMES}


def find_answers(headers: Sequence[str]) -> list[int]:
    """Return the index of the first column of each earlier answer in a table."""
    return [at for at, pair in enumerate(pairwise(headers)) if all(map(re.fullmatch, _FIRST_HEADERS, pair))]


def begin_of_answers(headers: Sequence[str]) -> int | None:
    """Return the index of the first column that an earlier answer has added to a table; None if there is none."""
    return next(iter(find_answers(headers)), None)


def begin_without_header(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the first column of an earlier answer in a table without a header; None if there is none.

    It has outcomes alone, and the next one a key.
    """
    width = min(max(map(len, rows), default=0), _MAX_COLUMNS)
    for at in range(1, width - 1):
        pairs = [EarlierAnswer(*row[at : at + 2]) for row in rows if len(row) > at + 1]
        if all(answer.code or not answer.outcome for answer in pairs) and any(_is_key(answer) for answer in pairs):
            return at
    return None


def _is_key(answer: EarlierAnswer) -> bool:
    return bool(answer.code) and answer.key.isdecimal() and len(answer.key) in KIND_BY_DIGITS


def read_earlier(values: Sequence[Any]) -> EarlierAnswer | None:
    """Return an earlier answer, which begins a row's values; None if it says neither a key nor that there is none."""
    answer = EarlierAnswer(*("" if value is None else str(value).strip() for value in values[:2]))
    return answer if answer.key or answer.code == "rejected" else None
