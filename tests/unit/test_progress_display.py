"""Progress of commands where stderr is no terminal; `offline/test_opening` has the bar on one."""

import io
import re

import pytest

from localidades_api.observability import progress_display
from localidades_api.observability.progress import ImportStep
from localidades_api.observability.progress_display import StderrConsole, show_progress


def test_lines_have_a_step_then_its_amount_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(progress_display, "console", StderrConsole(file=file, highlight=False, soft_wrap=True))
    with show_progress() as progress:
        for step, amount in ((ImportStep.FETCH, 500_000), (ImportStep.READ, 3)):
            progress.begin(step)
            progress.expect(2_000_000)
            progress.advance(amount)
    assert re.match(r"fetching the file\n  500,000 bytes \([0-9,]+/s\)\nreading rows\n", file.getvalue())
