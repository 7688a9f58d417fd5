"""Responses to HTTP/1.0, which has neither chunks nor interim responses (RFC 9112 §6.1, RFC 9110 §10.1.1)."""

import asyncio
import socket
import struct
from typing import cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localidades_api.http.uvicorn_internals import ASGI3Application, RequestResponseCycle

_RESET = struct.pack("ii", 1, 0)  # linger for no second


class CloseDelimited:
    """Ends a body of unknown length by closing the connection.

    The client can't tell such an end from that of a response that has failed, so the latter resets the connection.
    """

    def __init__(self, app: "ASGI3Application", cycle: "RequestResponseCycle", transport: asyncio.Transport) -> None:
        self._app = cast("ASGIApp", app)
        self._cycle = cycle
        self._transport = transport
        self._has_length = True
        cycle.waiting_for_100_continue = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application."""

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._has_length = any(name.lower() == b"content-length" for name, _ in message["headers"])
            if not self._has_length:
                self._cycle.chunked_encoding = False
                self._cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_unframed)
        finally:
            if not self._has_length and not self._cycle.response_complete:
                self._reset()

    def _reset(self) -> None:
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
