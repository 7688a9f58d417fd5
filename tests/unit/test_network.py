"""Clients of HTTP use the proxies and certificates of the environment, and say what can't be used."""

from collections.abc import Iterator

import pytest

from localidades_api.client.network import NetworkSettingsError, open_client
from tests.support.http_server import Request, Response, http_server

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
CATALOGUE = "http://catalogue.example/"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of this machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a proxy and the targets that it was asked for."""
    asked: list[str] = []

    def respond(request: Request) -> Response:
        asked.append(request.target)
        return Response(b"proxied")

    with http_server(respond) as address:
        yield address, asked


def test_requests_go_through_the_proxy_but_those_to_this_machine(
    proxy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = proxy
    monkeypatch.setenv("ALL_PROXY", address)
    with http_server(lambda _: Response(b"direct")) as direct, open_client(headers={"Accept": "text/csv"}) as client:
        assert client.get(f"{CATALOGUE}a.zip").text == "proxied"
        assert client.headers["accept"] == "text/csv"
        for host in ("127.0.0.1", "localhost"):
            assert client.get(direct.replace("127.0.0.1", host)).text == "direct"
    assert asked == [f"{CATALOGUE}a.zip"]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ALL_PROXY", "socks://someone:s3cr3t@proxy.example:1080", "Unknown scheme"),  # GNOME's
        ("HTTPS_PROXY", "http://someone:s3cr3t/@proxy.example", "an address is not valid"),
        ("ALL_PROXY", "socks5://someone:s3cr3t@proxy.example:1080", r"pip install httpx\[socks\]"),
        ("NO_PROXY", "example.org:s3cr3t", "an address is not valid"),
        ("SSL_CERT_FILE", "/nowhere.pem", "No such file or directory"),
        ("SSL_CERT_FILE", __file__, "no certificate"),
    ],
)
def test_what_cannot_be_used_is_told_without_passwords(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(NetworkSettingsError, match=rf"{reason}.*{name}") as caught:
        open_client()
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__suppress_context__
