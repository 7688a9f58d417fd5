"""Writes the plans of the peers' statements, as Postgres ran them, beside the figures.

The peers run in other processes, so auto_explain writes the plans to the server's log.
"""

import re

from benchmarks.contenders import BY_KEY, QUERYING
from benchmarks.database import execute
from benchmarks.lab import Lab
from benchmarks.processes import PATH, fetch

_PLAN = re.compile(r"duration: [0-9.]+ ms  plan:\n((?:\t.*\n)+)")
_SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
}


def write_peer_plans(lab: Lab) -> None:
    """Write the statements of each peer for a page in the middle, and their plans."""
    url = lab.copy("explained")
    execute(
        url,
        "CREATE INDEX ON localities (clave, id)",
        "VACUUM (FREEZE, ANALYZE)",
        *(f"ALTER DATABASE explained SET {name} = '{value}'" for name, value in _SETTINGS.items()),
    )
    log = lab.folder / "postgres" / "postgres.log"
    parts = []
    for key in QUERYING:
        with lab.start(BY_KEY[key], url) as server:
            start = log.stat().st_size
            fetch(f"{server.base}{PATH}?page={lab.pages // 2}")
        # A stopped server has written its whole log.
        plans = [plan.replace("\t", "") for plan in _PLAN.findall(log.read_bytes()[start:].decode(errors="replace"))]
        parts.append(f"# {BY_KEY[key].title}, page {lab.pages // 2}\n" + "\n".join(plans))
    (lab.output / "peer_plans.txt").write_text("\n".join(parts), encoding="utf-8")
