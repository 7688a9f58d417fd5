"""The blocks of the guides that are tried, what they print, and a shell to try them in."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.wire import ROOT, environment

DOCS = ROOT / "docs"
SERVICE = "127.0.0.1:8000"  # as the guides write it
_TRIED = re.compile(r"^<!-- tried(: empty database)? -->\n```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of a guide that is marked as tried."""

    language: str
    text: str
    needs_database: bool


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, such as `guides/ci.md`, that are tried."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [Block(language, block, bool(mark)) for mark, language, block in _TRIED.findall(text)]
    assert len(found) == len(re.findall(r"^<!-- tried", text, re.MULTILINE)), (
        "a mark is not followed by a console or sh block"
    )
    return found


def steps_of(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, with what it prints; `…` there is any text."""
    for step in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown.strip()


def assert_prints(command: str, shown: str, folder: Path) -> None:
    """Run a command, and check that it prints what a page shows."""
    printed = shell(command, folder)
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {command}\n{printed}\n\nis not\n\n{shown}"


def shell(script: str, folder: Path, **settings: str) -> str:
    """Run a script in a folder whose environment is active, as its reader does; return what it prints."""
    path = os.pathsep.join([str(folder / ".venv" / "bin"), os.environ["PATH"]])
    variables = {"COLUMNS": "120", "NO_COLOR": "1", "PATH": path, **settings}
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607  # whichever the reader has
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout.replace("\r\n", "\n").strip()
