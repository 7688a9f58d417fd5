"""The body of a connection's last request, passed on as it comes."""

from typing import Any

from localidades_api.http.uvicorn_internals import HttpToolsProtocol
from localidades_api.server.framing import malformed

MAX_PIECE = 64 * 1024  # bytes of a body that are parsed at a time
_MAX_FRAMING = 80 * 1024  # bytes


class BodyProtocol(HttpToolsProtocol):
    """Bounds what frames a body, which the parser holds in memory: chunk extensions and trailers (RFC 9112 §7.1)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  # passed on
        super().__init__(*arguments, **options)
        self._is_receiving = False  # a body
        self._head_fields = 0  # header fields that came before it
        self._framing = 0  # bytes that have been received since the last ones of a body

    def _begin_body(self) -> None:
        self._is_receiving = True
        self._head_fields = len(self.headers)

    def _end_body(self) -> None:
        """Refuse a trailer, which nothing here reads. A check of each header field would cost every request."""
        if len(self.headers) > self._head_fields:
            raise malformed()
        self._is_receiving = False

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._framing = 0
        super().on_body(body)

    def _is_framed_at_length(self, size: int) -> bool:
        """Note so many bytes more, and tell whether too many of the last ones are framing."""
        self._framing += size
        return self._framing > _MAX_FRAMING

    def _abandon_body(self) -> bool:
        """End the request for the application, which can't respond any more; tell whether it had not begun to."""
        self._is_receiving = False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        if self.cycle.response_started:
            self.transport.abort()
            return False
        self.cycle.response_complete = True
        return True
