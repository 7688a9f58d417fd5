"""Runs nginx with the configuration of deploy/."""

import os
import shutil
import signal
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
LISTEN = "listen 80;\n    listen [::]:80;"  # of the site
_USER = "user root;" if os.geteuid() == 0 else ""  # pytest's folders are closed to others


def replace(path: Path, *pairs: tuple[str, str]) -> None:
    """Replace texts, each of which occurs once in a file."""
    text = path.read_text(encoding="utf-8")
    for shipped, own in pairs:
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, own)
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Front:
    """A running nginx: its port and the folder of its cache."""

    port: int
    cache: Path

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def entries(self) -> list[Path]:
        return [path for path in self.cache.rglob("*") if path.is_file() and path.suffix != ".tmp"]

    def age(self, seconds: int) -> None:
        """Age every cached entry by changing its expiry time in its file."""
        for entry in self.entries:
            with entry.open("r+b") as file:
                version, fresh_until = struct.unpack("<QQ", file.read(16))
                assert version == 5, "nginx has another format"
                file.seek(8)
                file.write(struct.pack("<Q", fresh_until - seconds))


@contextmanager
def running_nginx(origin: str, folder: Path, listen: str = "listen 127.0.0.1:PORT;") -> Iterator[Front]:
    """Run nginx with the shipped files in front of an origin; `listen` is the site's directive."""
    for path in NGINX.glob("*.conf"):
        shutil.copy(path, folder)
    replace(folder / "localidades-http.conf", ("/var/cache/nginx/localidades", str(folder / "cache")))
    with _listening() as (public, port):
        replace(
            folder / "nginx.conf",
            ("localidades-api:8000", urlsplit(origin).netloc),
            ("http {", f"http {{\naccess_log off;\n{_temporary(folder)}"),
            ("listen 8080;", listen.replace("PORT", str(port))),
        )
        own = f"pid {folder / 'pid'}; {_USER}"
        with _started(public, "-p", str(folder), "-c", str(folder / "nginx.conf"), own=own):
            yield Front(port, folder / "cache")


def copy_distribution(folder: Path) -> Path:
    """Copy the distribution's /etc/nginx, changed to run without root; return the folder."""
    copy = folder / "etc" / "nginx"
    shutil.copytree(needed("/etc/nginx", "install nginx-light"), copy)
    text = (copy / "nginx.conf").read_text(encoding="utf-8").replace("user www-data;", _USER)
    own = {"/etc/nginx": copy, "/var/log/nginx": folder, "/run/nginx.pid": folder / "nginx.pid"}
    for one, other in own.items():
        text = text.replace(one, str(other))
    (copy / "nginx.conf").write_text(text, encoding="utf-8")
    (copy / "conf.d" / "folders.conf").write_text(_temporary(folder), encoding="utf-8")
    return copy


@contextmanager
def running_distribution(copy: Path, origin: str) -> Iterator[Front]:
    """Run nginx on such a copy with the site installed, beside the distribution's default site."""
    cache = copy.parent / "cache"
    replace(copy / "localidades-http.conf", ("/var/cache/nginx/localidades", str(cache)))
    with _listening() as (public, port):
        site = copy / "sites-enabled" / "localidades.conf"
        replace(site, ("127.0.0.1:8000", urlsplit(origin).netloc), (LISTEN, f"listen 127.0.0.1:{port};"))
        replace(
            copy / "sites-enabled" / "default",
            ("listen 80 default_server;", f"listen 127.0.0.1:{port} default_server;"),
            ("listen [::]:80 default_server;", ""),
        )
        with _started(public, "-c", str(copy / "nginx.conf")):
            yield Front(port, cache)


def reload_with_tls(copy: Path) -> int:
    """Reload such an nginx, in whose site TLS is switched on, with a free port instead of 443; return the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    replace(
        copy / "sites-enabled" / "localidades.conf",
        ("\n    listen 443 ssl http2;\n", f"\n    listen 127.0.0.1:{port} ssl http2;\n"),
        ("\n    listen [::]:443 ssl http2;\n", "\n"),
        ("/etc/ssl/localidades.pem", str(copy.parent / "ssl" / "localidades.pem")),
        ("/etc/ssl/localidades.key", str(copy.parent / "ssl" / "localidades.key")),
    )
    os.kill(int((copy.parents[1] / "nginx.pid").read_text()), signal.SIGHUP)
    return port


def _temporary(folder: Path) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)


@contextmanager
def _listening() -> Iterator[tuple[socket.socket, int]]:
    """Yield a listening socket, which nginx inherits so that no port is lost, and its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as public:
        public.settimeout(0)  # nginx keeps the mode; a blocking accept() could wait for good
        yield public, public.getsockname()[1]


@contextmanager
def _started(public: socket.socket, *options: str, own: str = "") -> Iterator[None]:
    """Check the configuration and run nginx on a listening socket; `own` are additional directives."""
    nginx = needed(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install nginx-light")
    command = [nginx, "-e", "stderr", *options, "-g", f"daemon off; {own}"]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert tested.returncode == 0, tested.stderr
    inherited = os.environ | {"NGINX": f"{public.fileno()};"}
    process = subprocess.Popen(command, env=inherited, pass_fds=[public.fileno()])
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
