"""The common ground of all measurements: the options, the database, a folder, and starting contenders."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import NGINX, OURS, Contender
from benchmarks.database import clone, count_localities, environment, seeded_postgres, write_catalogue
from benchmarks.processes import PATH, ROOT, BenchmarkError, Server, fetch, free_port, serving, unwind_at_sigterm
from localidades_api.catalogue.pagination import count_pages
from localidades_api.errors import LocalidadesError

_HELD = "The page cache holds all"
_HELD_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a run: seconds and rounds."""

    rounds: int
    seconds: int
    empty_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Lab:
    """`url` is the seeded database, which is only copied; other users can read `folder`; `output` is kept."""

    options: Options
    url: str
    folder: Path
    output: Path
    localities: int  # of the release

    @property
    def pages(self) -> int:
        """The number of pages of the list."""
        return count_pages(self.localities)

    def copy(self, name: str) -> str:
        """Return the address of a copy of the seeded database."""
        return clone(self.url, name)

    @contextmanager
    def start(
        self, contender: Contender, url: str, *arguments: str, settings: Mapping[str, str] | None = None
    ) -> Iterator[Server]:
        """Run a contender on a database."""
        port = free_port()
        if contender.key == NGINX:
            conf = (ROOT / "benchmarks" / "peers" / "nginx.conf").read_text().replace("{port}", str(port))
            (self.folder / f"nginx-{port}.conf").write_text(conf)
        command = [
            part.replace("{port}", str(port)).replace("{folder}", str(self.folder))
            for part in (*contender.command, *arguments)
        ]
        variables = {**environment(url), "BENCHMARK_PAGE": str(self.page), **contender.settings, **(settings or {})}
        with serving(command, port, variables, self.folder / f"{contender.key}-{port}.log") as server:
            yield server

    def catalogue(self) -> Path:
        """Return the demo's rows as a file to import."""
        path = self.folder / "catalogue.csv"
        return path if path.exists() else write_catalogue(path)

    @property
    def page(self) -> Path:
        """The file with the bytes that the constant peers serve."""
        return self.folder / "page.json"

    def write_page(self, url: str) -> None:
        """Keep page 1 as this service answers it, for the peers that serve constant bytes."""
        with self.start(OURS, url) as server:
            self.page.write_bytes(fetch(server.base + PATH).body)


@contextmanager
def open_lab(options: Options, catalogue: Path | None, output: Path | None = None) -> Iterator[Lab]:
    """Seed a database with a file's release or the demo; without `output` nothing is kept."""
    with tempfile.TemporaryDirectory(prefix="localidades-bench-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # as root, Postgres and nginx run as other users
        print("Seeding a database", flush=True)
        with seeded_postgres(folder / "postgres", catalogue) as url:
            yield Lab(options, url, folder, output or folder, count_localities(url))


def run_command(measure: Callable[[], None]) -> None:
    """Run a command; a BenchmarkError ends it with its message."""
    unwind_at_sigterm()
    try:
        measure()
    except (BenchmarkError, LocalidadesError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def await_pages_held(server: Server, workers: int = 1) -> None:
    """Wait until the page cache of each worker of the service is warm."""
    server.wait_for(_HELD, workers, _HELD_PATIENCE)
