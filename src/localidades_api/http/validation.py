"""Describes invalid parameters in sentences that never repeat the input."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from localidades_api.domain.choices import refuse_parameter, refuse_value

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_MAX_FAULTS = 50  # in one problem: each may name every parameter of a resource
_CHOICE = re.compile("'([^']*)'")  # in pydantic's list of the values that a parameter takes


def describe_faults(error: RequestValidationError, endpoint: Callable[..., Any] | None) -> list[tuple[str, str]]:
    """Return the parameters and the sentences of the first errors; `endpoint` is the function of the resource."""
    return [_fault(fault, endpoint) for fault in error.errors()[:_MAX_FAULTS]]


def _fault(fault: Mapping[str, Any], endpoint: Callable[..., Any] | None) -> tuple[str, str]:
    """Return the parameter and the sentence of a pydantic error; these messages don't contain the input."""
    name = str(fault["loc"][-1])
    if fault["type"] == "extra_forbidden":
        message = refuse_parameter(name, _parameters_of(endpoint))
    elif fault["type"] == "literal_error":
        message = refuse_value(str(fault["input"]), _CHOICE.findall(fault["ctx"]["expected"]))
    else:
        message = f"{fault['msg'].rstrip('.')}."
    return plain_name(name), message


@cache
def _parameters_of(endpoint: Callable[..., Any] | None) -> list[str]:
    """Return the names of the parameters in the query of a resource: the fields of the model that reads it."""
    hints = get_type_hints(endpoint) if endpoint else {}
    models = [hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, BaseModel)]
    return [name for model in models for name in model.model_fields]


def plain_name(name: str) -> str:
    """Return a parameter's name if it is safe to show, else a placeholder."""
    return name if _PLAIN_NAME.fullmatch(name) else "(a name that is not plain ASCII)"
