"""Suggests the name or value that was probably meant, and lists choices in a sentence."""

from collections.abc import Sequence

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

_MAX_LENGTH = 40  # characters of a name that is worth comparing; none of ours is longer
_MIN_LIKENESS = 0.85  # `municipio` is meant for `municipio_id`, and `id` for nothing


def likeliest(given: str, known: Sequence[str]) -> str | None:
    """Return the known name that was probably meant, whatever its case; None if none is much like it."""
    if len(given) > _MAX_LENGTH:
        return None
    found = process.extractOne(
        given, known, scorer=JaroWinkler.normalized_similarity, processor=str.casefold, score_cutoff=_MIN_LIKENESS
    )
    return found[0] if found else None


def refuse_parameter(given: str, known: Sequence[str]) -> str:
    """Return what to say of a parameter that a resource does not have; its name is not repeated."""
    return f"Unknown parameter. {_meant(given, known)}This resource takes: {', '.join(known)}."


def refuse_value(given: str, known: Sequence[str]) -> str:
    """Return what to say of a value that a parameter does not take; it is not repeated."""
    return f"{_meant(given, known)}This parameter takes: {', '.join(known)}."


def several_of(known: Sequence[str]) -> AfterValidator:
    """Take known names separated by commas, and return each once, in the order of `known`."""

    def check(text: str) -> str:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            meant = _meant(unknown[0], known)
            sentence = f"{meant}This parameter takes, separated by commas: {', '.join(known)}."
            raise PydanticCustomError("choice", "{sentence}", {"sentence": sentence})
        return ",".join(name for name in known if name in given)

    return AfterValidator(check)


def _meant(given: str, known: Sequence[str]) -> str:
    found = likeliest(given, known)
    return f"Did you mean `{found}`? " if found else ""
