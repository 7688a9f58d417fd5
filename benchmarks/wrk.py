"""Runs wrk with one thread and the same connections for each server, and reads its figures as JSON."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.processes import BenchmarkError

CONNECTIONS = 16
_SCRIPT = Path(__file__).parent / "wrk" / "load.lua"


@dataclass(frozen=True, slots=True)
class Load:
    """Figures of one run of wrk."""

    requests: int
    seconds: float
    bytes: int
    failed: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @classmethod
    def parse(cls, output: str) -> Self:
        """Read the line that load.lua prints last."""
        return cls(**json.loads(output.strip().splitlines()[-1]))


def drive(
    address: str,
    seconds: int,
    *,
    pages: int = 0,
    seed: int = 0,
    targets: Path | None = None,
    headers: Mapping[str, str] | None = None,
) -> Load:
    """Load a server; raise if a request fails, because errors are answered faster than pages.

    Requests random pages out of `pages`, or the targets in a file, or else the address itself.
    """
    asked = ["--", "pages", str(pages), str(seed)] if pages else ["--", "targets", str(targets)] if targets else []
    head = [part for name, value in (headers or {}).items() for part in ("-H", f"{name}: {value}")]
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", *head]
    command = ["wrk", *options, "-s", str(_SCRIPT), address, *asked]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    load = Load.parse(done.stdout)
    if not load.requests:
        raise BenchmarkError(f"{address} answered nothing within {seconds} s: measure longer, on a quiet machine.")
    if load.failed:
        raise BenchmarkError(f"{load.failed} of {load.requests} requests to {address} failed:\n{done.stdout}")
    return load
