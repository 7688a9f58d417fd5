"""Responses with a whole text: compressed if the client accepts it, with a validator of its content."""

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response

from localidades_api.http.caching import is_fresh
from localidades_api.http.negotiation import CODINGS, choose_coding, compress

_IDENTITY = "identity"


def digest_of(content: bytes) -> str:
    """Return the part of an entity tag that identifies a content."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def respond_with_document(asked: Headers, content: bytes, headers: Mapping[str, str]) -> Response:
    """Return the response with a text, or 304; `headers` has at least Content-Type and Cache-Control."""
    return respond_in_coding(asked, digest_of(content), lambda coding: _encode(content, coding), headers)


def respond_in_coding(
    asked: Headers, digest: str, encode: Callable[[str], bytes], headers: Mapping[str, str], status_code: int = 200
) -> Response:
    """Return the response that `encode` makes in the coding that the client prefers, which may be `identity`."""
    coding = choose_coding(asked.getlist("accept-encoding"), CODINGS) or _IDENTITY
    etag = f'"{digest}.{coding}"'
    if is_fresh(asked.getlist("if-none-match"), etag):
        kept = {name: value for name, value in headers.items() if name != "Content-Type"}
        response = Response(status_code=HTTPStatus.NOT_MODIFIED, headers=kept)
    else:
        response = Response(encode(coding), status_code, headers)
        if coding != _IDENTITY:
            response.headers["Content-Encoding"] = coding
    response.headers["ETag"] = etag
    response.headers.add_vary_header("Accept-Encoding")
    return response


def _encode(content: bytes, coding: str) -> bytes:
    return content if coding == _IDENTITY else compress(content, coding)
