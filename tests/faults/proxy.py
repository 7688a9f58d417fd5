"""A TCP proxy in front of a server that simulates faults of the network."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CLOSE_BY_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close(2) sends RST


class Proxy:
    """Forwards bytes, drops them, or resets connections."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._upstream = port
        self._passing = asyncio.Event()
        self._passing.set()
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._to_server: set[asyncio.StreamWriter] = set()  # those to the server
        self._forgotten: set[asyncio.StreamWriter] = set()

    def swallow(self) -> None:
        """Stop forwarding without closing anything; new connections are silent too."""
        self._passing.clear()

    def heal(self) -> None:
        """Forward bytes again, dropped ones included, which TCP would retransmit."""
        self._refusing = False
        self._passing.set()

    def forget(self) -> None:
        """Forward new connections only; existing ones stay silent until one end closes them."""
        self._passing = asyncio.Event()
        self._passing.set()
        self._forgotten = set(self._to_server)

    def expire(self) -> None:
        """Close the forgotten connections at the server, as its TCP keepalive eventually does."""
        for writer in self._forgotten & self._to_server:
            _reset(writer)

    def lead_to(self, port: int) -> None:
        """Forward new connections to another server, and close the existing ones."""
        self._upstream = port
        self.reset()

    def reset(self, *, refusing: bool = False) -> None:
        """Send RST to both ends of every connection and, if `refusing`, to every new one."""
        self._refusing = refusing
        for writer in list(self._writers):
            _reset(writer)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if self._refusing:
            _reset(writer)
            return
        try:
            others = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            _reset(writer)
            return
        self._writers |= {writer, others[1]}
        self._to_server.add(others[1])
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, others[1]))
                pumps.create_task(self._pump(others[0], writer))
        finally:
            self._writers -= {writer, others[1]}
            self._to_server.discard(others[1])
            for end in (writer, others[1]):
                end.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing = self._passing
        with suppress(OSError):
            while chunk := await reader.read(65536):
                await passing.wait()
                writer.write(chunk)
                await writer.drain()
        await passing.wait()
        with suppress(OSError):
            writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():  # its socket may be closed by now
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_BY_RESET)
    writer.transport.abort()


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a port."""
    proxy = Proxy(port)
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
