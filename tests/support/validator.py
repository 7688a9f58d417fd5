"""The Nu HTML Checker of the W3C."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT


def errors_in(folder: Path, *accepted: str) -> list[str]:
    """Return the errors of the HTML files below a folder, except those that match a pattern."""
    java = needed(shutil.which("java"), "the Nu HTML Checker needs Java")
    jar = ROOT / "tests" / "validator" / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    program = [java, "-jar", needed(jar, "vnu-jar is not installed: `make tail` does it, with npm")]
    options = ["--stdout", "--exit-zero-always", "--format", "json", "--skip-non-html"]
    checked = subprocess.run([*program, *options, str(folder)], capture_output=True, timeout=PATIENCE, check=True)
    messages: list[dict[str, Any]] = json.loads(checked.stdout)["messages"]
    return [
        f"{message['url'].partition(f'{folder}/')[2]}: {message['message']} {message.get('extract', '')}"
        for message in messages
        if message["type"] != "info" and not any(re.match(pattern, message["message"]) for pattern in accepted)
    ]
