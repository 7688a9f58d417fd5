"""Finds the tested blocks of the guides, runs them in a shell and checks their output."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.wire import ROOT, environment

DOCS = ROOT / "docs"
SERVICE = "127.0.0.1:8000"  # as in the guides
MARKED = re.compile(r"^<!-- (not )?tried(: [^\n]*)? -->\n```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of a guide that is marked as tried, or as not tried with a reason."""

    language: str
    text: str
    is_tried: bool
    needs_database: bool


def blocks_of(page: str) -> list[Block]:
    """Return the marked blocks of a page, such as `guides/ci.md`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [
        Block(language, block, not left_out, mark == ": empty database")
        for left_out, mark, language, block in MARKED.findall(text)
    ]
    assert len(found) == len(re.findall(r"^ *<!-- (?:not )?tried", text, re.MULTILINE)), (
        "a mark is not followed by a console or sh block"
    )
    return found


def steps_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with its output, where `…` stands for any text."""
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *shown = re.split(r"(?<!\\)\n", step, maxsplit=1)  # a backslash continues the command
        yield command, "".join(shown).strip()


def assert_prints(command: str, shown: str, folder: Path, **variables: str) -> None:
    """Run a command and check that it prints the output that a page shows."""
    printed = shell(command, folder, **variables)
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    assert re.fullmatch(pattern, printed, re.DOTALL), f"$ {command}\n{printed}\n\nis not\n\n{shown}"


def follow(language: str, text: str, folder: Path, **variables: str) -> None:
    """Run a block in a folder; fail if the output differs from the block's."""
    if language == "sh":
        shell(text, folder, **variables)
        return
    for command, shown in steps_of(text):
        assert_prints(command, shown, folder, **variables)


def shell(script: str, folder: Path, **variables: str) -> str:
    """Run a script in a folder with its environment activated; return the output."""
    path = os.pathsep.join([str(folder / ".venv" / "bin"), os.environ["PATH"]])
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607  # whichever the reader has
        cwd=folder,
        env=environment(COLUMNS="120", NO_COLOR="1", PATH=path) | variables,
        capture_output=True,
        text=True,
        timeout=300,  # a guide may install the package
        check=False,
    )
    assert ended.returncode == 0, f"{script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout.replace("\r\n", "\n").strip()
