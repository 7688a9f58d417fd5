"""nginx with the configuration of deploy/, before any origin."""

import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.machine import needed
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT

NGINX = ROOT / "deploy" / "nginx"
_CACHE = "/var/cache/nginx/localidades"
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True)
class Front:
    """An nginx that runs."""

    base: str
    cache: Path

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port = urlsplit(self.base).port
        assert port is not None
        return port

    def age(self, seconds: int) -> None:
        """Make every cached entry older: what nginx reads in its file is when it ceases to be fresh."""
        for entry in self.entries:
            with entry.open("r+b") as file:
                version, fresh_until = struct.unpack("<QQ", file.read(16))
                assert version == 5, "nginx has another format"
                file.seek(8)
                file.write(struct.pack("<Q", fresh_until - seconds))

    @property
    def entries(self) -> list[Path]:
        """The files of the cache."""
        return [path for path in self.cache.rglob("*") if path.is_file() and path.suffix != ".tmp"]


@contextmanager
def running_nginx(origin: str, folder: Path, listen: str = "listen 127.0.0.1:PORT;") -> Iterator[Front]:
    """Run nginx with the shipped file before an origin; `listen` is what stands in listen.conf."""
    nginx = needed(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install nginx-light")
    cache = folder / "cache"
    text = (NGINX / "nginx.conf").read_text(encoding="utf-8")
    assert text.count(_CACHE) == 1
    (folder / "nginx.conf").write_text(text.replace(_CACHE, str(cache)))
    upstream = (NGINX / "origin.conf").read_text(encoding="utf-8")
    assert upstream.count("127.0.0.1:8000") == 1
    folders = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in _TEMPORARY)
    (folder / "origin.conf").write_text(
        f"{upstream.replace('127.0.0.1:8000', urlsplit(origin).netloc)}\naccess_log off;\n{folders}"
    )
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as public:  # nginx takes it over: no port is lost
        public.settimeout(0)  # nginx leaves it as it is, and would wait in accept() for what another worker took
        port: int = public.getsockname()[1]
        (folder / "listen.conf").write_text(listen.replace("PORT", str(port)))
        user = "user root; " if os.geteuid() == 0 else ""  # pytest's folders are closed to others
        started = f"{user}daemon off; pid {folder / 'pid'};"
        process = subprocess.Popen(
            [nginx, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", started],
            env=os.environ | {"NGINX": f"{public.fileno()};"},
            pass_fds=[public.fileno()],
        )
        try:
            yield Front(f"http://127.0.0.1:{port}", cache)
        finally:
            process.terminate()
            process.wait(PATIENCE)
