"""Ends a connection: with a refusal, or with a response that the client may read while it is still sending."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from localidades_api.errors import LocalidadesError
from localidades_api.http.headers import API_HEADERS, on_wire
from localidades_api.http.problems import Wanted, problem_of
from localidades_api.http.uvicorn_internals import STATUS_LINE

if TYPE_CHECKING:
    import asyncio


class LingeringTransport:
    """The transport of a connection's last response: closing it waits for a client that is still sending."""

    def __init__(self, transport: "asyncio.Transport", leave: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = leave


def refusal(error: LocalidadesError, root: str, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the response to a request that the application is not called with: a problem, and the connection's end."""
    answer = problem_of(error, Wanted(root=root))
    headers = [*default_headers, *answer.raw_headers, *API_HEADERS, (b"connection", b"close")]
    return b"".join((STATUS_LINE[answer.status_code], on_wire(headers), b"\r\n", bytes(answer.body)))
