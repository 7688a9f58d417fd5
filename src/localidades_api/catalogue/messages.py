"""Messages about invalid values, and validators that raise them.

They replace pydantic's messages, which mention its types. A message never repeats the input. Some validators refuse
values that pydantic would accept.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import AfterValidator, BeforeValidator, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ErrorType
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

from localidades_api.catalogue.coordinates import DECIMAL

MAX_NUMBER = 2**53 - 1  # the largest integer that every JSON reader keeps exactly
_MAX_DIGITS = len(str(MAX_NUMBER))
_MAX_LENGTH = 40  # characters; longer names are not compared, since no known name is as long
_MIN_LIKENESS = 0.85  # `municipio` is similar to `municipio_id`, and `id` to nothing
_OF_PYDANTIC = frozenset(get_args(ErrorType))
_CHOICE = re.compile("'([^']*)'")  # in pydantic's list of permitted values
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
    """Return the message for one of pydantic's errors."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "literal_error":
        return refuse_value(str(fault.get("input", "")), _CHOICE.findall(context["expected"]))
    if kind in SENTENCES:
        return SENTENCES[kind].format_map({name: _without_fraction(value) for name, value in context.items()})
    return "This value can't be read." if kind in _OF_PYDANTIC else f"{fault['msg'].rstrip('.')}."


def describe_place(location: Sequence[str | int]) -> str:
    """Return the path of an invalid value, such as `rows[0].nombre`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{plain_name(part)}" for part in location)
    return "".join(parts).removeprefix(".")


def plain_name(name: str) -> str:
    """Return a name from the request if it is safe to show, else a placeholder."""
    return name if _PLAIN_NAME.fullmatch(name) else "(a name that is not plain ASCII)"


def _without_fraction(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def refuse_parameter(given: str, known: Sequence[str]) -> str:
    """Return the message for an unknown parameter."""
    return f"Unknown parameter. {did_you_mean(given, known)}This resource takes: {', '.join(known)}."


def refuse_value(given: str, known: Sequence[str]) -> str:
    """Return the message for a value that a parameter does not take."""
    return f"{did_you_mean(given, known)}This parameter takes: {', '.join(known)}."


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """Return a question with the most similar known name, ignoring case; empty if none is similar."""
    if len(given) > _MAX_LENGTH:
        return ""
    found = process.extractOne(
        given, known, scorer=JaroWinkler.normalized_similarity, processor=str.casefold, score_cutoff=_MIN_LIKENESS
    )
    return f"Did you mean `{found[0]}`? " if found else ""


def several_of(known: Sequence[str]) -> AfterValidator:
    """Accept known names separated by commas, and return each once, in the order of `known`."""

    def check(text: str) -> str:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            question = did_you_mean(unknown[0], known)
            raise _refusal(f"{question}This parameter takes, separated by commas: {', '.join(known)}.")
        return ",".join(name for name in known if name in given)

    return AfterValidator(check)


def matching(pattern: str, message: str) -> AfterValidator:
    """Refuse a text that does not match as a whole; the OpenAPI document needs the pattern in `json_schema_extra`."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise _refusal(message)
        return text

    return AfterValidator(check)


def whole_number(message: str, *, is_signed: bool = False) -> BeforeValidator:
    """Refuse what int() accepts but ASCII digits: spaces, underscores, other scripts, and signs but a minus."""
    sign = "-?" if is_signed else ""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(f"{sign}[0-9]+", value):
            raise _refusal(message)
        if isinstance(value, str) and len(value) > _MAX_DIGITS:
            raise PydanticCustomError("number_size", "A number has at most 16 digits.")
        return value

    return BeforeValidator(check)


def plain_decimal(message: str) -> BeforeValidator:
    """Refuse what float() accepts but plain decimals: exponents, underscores, spaces, nan."""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(DECIMAL, value):
            raise _refusal(message)
        return value

    return BeforeValidator(check)


def with_message(message: str) -> WrapValidator:
    """Replace the messages for each type of a union with one."""

    def check(value: object, validate: ValidatorFunctionWrapHandler) -> object:
        try:
            return validate(value)
        except ValidationError:
            raise _refusal(message) from None

    return WrapValidator(check)


def _refusal(message: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{message}", {"message": message})
