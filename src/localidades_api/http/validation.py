"""Describes invalid parameters in sentences that never repeat the input."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from localidades_api.catalogue.choices import refuse_parameter
from localidades_api.catalogue.messages import describe_fault, plain_name

_MAX_FAULTS = 50  # in one problem: each may name every parameter of a resource


def describe_faults(error: RequestValidationError, endpoint: Callable[..., Any] | None) -> list[tuple[str, str]]:
    """Return the parameters and the sentences of the first errors; `endpoint` is the function of the resource."""
    return [_fault(fault, endpoint) for fault in error.errors()[:_MAX_FAULTS]]


def _fault(fault: Mapping[str, Any], endpoint: Callable[..., Any] | None) -> tuple[str, str]:
    """Return the parameter and the sentence of a pydantic error."""
    name = str(fault["loc"][-1])
    if fault["type"] == "extra_forbidden":
        return plain_name(name), refuse_parameter(name, _parameters_of(endpoint))
    return plain_name(name), describe_fault(fault)


@cache
def _parameters_of(endpoint: Callable[..., Any] | None) -> list[str]:
    """Return the names of the parameters in the query of a resource: the fields of the model that reads it."""
    hints = get_type_hints(endpoint) if endpoint else {}
    models = [hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, BaseModel)]
    return [name for model in models for name in model.model_fields]
