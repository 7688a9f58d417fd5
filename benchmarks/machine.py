"""A description of the machine: its system and the versions of the measured software."""

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.contenders import PEERS_BIN, PEERS_FOLDER
from benchmarks.database import read_value
from benchmarks.processes import ROOT

_OF_OURS = ("localidades-api", "fastapi", "starlette", "uvicorn", "uvloop", "httptools", "asyncpg", "sqlalchemy")
_OF_PEERS = ("django", "djangorestframework", "gunicorn", "psycopg", "fastapi", "sqlalchemy", "pydantic", "uvicorn")


def describe_machine(url: str) -> dict[str, object]:
    """Return the machine, its system, and the versions of everything measured."""
    return {
        "measured_at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": _say("git", "rev-parse", "--short", "HEAD"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "postgres": read_value(url, "SHOW server_version"),
        "node": _say("node", "--version").lstrip("v"),
        "nginx": _say("nginx", "-v").partition("/")[2],
        "wrk": _say("wrk", "-v").split("\n")[0].split(" [")[0].removeprefix("wrk "),
        "ours": {name: version(name) for name in _OF_OURS},
        "peers": _peer_versions(),
    }


def _cpu() -> str:
    found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _say(*command: str) -> str:
    """Return the version that a command prints, on stdout or stderr."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def _peer_versions() -> dict[str, str]:
    listed = json.loads(_say(str(PEERS_BIN / "pip"), "list", "--format=json").splitlines()[0])
    every = {package["name"].lower(): package["version"] for package in listed}
    node: dict[str, str] = json.loads((PEERS_FOLDER / "fastify" / "package.json").read_text())["dependencies"]
    return {name: every[name] for name in _OF_PEERS} | node
