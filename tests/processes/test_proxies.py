"""The scheme that a client used, which the service believes from trusted proxies only."""

import json
from collections.abc import Iterator

import pytest

from localidades_api.http.paths import RECONCILE
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES, Live, ask, serving

HTTPS = ("X-Forwarded-Proto", "https")


@pytest.fixture(scope="module")
def behind_proxy(server: str, seeded: str) -> Iterator[Live]:
    """Lend a server that trusts this machine as a proxy."""
    trusted = "192.0.2.0/24,127.0.0.0/8"
    with new_database(server, seeded) as url, serving(url, LOCALIDADES_TRUSTED_PROXIES=trusted) as live:
        yield live


def schemes(base: str, *headers: tuple[str, str]) -> set[str]:
    """Return the schemes of the absolute addresses that a client gets."""
    tiles = json.loads(ask(base, f"{LOCALIDADES}tiles.json", *headers).body)["tiles"][0]
    view = json.loads(ask(base, RECONCILE, *headers).body)["view"]["url"]
    assert "://test/" in tiles
    assert "://test/" in view
    return {tiles.partition(":")[0], view.partition(":")[0]}


@pytest.mark.parametrize(
    ("lines", "scheme"),
    [
        (["https"], "https"),
        (["http"], "http"),
        (["http", "https"], "https"),  # the last is the trusted proxy's own
        (["https, http"], "http"),
        (["gopher"], "http"),
        ([""], "http"),
        ([], "http"),
    ],
)
def test_scheme_in_addresses_is_the_one_that_the_client_used(behind_proxy: Live, lines: list[str], scheme: str) -> None:
    assert schemes(behind_proxy.base, *(("X-Forwarded-Proto", line) for line in lines)) == {scheme}


@pytest.mark.parametrize("forwarded", ["198.51.100.7", "198.51.100.7, 192.0.2.1", "2001:db8::1", "unknown", "x" * 500])
def test_scheme_is_believed_whatever_address_the_proxy_names(behind_proxy: Live, forwarded: str) -> None:
    assert schemes(behind_proxy.base, HTTPS, ("X-Forwarded-For", forwarded)) == {"https"}


@pytest.mark.parametrize("settings", [{}, {"LOCALIDADES_TRUSTED_PROXIES": "192.0.2.0/24,::1"}])
def test_client_that_is_no_trusted_proxy_is_not_believed(seeded_database: str, settings: dict[str, str]) -> None:
    with serving(seeded_database, **settings) as live:
        assert schemes(live.base, HTTPS) == {"http"}
        assert schemes(live.base, HTTPS, ("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "proto=https")) == {"http"}
