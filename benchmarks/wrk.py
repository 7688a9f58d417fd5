"""Runs wrk with one thread and the same connections for each server, and reads its figures as JSON."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import BenchmarkError

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


def drive(address: str, seconds: int, *, pages: int = 0, seed: int = 0) -> Load:
    """Load a server; raise if a request fails, because errors are answered faster than pages.

    Requests random pages out of `pages`, or else the address itself.
    """
    options = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s"]
    random = ["--", str(pages), str(seed)] if pages else []
    command = ["wrk", *options, "-s", str(_SCRIPT), address, *random]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    load = Load(**json.loads(done.stdout.strip().splitlines()[-1]))
    if not load.requests:
        raise BenchmarkError(f"{address} answered nothing within {seconds} s: measure longer, on a quiet machine.")
    if load.failed:
        raise BenchmarkError(f"{load.failed} of {load.requests} requests to {address} failed:\n{done.stdout}")
    return load
