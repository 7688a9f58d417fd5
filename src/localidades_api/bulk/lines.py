"""Splits bytes that arrive in pieces of any size into whole lines of text."""

from dataclasses import dataclass

from localidades_api.errors import UnreadableBodyError
from localidades_api.importer.file_kinds import START, describe_kind

MAX_ROW = 1024**2  # bytes of one row
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Dialect:
    """How a file is written, as far as its answer keeps to it; known once its first row has been read."""

    columns: list[str] | None = None  # the headers of CSV; None for objects
    delimiter: str = ","
    line_end: str = "\r\n"  # RFC 4180
    has_bom: bool = False
    is_utf8: bool = True


class Lines:
    """Keeps bytes until their line is complete; a line ends with LF, CRLF or CR."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._has_begun = False

    def feed(self, data: bytes) -> bytes:
        """Return the lines that are complete now; raise UnreadableBodyError if one is longer than a row may be."""
        # A CR at the very end may be half of a CRLF.
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        if not end and self._pending[-1:] == b"\r" and data:
            return self._take(b"", data)
        if not end:
            self._pending += data
            self._check(len(self._pending))
            return b""
        self._check(len(self._pending) + min(at for at in (data.find(b"\n"), data.find(b"\r"), end) if at >= 0))
        return self._take(data[:end], data[end:])

    def close(self) -> bytes:
        """Return the last line, which has no end."""
        return self._take(b"", b"")

    def _take(self, complete: bytes, rest: bytes) -> bytes:
        taken = bytes(self._pending) + complete
        self._pending = bytearray(rest)
        if not self._has_begun and taken:
            self._has_begun = True
            refuse_other_formats(taken.splitlines()[0])
        return taken

    def _check(self, length: int) -> None:
        if length > MAX_ROW:
            if not self._has_begun:
                refuse_other_formats(bytes(self._pending[:START]))
            raise UnreadableBodyError(
                f"A line is longer than {MAX_ROW // 1024**2} MB: check that the file is text, a row a line."
            )


def refuse_other_formats(start: bytes) -> None:
    """Raise UnreadableBodyError for a file that is not text."""
    if kind := describe_kind(start):
        raise UnreadableBodyError(f"The file is {kind}.")


def decode(lines: bytes, layout: Dialect) -> str:
    """Decode each line as UTF-8 or, if it is not, as windows-1252, which old spreadsheets write."""
    try:
        return lines.decode()
    except UnicodeDecodeError:
        return "".join(_decode_line(line, layout) for line in lines.splitlines(keepends=True))


def _decode_line(line: bytes, layout: Dialect) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        layout.is_utf8 = False
        return line.decode("windows-1252", "replace")  # five bytes are undefined


def without_bom(lines: bytes, layout: Dialect) -> bytes:
    """Return the first lines of a file without the byte order mark that some UTF-8 files begin with."""
    layout.has_bom = lines.startswith(_BOM)
    return lines.removeprefix(_BOM)
