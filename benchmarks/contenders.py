"""The servers under measurement: how each is started, and which requests it gets."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import ROOT, BenchmarkError

RANDOM, FIRST, LAST, NOT_MODIFIED = "random pages", "page 1", "last page", "304"
COLD, EMPTY, WARM, DEPLOYED = "cold", "empty", "warm", "deployed"
DRF, FASTAPI, FASTIFY, BARE, NGINX = "drf", "fastapi", "fastify", "bare", "nginx"

COMMAND = (str(Path(sys.executable).parent / "localidades-api"),)

_OURS = (*COMMAND, "serve", "--port", "{port}")
PEERS_FOLDER = ROOT / "benchmarks" / "peers"
PEERS_BIN = ROOT / "benchmarks" / ".venv" / "bin"
# As `serve` runs it: without an access log.
_UVICORN = (str(PEERS_BIN / "uvicorn"), "--port", "{port}", "--no-server-header", "--no-access-log")
_PAGES = (RANDOM, FIRST, LAST)


@dataclass(frozen=True, slots=True)
class Contender:
    """A server; `{port}` and `{folder}` in its command are replaced with the port and the suite's temporary folder."""

    key: str
    title: str
    command: tuple[str, ...]
    targets: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


OURS_COLD = Contender(
    COLD,
    "**localidades-api, page cache off**",
    _OURS,
    (*_PAGES, NOT_MODIFIED),
    {"LOCALIDADES_PAGE_CACHE_BYTES": "0"},
)
OURS = Contender(WARM, "**localidades-api, warm**", _OURS, (*_PAGES, NOT_MODIFIED))
# As docker-compose.yml runs it: on this machine its two workers share the cores with the load.
OURS_DEPLOYED = Contender(
    DEPLOYED, "**localidades-api, as deployed: two workers**", (*_OURS, "--workers", "2"), (*_PAGES, NOT_MODIFIED)
)

# The servers that read the database for each page.
QUERYING = (DRF, FASTAPI, FASTIFY)

# In the order of a round: servers that are compared often are neighbours.
CONTENDERS = (
    Contender(FASTIFY, "Fastify, pg, on Node", ("node", str(PEERS_FOLDER / "fastify" / "server.js")), _PAGES),
    Contender(
        DRF,
        "Django REST Framework, gunicorn with 4 threads",
        (str(PEERS_BIN / "gunicorn"), "-w1", "--threads=4", "-b", "127.0.0.1:{port}", "benchmarks.peers.drf.wsgi"),
        _PAGES,
    ),
    OURS_COLD,
    Contender(FASTAPI, "FastAPI, SQLAlchemy, pydantic", (*_UVICORN, "benchmarks.peers.plain_fastapi:app"), _PAGES),
    OURS,
    OURS_DEPLOYED,
    Contender(BARE, "a bare ASGI app: constant bytes", (*_UVICORN, "benchmarks.peers.bare_asgi:app"), (RANDOM,)),
    Contender(
        NGINX,
        "nginx: a static file",
        ("nginx", "-e", "error.log", "-p", "{folder}", "-c", "{folder}/nginx-{port}.conf"),
        (RANDOM, NOT_MODIFIED),
    ),
)
BY_KEY = {contender.key: contender for contender in CONTENDERS}
TITLES = {key: contender.title for key, contender in BY_KEY.items()} | {
    EMPTY: "**localidades-api, from an empty cache**"
}


def check_tools() -> None:
    """Raise BenchmarkError if a tool is missing."""
    missing = [name for name in ("wrk", "nginx", "node") if shutil.which(name) is None]
    if missing:
        raise BenchmarkError(
            f"make bench needs {', '.join(missing)}: install with your system's package manager,"
            " as in `apt-get install wrk nginx nodejs`."
        )
    if not (PEERS_BIN / "gunicorn").exists() or not (PEERS_FOLDER / "fastify" / "node_modules").is_dir():
        raise BenchmarkError("The peers are not installed: run `make bench`, which installs them first.")
