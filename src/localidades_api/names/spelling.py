"""Pairs words that are spellings of one word."""

from rapidfuzz.distance import OSA

from localidades_api.names.rows import NameFault
from localidades_api.names.vocabulary import CONTRASTING

_UNLIKE = 60.0  # points that a word costs if it is like no other
_ALIKE = 0.65  # share of letters that two words must have in common to be spellings of one word
SPACING = 1.0

# Letters that sound alike; people write one for the other.
_SOUNDS = (
    ("qu", "k"), ("ch", "@"), ("ph", "f"), ("ll", "y"), ("ce", "se"), ("ci", "si"), ("z", "s"), ("v", "b"), ("h", ""),
    ("x", "j"), ("ge", "je"), ("gi", "ji"), ("hu", "u"), ("gu", "u"), ("w", "u"), ("c", "k"), ("tz", "s"), ("ñ", "n"),
)  # fmt: skip


def pair(added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair words that are alike, the most alike first; take them out of the lists."""
    pairs = sorted(
        (
            (-_likeness(one, other), one, other)
            for one in added
            for other in missing
            if len(one) > 1 and len(other) > 1 and not (one.isdigit() or other.isdigit())
        ),
    )
    faults = []
    for unlike, one, other in pairs:
        if -unlike < _ALIKE or one not in added or other not in missing:
            continue
        if one in CONTRASTING and other in CONTRASTING:
            continue
        added.remove(one)
        missing.remove(other)
        faults.append(NameFault("spelling", one, other, round(max(1.0, (1 + unlike) * _UNLIKE), 2)))
    if added and missing:
        faults += _spaced_otherwise(added, missing)
    return faults


def _spaced_otherwise(added: list[str], missing: list[str]) -> list[NameFault]:
    """Pair leftover words that have the same letters, spaced differently: `seyba playa`, Seybaplaya."""
    one, other = "".join(added), "".join(missing)
    likeness = _likeness(one, other)
    if (len(added) > 1 or len(missing) > 1) and likeness >= 0.8:  # noqa: PLR2004  # as a word with one letter in five wrong
        fault = NameFault("spacing", " ".join(added), " ".join(missing), round(SPACING + (1 - likeness) * _UNLIKE, 2))
        added.clear()
        missing.clear()
        return [fault]
    return []


def _likeness(one: str, other: str) -> float:
    """Return how alike two words are, from 0 to 1; what sounds the same is nearly the same."""
    likeness: float = OSA.normalized_similarity(one, other)
    if one[0] != other[0]:
        likeness -= 0.08
    if likeness >= 0.5 and sound(one) == sound(other):  # noqa: PLR2004  # half of the letters at least
        return max(likeness, 0.96)
    if likeness >= _ALIKE and one.rstrip("s") == other.rstrip("s"):
        return max(likeness, 0.95)
    return likeness


def sound(word: str) -> str:
    """Return how a word sounds, roughly."""
    for letters, for_ in _SOUNDS:
        word = word.replace(letters, for_)
    return word
