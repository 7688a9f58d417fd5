"""An ASGI app that answers everything with the same bytes: the ceiling of uvicorn and Python."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

_BODY = Path(os.environ["BENCHMARK_PAGE"]).read_bytes()
_START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())],
}
_END = {"type": "http.response.body", "body": _BODY}


async def app(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],  # noqa: ARG001  # ASGI's signature
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Send the constant answer."""
    if scope["type"] == "http":
        await send(_START)
        await send(_END)
