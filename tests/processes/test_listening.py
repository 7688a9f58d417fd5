"""The addresses that `serve` listens on."""

import http.client
import json
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.support.wire import LOCALIDADES, serving

HAS_IPV6 = True
try:
    with socket.create_server(("::1", 0), family=socket.AF_INET6):
        pass
except OSError:
    HAS_IPV6 = False
pytestmark = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")


def address_of_tiles(host: str, port: int, **headers: str) -> str:
    """Return the address in TileJSON, whose scheme is believed from trusted proxies only."""
    with closing(http.client.HTTPConnection(host, port, timeout=30)) as connection:
        connection.request("GET", f"{LOCALIDADES}tiles.json", headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        tiles: str = json.loads(response.read())["tiles"][0]
        return tiles


@pytest.mark.parametrize("workers", ["1", "2"])
def test_server_on_every_ipv6_address_answers_on_ipv4_too(seeded_database: str, workers: str) -> None:
    trusted = {"LOCALIDADES_TRUSTED_PROXIES": "127.0.0.1,::1"}
    with serving(seeded_database, "--host", "::", "--workers", workers, **trusted) as live:
        port = urlsplit(live.base).port
        assert port
        for host in ("127.0.0.1", "::1") * 4:  # of connections to either, each worker gets some
            assert address_of_tiles(host, port).startswith("http://")
            # An IPv4 client is known by its own address, as on a socket for IPv4 alone.
            assert address_of_tiles(host, port, **{"X-Forwarded-Proto": "https"}).startswith("https://")


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_server_on_one_ipv6_address_listens_there_alone(seeded_database: str, host: str) -> None:
    with serving(seeded_database, "--host", host) as live:
        address = urlsplit(live.base)
        assert live.base == f"http://[::1]:{address.port}"
        assert address.port
        assert address_of_tiles("::1", address.port)
        with pytest.raises(ConnectionRefusedError):
            address_of_tiles("127.0.0.1", address.port)
