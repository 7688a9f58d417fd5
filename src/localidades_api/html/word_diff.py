"""Finds the words that differ between two names."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

Pieces = list[tuple[str, bool]]  # texts, and whether they differ


def word_diff(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Split two names into pieces that both have and pieces that differ."""
    words, others = (re.findall(r"\s+|\S+", name) for name in (before, after))
    changes = SequenceMatcher(None, words, others, autojunk=False).get_opcodes()
    return (
        _pieces(words, [(first, last, tag != "equal") for tag, first, last, _, _ in changes]),
        _pieces(others, [(first, last, tag != "equal") for tag, _, _, first, last in changes]),
    )


def _pieces(words: Sequence[str], parts: Sequence[tuple[int, int, bool]]) -> Pieces:
    """Join neighbours that are alike; blanks never differ."""
    marked = [(word, differs and not word.isspace()) for first, last, differs in parts for word in words[first:last]]
    return [("".join(word for word, _ in alike), differs) for differs, alike in groupby(marked, key=itemgetter(1))]
