"""The interface of a mirror's sources: the application on a database, or a running service."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

Sink = Callable[[bytes], object]


class Head(NamedTuple):
    """Status and headers of an answer; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]


class RecordResponse(NamedTuple):
    """The answer to a locality's address; its headers are those of every other single record."""

    id: int
    body: bytes


class Upstream(Protocol):
    """The service that a mirror is made from."""

    async def ask(self, target: str, sink: Sink, accept: str = "application/json") -> Head:
        """Send a GET for a target, hand the body to `sink` as it comes, and return the head of the answer.

        Raises MirrorError if nobody answers.
        """

    def localities(self, release: str, municipios: Sequence[int]) -> AsyncIterator[RecordResponse]:
        """Yield the answer to each locality of these municipios, by key; no municipio lies between them."""


async def fetch(upstream: Upstream, target: str) -> tuple[Head, bytes]:
    """Return a whole answer."""
    body = bytearray()
    head = await upstream.ask(target, body.extend)
    return head, bytes(body)
