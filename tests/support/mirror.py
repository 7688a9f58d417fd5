"""A mirror that a real nginx serves."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.machine import children_of, needed
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import environment, run


def write_mirror(folder: Path, database: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; without a database the options name a service."""
    return run("mirror", str(folder), *options, env=environment(database or "postgresql://127.0.0.1:1/none"))


@contextmanager
def mirror_served(folder: Path, *, descriptors: int = 1024) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run nginx with the mirror's own configuration, and only the operator's files changed; lend its address.

    It starts with the `descriptors` that a shell gives it, which it may raise (`ulimit -Sn`).
    """
    nginx = needed(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install nginx-light")
    with socket.create_server(("127.0.0.1", 0)) as public:  # nginx takes it over: no port is lost to somebody else
        public.settimeout(0)  # nginx leaves it as it is, and would wait in accept() for what another worker took
        port = public.getsockname()[1]
        server = folder / "server.conf"
        lines = [line for line in server.read_text().splitlines() if not line.startswith("listen")]
        server.write_text("\n".join([f"listen 127.0.0.1:{port};", *lines]) + "\n")
        user = "user root;" if os.geteuid() == 0 else ""  # pytest's folders are closed to others
        scratch = folder.with_name(f"{folder.name}-scratch")
        scratch.mkdir(exist_ok=True)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        own = folder / "nginx.conf"
        if "client_body_temp_path" not in own.read_text():
            temporary = "".join(f"{kind}_temp_path {scratch / kind};\n" for kind in kinds)
            own.write_text(own.read_text().replace("http {", f"http {{\n{temporary}"))
        limited = ["/bin/sh", "-c", f'ulimit -Sn {descriptors} && exec "$@"', "sh"]
        process = subprocess.Popen(
            [*limited, nginx, "-e", "stderr", "-c", str(own), "-g", f"daemon off; {user}"],
            env=os.environ | {"NGINX": f"{public.fileno()};"},
            pass_fds=[public.fileno()],
        )
    try:
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def reload_nginx(nginx: subprocess.Popen[bytes]) -> None:
    """Have nginx read its configuration again, and wait until its old workers, which may still answer, have ended."""
    before = children_of(nginx.pid)
    nginx.send_signal(signal.SIGHUP)
    eventually(lambda: (now := children_of(nginx.pid)) and not before & now)
