"""The reverse proxy of the guide, its very text, in a real nginx before the service."""

import http.client
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.http_server import Request, Respond, Response, http_server
from tests.support.machine import needed
from tests.support.wire import LOCALIDADES, ROOT, Answer, ask, serving

pytestmark = pytest.mark.tail

GUIDE = ROOT / "docs" / "guides" / "production.md"
HTML = {"Accept": "text/html"}


def recipe(**local: str) -> str:
    """Return the guide's configuration with what is this machine's own put in its place."""
    [text] = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    for place, value in local.items():
        own = {
            "listen": "listen 443 ",
            "service": "server 127.0.0.1:8000;",
            "cache": "/var/cache/nginx/localidades",
            "certificate": "/etc/ssl/localidades.pem",
            "key": "/etc/ssl/localidades.key",
        }[place]
        assert text.count(own) == 1, own
        text = text.replace(own, value)
    return str(text)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    openssl = needed(shutil.which("openssl"), "install openssl")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localidades.example.mx"
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "pem")]
    subprocess.run([openssl, *command.split(), *files], check=True, capture_output=True, timeout=60)
    return folder


@pytest.fixture
def proxied(certificate: Path, tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Lend what puts nginx before a service, and returns its port."""
    nginx = needed(shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), "install nginx-light")
    running: list[subprocess.Popen[bytes]] = []

    def start(base: str) -> int:
        with socket.create_server(("127.0.0.1", 0)) as public:  # nginx takes it over: no port is lost to somebody else
            port: int = public.getsockname()[1]
            text = recipe(
                listen=f"listen 127.0.0.1:{port} ",
                service=f"server {urlsplit(base).netloc};",
                cache=str(tmp_path / "cache"),
                certificate=str(certificate / "pem"),
                key=str(certificate / "key"),
            )
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            folders = "".join(f"{kind}_temp_path {tmp_path / kind};\n" for kind in kinds)
            user = "user root;\n" if os.geteuid() == 0 else ""  # pytest's folders are closed to others
            file = tmp_path / "nginx.conf"
            file.write_text(
                f"{user}daemon off;\npid {tmp_path / 'pid'};\nerror_log stderr;\nworker_processes 1;\nevents {{}}\n"
                f"http {{\naccess_log off;\n{folders}{text}}}\n"
            )
            running.append(
                subprocess.Popen(
                    [nginx, "-e", "stderr", "-p", str(tmp_path), "-c", str(file)],
                    env=os.environ | {"NGINX": f"{public.fileno()};"},
                    pass_fds=[public.fileno()],
                )
            )
        return port

    yield start
    for process in running:
        process.terminate()
        process.wait(30)


def connect_tls(port: int) -> http.client.HTTPSConnection:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)


def fetch(port: int, target: str, method: str = "GET", **headers: str) -> Answer:
    """Ask nginx for a target exactly as it is written."""
    with closing(connect_tls(port)) as connection:
        connection.request(method, target, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read())


def test_probes_and_figures_are_not_public(live_server: str, proxied: Callable[[str], int]) -> None:
    port = proxied(live_server)
    assert fetch(port, LOCALIDADES).status == 200
    for path in ("/livez", "/readyz", "/metrics"):
        assert ask(live_server, path).status < 300
        name = path[1:]
        for spelled in (
            path,
            f"{path}?x=1",
            f"/{path}",
            f"/%{ord(name[0]):02x}{name[1:]}",
            f"/static/..{path}",
            f"/.{path}",
        ):
            for method in ("GET", "HEAD"):
                assert fetch(port, spelled, method).status == 404, spelled


def test_answers_are_those_of_the_service_by_all_that_they_vary_by(
    live_server: str, proxied: Callable[[str], int]
) -> None:
    port = proxied(live_server)
    wishes = [
        {},
        HTML,
        {**HTML, "Accept_Language": "es"},
        {**HTML, "Accept_Language": "en"},
        {"Accept": "application/json"},
    ]
    for target in (
        LOCALIDADES,
        f"{LOCALIDADES}?page=2",
        f"{LOCALIDADES}10010001/",
        f"{LOCALIDADES}?page=99",
        "/problems",
    ):
        for wish in wishes * 2:
            headers = [(name.replace("_", "-"), value) for name, value in wish.items()]
            straight, through = ask(live_server, target, *headers), fetch(port, target, **wish)
            assert (through.status, through.body) == (straight.status, straight.body)
            assert through.all("vary") == straight.all("vary")
            head = fetch(port, target, "HEAD", **wish)
            assert (head.status, head.body) == (straight.status, b"")
            if straight.all("etag"):
                tag = straight.one("etag")
                assert fetch(port, target, If_None_Match=tag, **wish).status == 304
    for coding in ("gzip", "identity", "gzip"):
        download = f"{LOCALIDADES}download/?format=ndjson"
        assert fetch(port, download, Accept_Encoding=coding).all("content-encoding") == ["gzip"] * (coding == "gzip")


def test_body_of_rows_may_be_of_any_size(live_server: str, proxied: Callable[[str], int]) -> None:
    port = proxied(live_server)
    body = "latitud,longitud,notas\n" + f"21.88,-102.3,{'x' * 900_000}\n" * 3
    with closing(connect_tls(port)) as connection:
        connection.request("POST", f"{LOCALIDADES}nearest/", body, {"Content-Type": "text/csv"})
        answer = connection.getresponse()
        assert (answer.status, answer.read().count(b"\n")) == (200, 4)


def test_page_that_is_in_the_cache_outlives_the_service(seeded_database: str, proxied: Callable[[str], int]) -> None:
    with serving(seeded_database) as live:
        port = proxied(live.base)
        page = fetch(port, LOCALIDADES)
        assert page.status == 200
    assert fetch(port, LOCALIDADES).body == page.body
    assert fetch(port, f"{LOCALIDADES}?page=2").status == 502


def keeping(arrived: list[Request], seconds: float = 0) -> Respond:
    """Return a service that takes so long, and keeps what arrives."""

    def respond(request: Request) -> Response:
        arrived.append(request)
        time.sleep(seconds)
        return Response(b"ok", headers={"Cache-Control": "public, max-age=60"})

    return respond


def test_of_many_requests_for_a_page_one_reaches_the_service(proxied: Callable[[str], int]) -> None:
    arrived: list[Request] = []
    with http_server(keeping(arrived, 0.5)) as service:
        port = proxied(service)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: fetch(port, LOCALIDADES), range(8)))
        assert {(answer.status, answer.body) for answer in answers} == {(200, b"ok")}
        assert len(arrived) == 1


def test_service_is_told_who_asks_and_nothing_that_a_client_made_up(proxied: Callable[[str], int]) -> None:
    arrived: list[Request] = []
    with http_server(keeping(arrived)) as service:
        port = proxied(service)
        for page in range(3):
            fetch(port, f"{LOCALIDADES}?page={page}", Upgrade="h2c", Connection="Upgrade, HTTP2-Settings",
                  HTTP2_Settings="AAMAAABkAAQAAP__", X_Forwarded_For="192.0.2.1")  # fmt: skip
        assert len(arrived) == 3
        for request in arrived:
            assert "upgrade" not in request.headers
            assert "connection" not in request.headers
            assert request.headers["x-forwarded-for"] == "127.0.0.1"
        assert len({request.port for request in arrived}) == 1, "each request has a connection of its own"
