"""One way from content to a response: its freshness, its entity tag, its content coding and its Vary (RFC 9110 §8)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Self

from starlette.datastructures import Headers
from starlette.responses import Response

from localidades_api.catalogue.schemas import Release
from localidades_api.http.caching import CACHE_CONTROL, freshness_headers
from localidades_api.http.conditional import EarlyResponse, lists_tag
from localidades_api.http.negotiation import CODINGS, choose_coding, compress

PRIVATE = "no-cache, private"  # of what is made from the Host header, which no shared cache may keep for others


@dataclass(frozen=True, slots=True)
class Representation:
    """What is known of a response before its content is made, such as whether the client has it.

    A route chooses one by what the content depends on, may check whether the client has it, and responds.
    """

    asked: Headers  # of the request
    headers: Mapping[str, str]  # that a 200 and its 304 share
    coding: str | None = None  # that the client prefers

    @classmethod
    def of(
        cls,
        asked: Headers,
        release: Release | None,
        variant: str,
        *,
        cache_control: str | None = None,
        codings: Sequence[str] = (),
        vary: Sequence[str] = (),
        is_pinned: bool = False,
        is_weak: bool = False,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Choose one that depends on a release and on what `variant` says, or without a release on that alone.

        `is_pinned` says that the request names the release, so that the response stays right when another is published.
        If the tag `is_weak`, all codings share it. `more` are other headers that a 304 has too.
        """
        coding = choose_coding(asked.getlist("accept-encoding"), codings) if codings else None
        if release is None:
            headers = {"Cache-Control": CACHE_CONTROL, "ETag": f'"{variant}.{coding or "identity"}"', **more}
        else:
            coded = f"{variant}.{coding}" if coding and not is_weak else variant
            headers = {**freshness_headers(release, coded, pinned=is_pinned), **more}
        if is_weak:
            headers["ETag"] = f"W/{headers['ETag']}"
        if cache_control:
            headers["Cache-Control"] = cache_control
        if vary := [*vary, *["Accept-Encoding"] * bool(codings)]:
            headers["Vary"] = ", ".join(vary)
        return cls(asked, headers, coding)

    def check_modified(self) -> None:
        """Raise EarlyResponse (304) if the client has the response, before a route reads or draws something.

        An optimization: the middleware `ConditionalRequests` would answer the same once the response begins. Only for a
        resource that exists: those of a release share their tags. `*` doesn't count.
        """
        if lists_tag(self.asked.getlist("if-none-match"), self.headers["ETag"]):
            raise EarlyResponse(HTTPStatus.NOT_MODIFIED, self.headers)

    def respond(self, content: bytes, media: Mapping[str, str]) -> Response:
        """Return the response with a content, compressed if the client prefers that; `media` describes it."""
        return self.respond_coded(compress(content, self.coding) if self.coding else content, media)

    def respond_coded(self, body: bytes, media: Mapping[str, str], status: int = HTTPStatus.OK) -> Response:
        """Return the response with a body that has the coding already."""
        coded = {"Content-Encoding": self.coding} if self.coding else {}
        return Response(body, status, {**self.headers, **media, **coded})


def digest_of(content: bytes) -> str:
    """Return the part of an entity tag that identifies a content."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def respond_with_document(
    asked: Headers,
    content: bytes,
    media: Mapping[str, str],
    *,
    cache_control: str = CACHE_CONTROL,
    vary: Sequence[str] = (),
) -> Response:
    """Return the response with a text that depends on no release."""
    chosen = Representation.of(asked, None, digest_of(content), cache_control=cache_control, codings=CODINGS, vary=vary)
    return chosen.respond(content, media)
