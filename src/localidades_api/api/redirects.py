"""Relative redirects to canonical addresses, and from forms to the lists that they filter."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

from fastapi import Request
from starlette.responses import Response

from localidades_api.catalogue.keys import KIND_BY_DIGITS, KINDS


def redirect(request: Request, location: str) -> Response:
    """Redirect permanently, with the query, to a relative path, since the Host header is not trusted."""
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": with_query(request, location)})


def with_query(request: Request, location: str) -> str:
    """Return a relative path, quoted, with the query of a request."""
    query = request.scope["query_string"]
    return quote(location, safe="/") + ("?" + quote(query, safe="!$%&'()*+,;=:@/?-._~") if query else "")


async def leave_out_blanks(request: Request) -> Response:
    """Redirect a form to the list above, without its blank fields: a browser submits every field."""
    return see_list(filled(request))


def filled(request: Request) -> dict[str, str]:
    """Return the fields of a form that aren't blank, without the spaces around them."""
    return {name: text for name, value in request.query_params.items() if (text := value.strip())}


def see_search(query: Mapping[str, str], folder: str = "localidades") -> Response:
    """Redirect the form of a list to the list in `folder`, or to the page of a whole key.

    A search is sorted by relevance. A clave may lack its zeros, or be the key of a municipio or a locality.
    """
    kept = dict(query)
    clave = kept.pop("clave", "")
    if _is_key(clave, 9):
        return _see_page(clave, kept, folder)
    if _is_key(clave, 5):
        kept["municipio_id"] = str(int(clave))
    elif clave:
        kept["clave"] = clave.zfill(4) if clave.isascii() and clave.isdecimal() else clave
    search = kept.get("search", "")
    if any(_is_key(search, digits) for digits in KIND_BY_DIGITS):
        return _see_page(search, kept, folder)
    return see_list({**kept, "sort": "relevance"} if search and "sort" not in kept else kept)


def _is_key(text: str, digits: int) -> bool:
    return len(text) == digits and text.isascii() and text.isdecimal()


def _see_page(key: str, query: Mapping[str, str], folder: str) -> Response:
    kept = {name: query[name] for name in ("format", "lang", "release") if name in query}
    wanted = KINDS[KIND_BY_DIGITS[len(key)]].plural
    path = "" if wanted == folder else f"../{wanted}/"
    return _see(f"../{path}{int(key)}/", kept)


def see_list(query: Mapping[str, str]) -> Response:
    """Redirect a form to the list above it."""
    return _see("../", query)


def _see(path: str, query: Mapping[str, str]) -> Response:
    location = f"{path}?{urlencode(query)}" if query else path
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": location})
