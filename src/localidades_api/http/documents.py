"""Responses with a whole text: compressed if the client accepts it, with a validator of its content."""

import hashlib
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.responses import Response

from localidades_api.http.negotiation import CODINGS, choose_coding, compress

_IDENTITY = "identity"


def digest_of(content: bytes) -> str:
    """Return the part of an entity tag that identifies a content."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def respond_with_document(asked: Headers, content: bytes, headers: Mapping[str, str]) -> Response:
    """Return the response with a text; `headers` has at least Content-Type and Cache-Control."""

    def encode(coding: str) -> bytes:
        return content if coding == _IDENTITY else compress(content, coding)

    return respond_in_coding(asked, digest_of(content), encode, headers)


def respond_in_coding(
    asked: Headers, digest: str, encode: Callable[[str], bytes], headers: Mapping[str, str], status_code: int = 200
) -> Response:
    """Return the response that `encode` makes in the coding that the client prefers, which may be `identity`."""
    coding = choose_coding(asked.getlist("accept-encoding"), CODINGS) or _IDENTITY
    response = Response(encode(coding), status_code, headers)
    if coding != _IDENTITY:
        response.headers["Content-Encoding"] = coding
    response.headers["ETag"] = f'"{digest}.{coding}"'
    response.headers.add_vary_header("Accept-Encoding")
    return response
