"""Commands run as from a terminal: a pseudo-terminal for what they say."""

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from tests.support.waiting import PATIENCE
from tests.support.wire import environment, start_command

_COLOUR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-9]|4[0-9]|9[0-7]|10[0-7])(?:;[0-9]+)*m")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class TerminalRun:
    """How a command ended, and what the terminal was sent."""

    returncode: int
    sent: str

    @property
    def coloured(self) -> bool:
        """Whether any of it has a colour."""
        return _COLOUR.search(self.sent) is not None

    @property
    def lines(self) -> list[str]:
        """What stood on a line at any time, without what only a terminal understands."""
        return [line.rstrip() for line in re.split(r"[\r\n]+", _CONTROL.sub("", self.sent)) if line.strip()]


def run_in_terminal(
    *arguments: str, columns: int = 80, term: str = "xterm-256color", env: Mapping[str, str] | None = None
) -> TerminalRun:
    """Run a command of ours to its end; stdout and stderr are one terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = dict(env or environment()) | {"TERM": term}
    for name in ("COLUMNS", "LINES"):
        variables.pop(name, None)
    process = start_command(*arguments, streams=(theirs, theirs, theirs), env=variables)
    os.close(theirs)
    sent = b""
    with suppress(OSError):  # EIO, once the last process that held the terminal has ended
        while received := os.read(ours, 65536):
            sent += received
    os.close(ours)
    return TerminalRun(process.wait(PATIENCE), sent.decode())
