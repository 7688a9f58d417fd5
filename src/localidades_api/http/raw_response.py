"""A complete response: this project's server writes its bytes, any other calls it as an ASGI application."""

from typing import NamedTuple, Self

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from localidades_api.http.headers import on_wire


class RawResponse(NamedTuple):
    """Status, header lines as sent over the wire (in pieces that may end anywhere), and body."""

    status: int
    headers: tuple[bytes, ...]
    body: bytes

    @classmethod
    def of(cls, response: Response) -> Self:
        """Convert a response of Starlette that is not streamed."""
        return cls(response.status_code, (on_wire(response.raw_headers),), bytes(response.body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # ASGI's signature
        """Send the response."""
        headers = [tuple(line.split(b": ", 1)) for line in b"".join(self.headers).split(b"\r\n")[:-1]]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
