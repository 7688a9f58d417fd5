"""Conditional requests (RFC 9110 §13), which a middleware answers with 304."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A server in front that compresses, such as Apache, adds the coding to the tag, and gives it back as it is.
_ENTITY_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*?)(?:(?:--?|;)(?:gzip|br|zstd|deflate))?"')
# Headers that a 304 lacks, because they describe the content or concern only its display (RFC 9110 §15.4.5).
_OF_CONTENT = frozenset({
    b"content-type", b"content-length", b"content-encoding", b"content-range", b"content-disposition",
    b"content-security-policy", b"referrer-policy", b"x-content-type-options",
})  # fmt: skip


class ConditionalRequests:
    """Replaces a response whose ETag the client has with a 304, whichever route it comes from.

    The 304 ends when the response begins. The server then reports a disconnect to the route, which ends a stream.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and discard a response that the client has."""
        asked = scope["headers"] if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} else ()
        if_none_match = [line.decode("latin-1") for name, line in asked if name == b"if-none-match"]
        if not if_none_match:
            await self.app(scope, receive, send)
            return
        is_discarded = False

        async def send_if_modified(message: Message) -> None:
            nonlocal is_discarded
            if message["type"] == "http.response.start":
                is_success = HTTPStatus.OK <= message["status"] < HTTPStatus.MULTIPLE_CHOICES
                etag = Headers(raw=message["headers"]).get("etag")
                if is_success and etag and is_fresh(if_none_match, etag):
                    is_discarded = True
                    kept = [field for field in message["headers"] if field[0] not in _OF_CONTENT]
                    await send({**message, "status": HTTPStatus.NOT_MODIFIED, "headers": kept})
                    await send({"type": "http.response.body"})
            if not is_discarded:
                await send(message)

        await self.app(scope, receive, send_if_modified)


class EarlyResponse(Exception):  # noqa: N818  # an answer
    """Raised with the response if the rest of a route has nothing to do: 304, or a redirect."""

    def __init__(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.response = Response(status_code=status, headers=headers)


def is_fresh(if_none_match: Sequence[str], etag: str) -> bool:
    """Return whether If-None-Match lists the ETag of a response or is `*`, by weak comparison (RFC 9110 §13.1.2).

    `if_none_match` has the lines of that header, since a list may be split over several (RFC 9110 §5.3).
    If-Modified-Since is ignored: going back to an older release makes the dates run backwards.
    """
    return ", ".join(if_none_match).strip() == "*" or lists_tag(if_none_match, etag)


def lists_tag(if_none_match: Sequence[str], etag: str) -> bool:
    """Return whether If-None-Match lists an ETag."""
    return etag.removeprefix("W/").strip('"') in _ENTITY_TAG.findall(", ".join(if_none_match))
