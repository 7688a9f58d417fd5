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
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def replace(path: Path, shipped: str, own: str) -> None:
    """Replace a text that occurs once in a file."""
    text = path.read_text(encoding="utf-8")
    assert text.count(shipped) == 1, shipped
    path.write_text(text.replace(shipped, own), encoding="utf-8")


@dataclass(frozen=True)
class Front:
    """A running nginx."""

    base: str
    cache: Path

    @property
    def port(self) -> int:
        """The port that it listens on."""
        port = urlsplit(self.base).port
        assert port is not None
        return port

    def age(self, seconds: int) -> None:
        """Age every cached entry by changing its expiry time in its file."""
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
    """Run nginx with the shipped files in front of an origin; `listen` is the site's directive."""
    cache = folder / "cache"
    for path in NGINX.glob("*.conf"):
        shutil.copy(path, folder)
    replace(folder / "localidades-http.conf", "/var/cache/nginx/localidades", str(cache))
    folders = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in _TEMPORARY)
    site = folder / "localidades.conf"
    replace(site, "127.0.0.1:8000", urlsplit(origin).netloc)
    replace(site, "upstream localidades", f"access_log off;\n{folders}upstream localidades")
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as public:  # nginx inherits it, so no port is lost
        public.settimeout(0)  # nginx keeps the mode; a blocking accept() could wait for good
        port: int = public.getsockname()[1]
        replace(site, LISTEN, listen.replace("PORT", str(port)))
        user = "user root;" if os.geteuid() == 0 else ""  # pytest's folders are closed to others
        with _started(public, "-p", str(folder), "-c", str(folder / "nginx.conf"), own=f"pid {folder / 'pid'}; {user}"):
            yield Front(f"http://127.0.0.1:{port}", cache)


@contextmanager
def serving_export(root: Path, folder: Path) -> Iterator[str]:
    """Run nginx with the shipped site on the files of an export; yield its address."""
    site = Path(shutil.copy(NGINX.parent / "export.conf", folder))
    replace(site, "/srv/localidades/current", str(root))
    folders = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in _TEMPORARY)
    conf = folder / "nginx.conf"
    conf.write_text(f"events {{ }}\nhttp {{\naccess_log off;\n{folders}include {site};\n}}\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as public:
        public.settimeout(0)  # as above
        port: int = public.getsockname()[1]
        replace(site, LISTEN, f"listen 127.0.0.1:{port};")
        user = "user root;" if os.geteuid() == 0 else ""  # as above
        with _started(public, "-p", str(folder), "-c", str(conf), own=f"pid {folder / 'pid'}; {user}"):
            yield f"http://127.0.0.1:{port}"


def copy_distribution(folder: Path) -> Path:
    """Copy the distribution's /etc/nginx, changed to run without root; return the folder."""
    copy = folder / "etc" / "nginx"
    shutil.copytree(needed("/etc/nginx", "install nginx-light"), copy)
    conf = copy / "nginx.conf"
    user = "user root" if os.geteuid() == 0 else "# user www-data"  # as below
    own = {"/etc/nginx": str(copy), "/var/log/nginx": str(folder), "/run/nginx.pid": str(folder / "nginx.pid")}
    text = conf.read_text(encoding="utf-8").replace("user www-data", user)
    for one, other in own.items():
        text = text.replace(one, other)
    conf.write_text(text, encoding="utf-8")
    folders = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in _TEMPORARY)
    (copy / "conf.d" / "folders.conf").write_text(folders, encoding="utf-8")
    return copy


@contextmanager
def running_distribution(copy: Path, origin: str) -> Iterator[Front]:
    """Run nginx on such a copy with the site installed, beside the distribution's default site."""
    cache = copy.parent / "cache"
    replace(copy / "localidades-http.conf", "/var/cache/nginx/localidades", str(cache))
    site, default = copy / "sites-enabled" / "localidades.conf", copy / "sites-enabled" / "default"
    replace(site, "127.0.0.1:8000", urlsplit(origin).netloc)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as public:
        public.settimeout(0)
        port: int = public.getsockname()[1]
        replace(site, LISTEN, f"listen 127.0.0.1:{port};")
        replace(default, "listen 80 default_server;", f"listen 127.0.0.1:{port} default_server;")
        replace(default, "listen [::]:80 default_server;", "")
        with _started(public, "-c", str(copy / "nginx.conf")):
            yield Front(f"http://127.0.0.1:{port}", cache)


def reload_with_tls(copy: Path) -> int:
    """Reload such an nginx, in whose site TLS is switched on, with a free port instead of 443; return the port."""
    site = copy / "sites-enabled" / "localidades.conf"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    replace(site, "\n    listen 443 ssl http2;\n", f"\n    listen 127.0.0.1:{port} ssl http2;\n")
    replace(site, "\n    listen [::]:443 ssl http2;\n", "\n")
    replace(site, "/etc/ssl/localidades.pem", str(copy.parent / "ssl" / "localidades.pem"))
    replace(site, "/etc/ssl/localidades.key", str(copy.parent / "ssl" / "localidades.key"))
    os.kill(int((copy.parents[1] / "nginx.pid").read_text()), signal.SIGHUP)
    return port


@contextmanager
def _started(public: socket.socket, *options: str, own: str = "") -> Iterator[None]:
    """Check the configuration and run nginx on a listening socket; `own` are additional directives."""
    nginx = needed(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install nginx-light")
    command = [nginx, "-e", "stderr", *options, "-g", f"daemon off; {own}"]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert tested.returncode == 0, tested.stderr
    process = subprocess.Popen(
        command,
        env=os.environ | {"NGINX": f"{public.fileno()};"},
        pass_fds=[public.fileno()],
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)
