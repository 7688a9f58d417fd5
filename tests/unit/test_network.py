"""Clients of HTTP use the proxies and certificates of the environment, and name a variable that they can't use."""

from collections.abc import Iterator
from pathlib import Path

import certifi
import httpx
import pytest

from localidades_api.client.network import NetworkSettingsError, open_async_client, open_client
from tests.support.http_server import Request, Response, http_server

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
CATALOGUE = "http://catalogue.example/"
UNUSABLE = "socks://someone:s3cr3t@proxy.example:1080"  # GNOME's, which httpx refuses


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


def refusal_of(url: str = CATALOGUE) -> str:
    """Return the error of both clients, without one of httpx that would show in a traceback."""
    sentences = set()
    for opens in (open_client, open_async_client):
        with pytest.raises(NetworkSettingsError) as caught:
            opens(url)
        sentences.add(str(caught.value))
        assert not isinstance(caught.value.__cause__, httpx.InvalidURL)
        assert caught.value.__suppress_context__ or not caught.value.__context__
    [sentence] = sentences
    assert "s3cr3t" not in sentence
    return sentence


# -- Proxies


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
async def test_requests_go_through_the_proxy(
    proxy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    address, asked = proxy
    monkeypatch.setenv("HTTPS_PROXY", address)  # GNOME sets all three; what no request uses doesn't matter
    monkeypatch.setenv("ALL_PROXY", UNUSABLE)
    monkeypatch.setenv(name, address.removeprefix("http://") if name.islower() else address)
    with open_client(CATALOGUE, headers={"Accept": "text/csv"}) as client:
        assert client.get(f"{CATALOGUE}a.zip").text == "proxied"
        assert client.headers["accept"] == "text/csv"
    async with open_async_client(CATALOGUE, base_url=CATALOGUE) as client:
        assert (await client.get("b.zip")).text == "proxied"
    assert asked == [f"{CATALOGUE}a.zip", f"{CATALOGUE}b.zip"]


def test_redirect_to_a_host_without_a_proxy_is_followed_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_server(lambda _: Response(b"direct")) as direct:
        moved = Response(status=302, headers={"Location": direct.replace("127.0.0.1", "localhost")})
        with http_server(lambda _: moved) as address:
            monkeypatch.setenv("ALL_PROXY", address)
            with open_client(CATALOGUE, follow_redirects=True) as client:
                assert client.get(CATALOGUE).text == "direct"


@pytest.mark.parametrize(
    ("url", "no_proxy"),
    [
        *((url, "") for url in ("http://127.0.0.1:8000", "http://127.8.0.1", "http://[::1]:80", "http://localhost",
                                "http://a.localhost", "https://127.0.0.1:8000")),
        ("http://10.1.2.3", "10.0.0.0/8"), ("http://10.1.2.3:80", "example.org, 10.1.2.3"),
        ("http://[fe80::1]", "192.168.0.0/16,fe80::/10"), ("http://[fd00::1]", "[fd00::1]"), (CATALOGUE, "*"),
        (CATALOGUE, "EXAMPLE"), (CATALOGUE, "a.mx .example"), (CATALOGUE, "*.example"),
    ],
)  # fmt: skip
def test_some_hosts_are_asked_directly(monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str) -> None:
    monkeypatch.setenv("ALL_PROXY", UNUSABLE)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    open_client(url).close()
    monkeypatch.setenv("NO_PROXY", "11.0.0.0/8,fd00::2,ample,le.example,catalogue")
    if no_proxy:
        assert refusal_of(url).startswith("ALL_PROXY must be")
    else:
        open_client(url).close()


# -- Variables that can't be used


@pytest.mark.parametrize(
    ("name", "scheme", "value"),
    [
        *(("ALL_PROXY", "http", value) for value in (
            "ftp://proxy.example", "http://someone:s3cr3t/@proxy.example", "http://proxy.example:port", "http://",
        )),
        *((name, scheme, UNUSABLE) for name, scheme in (
            ("HTTP_PROXY", "http"), ("https_proxy", "https"), ("ALL_PROXY", "http"), ("HTTPS_PROXY", "http"),
        )),
    ],
)  # fmt: skip
def test_proxy_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, scheme: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert refusal_of(f"{scheme}://catalogue.example") == (
        f"{name} must be the address of a proxy and begin with http://, https:// or socks5://, such as"
        " http://proxy.example.org:3128."
    )


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_missing_package_for_socks_is_named(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://someone:s3cr3t@proxy.example:1080")
    assert refusal_of() == (
        "ALL_PROXY names a SOCKS proxy, which needs another package: run `pip install 'httpx[socks]'`, or name an HTTP"
        " proxy."
    )


@pytest.mark.parametrize("entry", ["example.org:port", "fe80::/", "http://a:b"])
def test_list_of_hosts_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", f"localhost,{entry}")
    assert refusal_of() == ("NO_PROXY must be a list of hosts and networks, such as localhost,.example.org,10.0.0.0/8.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere.pem", "No such file or directory"), ("", "Is a directory"),
        ("none.pem", "it has no certificates in PEM format"),
    ],
)  # fmt: skip
def test_file_of_certificates_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "none.pem").write_text("none")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
    assert refusal_of() == f"SSL_CERT_FILE names {tmp_path / name}, which can't be used: {reason}."


def test_folder_of_certificates_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}/nowhere")
    assert refusal_of() == f"SSL_CERT_DIR names {tmp_path}/nowhere, which is not a folder."
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}/nowhere:{tmp_path}")
    open_client("https://catalogue.example").close()
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}/nowhere")
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())  # which goes first
    open_client("https://catalogue.example").close()
