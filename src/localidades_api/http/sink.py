"""A writable file object whose contents are streamed to the client."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Sink(io.RawIOBase):
    """A file opened for appending; its contents are taken away while it grows."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Return True, as a writer expects."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written in total."""
        return self._size

    def write(self, data: "Buffer", /) -> int:
        """Append bytes."""
        taken = bytes(data)
        self._written.append(taken)
        self._size += len(taken)
        return len(taken)

    def drain(self) -> bytes:
        """Return what was written since the last call, and forget it."""
        taken = b"".join(self._written)
        self._written.clear()
        return taken
