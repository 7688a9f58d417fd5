"""Says what is wrong with a value, in sentences of this service: pydantic's speak of its own types.

A sentence never repeats the input. Types of parameters refuse with one what pydantic would take, or tell less well.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import AfterValidator, BeforeValidator, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ErrorType
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

from localidades_api.catalogue.degrees import DECIMAL

MAX_NUMBER = 2**53 - 1  # the largest that a JSON reader keeps exactly
_MAX_DIGITS = len(str(MAX_NUMBER))
_MAX_LENGTH = 40  # characters of a name that is worth comparing; none of ours is longer
_MIN_LIKENESS = 0.85  # `municipio` is meant for `municipio_id`, and `id` for nothing
_LIBRARY = frozenset(get_args(ErrorType))
_CHOICE = re.compile("'([^']*)'")  # in pydantic's list of the values that a parameter takes
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_LIST, _NUMBER, _OBJECT, _TEXT = "Give a list.", "Give a number.", "Give an object.", "Give a text."
SENTENCES: Mapping[str, str] = {
    "missing": "It is required.",
    "extra_forbidden": "There is no such member.",
    "greater_than": "Input should be greater than {gt}.",
    "greater_than_equal": "Input should be greater than or equal to {ge}.",
    "less_than": "Input should be less than {lt}.",
    "less_than_equal": "Input should be less than or equal to {le}.",
    "finite_number": _NUMBER,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "int_from_float": "Give a whole number.",
    "int_parsing": "Give a whole number.",
    "int_type": "Give a whole number.",
    "string_type": _TEXT,
    "string_too_short": "Give {min_length} or more characters.",
    "string_too_long": "Give {max_length} or fewer characters.",
    "list_type": _LIST,
    "too_short": "Give {min_length} or more.",
    "too_long": "Give {max_length} or fewer.",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
}


def describe_fault(fault: Mapping[str, Any]) -> str:
    """Return the sentence for one of pydantic's errors; it does not repeat the input."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "literal_error":
        return refuse_value(str(fault.get("input", "")), _CHOICE.findall(context["expected"]))
    if kind in SENTENCES:
        return SENTENCES[kind].format_map({name: _written(value) for name, value in context.items()})
    return "This value can't be read." if kind in _LIBRARY else f"{fault['msg'].rstrip('.')}."


def describe_place(location: Sequence[str | int]) -> str:
    """Return where a fault is, such as `rows[0].nombre`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{plain_name(part)}" for part in location)
    return "".join(parts).removeprefix(".")


def plain_name(name: str) -> str:
    """Return a name that a client sent if it is safe to show, else a placeholder."""
    return name if _PLAIN_NAME.fullmatch(name) else "(a name that is not plain ASCII)"


def _written(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def refuse_parameter(given: str, known: Sequence[str]) -> str:
    """Return what to say of a parameter that a resource does not have; its name is not repeated."""
    return f"Unknown parameter. {_meant(given, known)}This resource takes: {', '.join(known)}."


def refuse_value(given: str, known: Sequence[str]) -> str:
    """Return what to say of a value that a parameter does not take; it is not repeated."""
    return f"{_meant(given, known)}This parameter takes: {', '.join(known)}."


def _meant(given: str, known: Sequence[str]) -> str:
    """Ask whether the known name that is most like this one was meant, whatever its case; empty if none is."""
    if len(given) > _MAX_LENGTH:
        return ""
    found = process.extractOne(
        given, known, scorer=JaroWinkler.normalized_similarity, processor=str.casefold, score_cutoff=_MIN_LIKENESS
    )
    return f"Did you mean `{found[0]}`? " if found else ""


def several_of(known: Sequence[str]) -> AfterValidator:
    """Take known names separated by commas, and return each once, in the order of `known`."""

    def check(text: str) -> str:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            meant = _meant(unknown[0], known)
            raise _refusal(f"{meant}This parameter takes, separated by commas: {', '.join(known)}.")
        return ",".join(name for name in known if name in given)

    return AfterValidator(check)


def matching(pattern: str, sentence: str) -> AfterValidator:
    """Refuse a text that does not match as a whole. The OpenAPI document takes the pattern from `json_schema_extra`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise _refusal(sentence)
        return text

    return AfterValidator(check)


def whole_number(sentence: str) -> BeforeValidator:
    """Refuse what int() accepts besides ASCII digits: signs, spaces, underscores, other scripts."""

    def check(value: object) -> object:
        if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
            raise _refusal(sentence)
        if isinstance(value, str) and len(value) > _MAX_DIGITS:
            raise PydanticCustomError("number_size", "A number has at most 16 digits.")
        return value

    return BeforeValidator(check)


def plain_decimal(sentence: str) -> BeforeValidator:
    """Refuse what float() accepts besides digits and a point: exponents, underscores, spaces, nan."""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(DECIMAL, value):
            raise _refusal(sentence)
        return value

    return BeforeValidator(check)


def or_say(sentence: str) -> WrapValidator:
    """Refuse what a union of types does not take with one sentence, in place of one for each of them."""

    def check(value: object, validate: ValidatorFunctionWrapHandler) -> object:
        try:
            return validate(value)
        except ValidationError:
            raise _refusal(sentence) from None

    return WrapValidator(check)


def _refusal(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{sentence}", {"sentence": sentence})
