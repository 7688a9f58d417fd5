"""Long texts that repeat a part: patterns that go back, and comparisons of every letter, take seconds for them."""

from collections.abc import Iterator

_PARTS = (
    " ", "\t ", "\u00a0", "\n", "\r\n", "a", "a ", "z ", "san ", "la ", "de ", "x y ", "1", "1 ", "1.", "2 da ", "-",
    "_", ".", "a.", "a. ", ",", ", ", "a, ", "a,a ", "la, ", "(", ")", "()", "(a", "(a) ", "[", "[a] ", "{", "'", '"',
    '""', "`", "\u0301", "e\u0301", "ñ", "?", "a?", "¿", "Ã", "Ã\u00a0", "¥", "&", "&#", "&#9", "&amp;", "\u200b",
    "\ufdfa", "㏂", "田", "%", "\\", "/", ";", "+", "°", "1° ",
)  # fmt: skip
_ENDS = (("", ""), ("a", "b"), ("a, la", "b"), ("X (", ")"), ("X, ", ", Jalisco"))


def long_texts(length: int) -> Iterator[str]:
    """Yield the texts, each of about so many characters."""
    for start, end in _ENDS:
        for part in _PARTS:
            yield start + part * (length // len(part)) + end
