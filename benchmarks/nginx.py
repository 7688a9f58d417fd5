"""nginx under measurement: one worker, in a temporary folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import PATH, ROOT, Server, free_port, serving

# Only root may use Debian's folders. `{kind}` is relative to the folder of `-p`.
TEMPORARY_PATHS = "".join(
    f"{kind}_temp_path {kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)


@contextmanager
def running_nginx(folder: Path, conf: Path, port: int, *options: str, probe: str = PATH) -> Iterator[Server]:
    """Run nginx; relative paths in its configuration are in the folder, which its user can enter."""
    command = ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(conf), *options]
    variables = {"PATH": "/usr/sbin:/usr/bin:/bin"}
    with serving(command, port, variables, folder / f"{conf.stem}.log", probe) as server:
        yield server


@contextmanager
def serving_page(folder: Path) -> Iterator[Server]:
    """Run nginx with `page.json` of the folder, as in the main table."""
    port = free_port()
    conf = folder / "static.conf"
    conf.write_text((ROOT / "benchmarks" / "peers" / "nginx.conf").read_text().replace("{port}", str(port)))
    with running_nginx(folder, conf, port) as server:
        yield server
