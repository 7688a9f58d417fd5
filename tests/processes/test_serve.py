"""The start of `serve`: first starts, listening addresses, forwarded schemes, another uvicorn."""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.machine import free_port
from tests.support.postgres import new_database
from tests.support.servers import lend_folder
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import (
    LOCALIDADES,
    ask,
    await_end_of_group,
    environment,
    head,
    parse,
    read_answer,
    run,
    serving,
    start_command,
)


@pytest.mark.parametrize("on_management_port", [pytest.param(False, marks=pytest.mark.tail), True])
def test_connections_are_accepted_once_ready(small_catalogue: Path, *, on_management_port: bool) -> None:
    port, probes = free_port(), free_port()
    asked = probes if on_management_port else port
    with lend_folder() as folder, (folder / "log").open("w+b") as output:
        settings = {"LOCALIDADES_DATA_DIR": str(folder / "data"), "LOCALIDADES_SEED": str(small_catalogue)}
        if on_management_port:
            settings["LOCALIDADES_MANAGEMENT_PORT"] = str(probes)
        words, said = ("serve", "--port", str(port)), output.fileno()
        process = start_command(*words, env=environment("", **settings), stdout=said, stderr=said)
        log = Path(output.name)

        def answer() -> tuple[int, bool] | None:
            """Return the liveness, and whether the catalogue was loaded at the connection, if there is one."""
            assert process.poll() is None, log.read_text()
            with suppress(OSError), socket.create_connection(("127.0.0.1", asked), PATIENCE) as connection:
                is_loaded = "published release 2020-01" in log.read_text()
                connection.sendall(head("/livez"))
                return parse(read_answer(connection)).status, is_loaded
            return None

        try:
            assert eventually(answer, within=2 * PATIENCE) == (204, True)
        finally:
            process.terminate()
            process.wait(PATIENCE)
            await_end_of_group(process.pid)


ANOTHER = "import uvicorn; uvicorn.__version__ = '0.99.0'; from localidades_api.cli import app; app()"


def test_start_that_must_fail_makes_no_database(tmp_path: Path) -> None:
    env = environment("", LOCALIDADES_DATA_DIR=str(tmp_path / "data"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("serve", "--port", str(port), env=env)
        assert (refused.returncode, f"port {port} (Address already in use)" in refused.stderr) == (1, True)
    ended = run("serve", "--port", "0", env=env, command=(sys.executable, "-c", ANOTHER))
    assert ended.returncode == 1
    assert "`serve` works with uvicorn 0.54 only, and 0.99.0 is installed" in ended.stderr
    assert "`pip install 'uvicorn==0.54.*'`" in ended.stderr
    assert "`localidades_api.asgi:app` with any ASGI server" in ended.stderr
    (other := tmp_path / f"names-{os.getuid()}").symlink_to(tmp_path)  # a folder that isn't this user's own
    refused = run("serve", "--port", "0", env={**env, "LOCALIDADES_CACHE_DIR": str(tmp_path)})
    assert (refused.returncode, refused.stderr) == (
        1,
        f"error: The folder of indexes can't be used by user {os.getuid()} ({other} belongs to another user): set"
        " LOCALIDADES_CACHE_DIR to another one.\n",
    )
    assert not (tmp_path / "data").exists()


HAS_IPV6 = True
try:
    with socket.create_server(("::1", 0), family=socket.AF_INET6):
        pass
except OSError:
    HAS_IPV6 = False
needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")


HTTPS = ("X-Forwarded-Proto", "https")


def schemes(base: str, *headers: tuple[str, str]) -> set[str]:
    """Return the schemes of the absolute URLs in responses."""
    tiles = json.loads(ask(base, f"{LOCALIDADES}tiles.json", *headers).body)["tiles"][0]
    view = json.loads(ask(base, "/api/census/reconcile/", *headers).body)["view"]["url"]
    assert "://test/" in tiles
    assert "://test/" in view
    return {tiles.partition(":")[0], view.partition(":")[0]}


@needs_ipv6
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.tail)])
def test_server_on_every_ipv6_address_answers_on_ipv4_too(seeded_database: str, workers: str) -> None:
    trusted = {"LOCALIDADES_TRUSTED_PROXIES": "127.0.0.1,::1"}
    with serving(seeded_database, "--host", "::", "--workers", workers, **trusted) as live:
        for host in ("127.0.0.1", "[::1]") * 4:  # connections to either, so that each worker gets some
            base = f"http://{host}:{urlsplit(live.base).port}"
            assert schemes(base) == {"http"}
            assert schemes(base, HTTPS) == {"https"}  # an IPv4 client has its own address, as on an IPv4 socket


@needs_ipv6
def test_server_on_one_ipv6_address_listens_only_there(seeded_database: str) -> None:
    with serving(seeded_database, "--host", "[::1]") as live:
        assert ask(live.base, "/livez").status == 204
        with pytest.raises(ConnectionRefusedError):
            ask(live.base.replace("[::1]", "127.0.0.1"), "/livez")


def test_urls_have_the_scheme_that_a_trusted_proxy_says(server: str, seeded: str) -> None:
    trusted = "192.0.2.0/24,127.0.0.0/8"
    with new_database(server, seeded) as url, serving(url, LOCALIDADES_TRUSTED_PROXIES=trusted) as live:
        assert (schemes(live.base), schemes(live.base, HTTPS)) == ({"http"}, {"https"})
        assert schemes(live.base, HTTPS, ("X-Forwarded-For", "198.51.100.7, 192.0.2.1")) == {"https"}


def test_forwarded_headers_of_untrusted_clients_are_ignored(live_server: str) -> None:
    assert schemes(live_server, HTTPS) == {"http"}
    assert schemes(live_server, HTTPS, ("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "proto=https")) == {"http"}
