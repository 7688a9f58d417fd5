"""Relative redirects to canonical addresses, and from forms to the lists that they filter."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

from fastapi import Request
from starlette.responses import Response


def redirect(request: Request, location: str) -> Response:
    """Redirect permanently, with the query, to a relative path, since the Host header is not trusted."""
    location = quote(location, safe="/")
    if query := request.scope["query_string"]:
        location += "?" + quote(query, safe="!$%&'()*+,;=:@/?-._~")
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": location})


async def leave_out_blanks(request: Request) -> Response:
    """Redirect a form to the list above, without its blank fields: a browser submits every field."""
    return see_list(filled(request))


def filled(request: Request) -> dict[str, str]:
    """Return the fields of a form that aren't blank."""
    return {name: value for name, value in request.query_params.items() if value}


def see_list(query: Mapping[str, str]) -> Response:
    """Redirect a form to the list above it."""
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": f"../?{urlencode(query)}"})
