"""Relative redirects to canonical addresses, and from forms to the lists that they filter."""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from localidades_api.catalogue.keys import KIND_BY_DIGITS, KINDS

router = APIRouter(include_in_schema=False)


def redirect(request: Request, location: str) -> Response:
    """Redirect permanently, with the query, to a relative path, since the Host header is not trusted."""
    return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": with_query(request, location)})


def with_query(request: Request, location: str) -> str:
    """Return a relative path, quoted, with the query of a request."""
    query = request.scope["query_string"]
    return quote(location, safe="/") + ("?" + quote(query, safe="!$%&'()*+,;=:@/?-._~") if query else "")


@router.get("/releases/{name}/changes/filter/")
async def filter_changes(request: Request) -> Response:
    """Redirect a form to the list above it, without its blank fields: a browser submits every field."""
    return _see("../", _filled(request))


@router.get("/estados/filter/")
@router.get("/localidades/filter/")
@router.get("/municipios/filter/")
async def search_or_filter(request: Request) -> Response:
    """Redirect the form of a list to the list above it, or to the page of a whole key.

    A search is sorted by relevance. A clave may lack its zeros, or be the key of a municipio or a locality.
    """
    query = _filled(request)
    clave = query.pop("clave", "")
    if _is_key(clave, 9):
        return _see_page(request, clave, query)
    if _is_key(clave, 5):
        query["municipio_id"] = str(int(clave))
    elif clave:
        query["clave"] = clave.zfill(4) if clave.isascii() and clave.isdecimal() else clave
    search = query.get("search", "")
    if any(_is_key(search, digits) for digits in KIND_BY_DIGITS):
        return _see_page(request, search, query)
    return _see("../", {**query, "sort": "relevance"} if search and "sort" not in query else query)


def _filled(request: Request) -> dict[str, str]:
    """Return the fields of a form that aren't blank, without the spaces around them."""
    return {name: text for name, value in request.query_params.items() if (text := value.strip())}


def _is_key(text: str, digits: int) -> bool:
    return len(text) == digits and text.isascii() and text.isdecimal()


def _see_page(request: Request, key: str, query: Mapping[str, str]) -> Response:
    plural = KINDS[KIND_BY_DIGITS[len(key)]].plural
    folder = "" if request.scope["path"].endswith(f"/{plural}/filter/") else f"../{plural}/"
    carried = {name: query[name] for name in ("format", "lang", "release") if name in query}
    return _see(f"../{folder}{int(key)}/", carried)


def _see(path: str, query: Mapping[str, str]) -> Response:
    location = f"{path}?{urlencode(query)}" if query else path
    return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": location})
