"""Says what is wrong with a value, in sentences of this service: pydantic's speak of its own types."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ErrorType

from localidades_api.catalogue.choices import refuse_value

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


def or_say(sentence: str) -> WrapValidator:
    """Refuse what a union of types does not take with one sentence, in place of one for each of them."""

    def check(value: object, validate: ValidatorFunctionWrapHandler) -> object:
        try:
            return validate(value)
        except ValidationError:
            raise PydanticCustomError("form", "{sentence}", {"sentence": sentence}) from None

    return WrapValidator(check)


def _written(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
