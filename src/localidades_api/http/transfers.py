"""The limit on long transfers: downloads, and answers to many rows."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Scope

from localidades_api.errors import TransfersFullError

TRANSPORT = "localidades.transport"  # key in the ASGI scope of the transport that the response is written to

_log = logging.getLogger(__name__)


class Transfers:
    """The transfers under way: at most `limit`, and each for at most `timeout` seconds.

    A client may read as slowly as it likes until then. A proxy that buffers keeps slow readers from holding slots.
    """

    def __init__(self, limit: int, timeout: float) -> None:
        self._limit = limit
        self._timeout = timeout
        self._under_way: set[Transfer] = set()

    def begin(self) -> "Transfer":
        """Take a slot, which `Transfer.end` releases; raise TransfersFullError if there is none."""
        if len(self._under_way) >= self._limit:
            raise TransfersFullError
        transfer = Transfer(self._under_way, self._timeout)
        self._under_way.add(transfer)
        return transfer


class Transfer:
    """A transfer under way."""

    def __init__(self, under_way: "set[Transfer]", timeout: float) -> None:
        self._under_way = under_way
        self._timeout = timeout
        self._deadline = asyncio.get_running_loop().time() + timeout

    def end(self) -> None:
        """Release its slot."""
        self._under_way.discard(self)

    @asynccontextmanager
    async def sending(self, scope: Scope) -> AsyncIterator[None]:
        """End the transfer with the block, which is cancelled at its timeout; the connection is aborted then."""
        try:
            async with asyncio.timeout_at(self._deadline) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            _log.info("Cut off a transfer that had taken %g seconds.", self._timeout)
            # Closed, the connection would stay until its client has read what is buffered.
            transport: asyncio.Transport | None = scope.get(TRANSPORT)
            if transport is not None:
                transport.abort()
                await asyncio.sleep(0)  # in which the server notices
        finally:
            self.end()
