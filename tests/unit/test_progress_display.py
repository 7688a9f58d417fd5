"""Progress of commands: a bar on a terminal, plain lines elsewhere."""

import io
import re

import pytest

from localidades_api.observability import progress_display
from localidades_api.observability.progress import ImportStep
from localidades_api.observability.progress_display import StderrConsole, show_progress


class Terminal(io.StringIO):
    """A file that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def shown(monkeypatch: pytest.MonkeyPatch, file: io.StringIO) -> str:
    """Return what two steps write to a file; the second is the last one shown."""
    console = StderrConsole(file=file, width=100, highlight=False, soft_wrap=True, force_terminal=file.isatty())
    monkeypatch.setattr(progress_display, "console", console)
    with show_progress() as progress:
        progress.begin(ImportStep.FETCH)
        progress.expect(2_000_000)
        progress.advance(500_000)
        progress.begin(ImportStep.READ)
        progress.expect(8)
        progress.advance(1)
        progress.advance(2)
    return file.getvalue()


def test_bar_shows_the_last_step_with_its_amount_and_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(monkeypatch, Terminal())
    *_, last = re.split(r"\x1b\[\?25[lh]", written.rstrip())[:-1]
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last)
    *_, frame = [line for line in re.split(r"[\r\n]", text) if line.strip()]
    assert re.fullmatch(r"\S reading rows ━+╺?━* 3/8 rows +(-:--|[0-9]+:[0-9]+) *", frame), frame
    assert "\x1b[?25h" in written  # the cursor is back
    assert written.rpartition("3/8")[2].count("\x1b[2K") >= 1  # and the bar gone


def test_lines_have_a_step_then_its_amount_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.fullmatch(
        r"fetching the file\n  500,000 bytes \([0-9,]+/s\)\nreading rows\n", shown(monkeypatch, io.StringIO())
    )
