"""The blocks of the guides that are tried, and a shell to try them in."""

import re
import subprocess
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


def shell(script: str, folder: Path) -> str:
    """Run a script in a folder, as its reader does; return what it prints."""
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607  # whichever the reader has
        cwd=folder,
        env=environment(COLUMNS="120", NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout.replace("\r\n", "\n").strip()
