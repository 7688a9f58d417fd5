"""Refuses ambiguous queries."""

from collections import Counter
from urllib.parse import unquote_to_bytes

from fastapi import Depends, Request

from localidades_api.catalogue.messages import plain_name
from localidades_api.errors import InvalidParametersError


def _refuse_ambiguous(request: Request) -> None:
    """Raise InvalidParametersError for a query that isn't UTF-8, holds a NUL, or gives a parameter twice.

    A parameter that is ignored or overruled in silence gives a client other data than it asked for.
    """
    if not request.scope["query_string"]:
        return
    raw = unquote_to_bytes(request.scope["query_string"])
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidParametersError([("query", "The query is not UTF-8.")]) from None
    if "\0" in text:
        raise InvalidParametersError([("query", "The query contains a NUL character.")])
    names = [name for name, _ in request.query_params.multi_items()]
    if len(names) > len(set(names)):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise InvalidParametersError([(plain_name(name), "Give this parameter only once.") for name in repeated])


STRICT = [Depends(_refuse_ambiguous)]
