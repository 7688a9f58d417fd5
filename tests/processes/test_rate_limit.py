"""Rate limits, and the proxies that tell whose request it is."""

import json
import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from localidades_api.http.paths import RECONCILE
from localidades_api.middleware.rate_limit import RateLimit
from localidades_api.middleware.response_cache import ResponseCache
from tests.support.application import client_in_front_of
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES, Live, ask, send, serving

HELD = f"{LOCALIDADES}?page=2"
ROUTED = f"{LOCALIDADES}?page_size=7"
TARGETS = [HELD, ROUTED, "/problems", "/nothing"]


# -- Rate limits


@pytest.fixture(scope="module")
def rate_limited(server: str, seeded: str) -> Iterator[Live]:
    """Lend a server that answers an address four times an hour, and believes this machine as a proxy.

    Each test asks from addresses of its own.
    """
    settings = {"LOCALIDADES_RATE_LIMIT": "4/hour", "LOCALIDADES_TRUSTED_PROXIES": "127.0.0.0/8"}
    with new_database(server, seeded) as url, serving(url, **settings) as live:
        yield live


def left(live: Live, address: str, target: str = HELD) -> int | None:
    """Return how many requests a client has left after one, None where it has had too many."""
    answer = ask(live.base, target, ("X-Forwarded-For", address))
    assert answer.one("ratelimit-policy") == '"default";q=4;w=3600'
    matched = re.fullmatch(r'"default";r=([0-9]+);t=([0-9]+)', answer.one("ratelimit"))
    assert matched
    assert 3500 < int(matched[2]) <= 3600
    assert "RateLimit, RateLimit-Policy" in answer.all("access-control-expose-headers")
    if answer.status != 429:
        return int(matched[1])
    assert matched[1] == "0"
    assert answer.one("retry-after") == matched[2]
    return None


def test_client_is_told_what_is_left_and_then_refused_while_others_are_not(rate_limited: Live) -> None:
    assert [left(rate_limited, "192.0.2.1", target) for target in TARGETS] == [3, 2, 1, 0]
    assert [left(rate_limited, "192.0.2.1", target) for target in TARGETS] == [None] * 4
    assert left(rate_limited, "192.0.2.2") == 3


def test_client_that_has_asked_too_often_gets_a_problem(rate_limited: Live) -> None:
    for _ in range(4):
        left(rate_limited, "192.0.2.3")
    refused = ask(rate_limited.base, HELD, ("X-Forwarded-For", "192.0.2.3"))
    assert refused.status == 429
    assert refused.one("content-type") == "application/problem+json"
    assert refused.one("allow") == "GET"
    assert refused.one("vary") == "Accept"
    assert json.loads(refused.body)["type"] == "/problems#too-many-requests"
    page = ask(
        rate_limited.base, HELD, ("X-Forwarded-For", "192.0.2.3"), ("Accept", "text/html"), ("Accept-Language", "es")
    )
    assert page.status == 429
    assert "Demasiadas solicitudes" in page.text


def test_address_of_ipv6_is_counted_by_its_network_of_64_bits(rate_limited: Live) -> None:
    assert [left(rate_limited, f"2001:db8:1:2::{number:x}") for number in range(3)] == [3, 2, 1]
    assert left(rate_limited, "2001:db8:1:3::1") == 3
    assert left(rate_limited, "::ffff:192.0.2.7") == 3
    assert left(rate_limited, "::ffff:192.0.2.8") == 3
    assert left(rate_limited, "192.0.2.8") == 2


def test_what_is_pipelined_is_counted_once(rate_limited: Live) -> None:
    head = "Host: test\r\nX-Forwarded-For: 192.0.2.4\r\n"
    one = "".join(f"GET {target} HTTP/1.1\r\n{head}\r\n" for target in (HELD, ROUTED, HELD, HELD))
    received = send(rate_limited.base, f"{one}GET {HELD} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
    assert re.findall(rb"HTTP/1\.1 (\d+) ", received) == [b"200"] * 4 + [b"429"]
    assert re.findall(rb"r=(\d+);", received) == [b"3", b"2", b"1", b"0", b"0"]


def test_probe_is_not_counted(rate_limited: Live) -> None:
    for _ in range(6):
        answer = ask(rate_limited.base, "/readyz", ("X-Forwarded-For", "192.0.2.5"))
        assert answer.status == 200
        assert not answer.all("ratelimit")
    assert left(rate_limited, "192.0.2.5") == 3


async def test_window_that_has_ended_begins_anew(app: FastAPI) -> None:
    async with client_in_front_of(app, rate_limit="1/second") as client:
        seen = [200]
        while seen != [200, 429, 200]:
            if (status := (await client.get("/problems")).status_code) != seen[-1]:
                seen.append(status)
            assert seen == [200, 429, 200][: len(seen)]


def test_no_header_tells_of_a_limit_that_there_is_not(live_server: str) -> None:
    assert "ratelimit" not in ask(live_server, HELD).text.lower()


async def test_client_that_asked_before_many_others_is_forgotten(app: FastAPI) -> None:
    """Or memory would have no bound."""
    layer = RateLimit(ResponseCache(app), "1/hour")
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}

    def is_refused(number: int) -> bool:
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        return layer.try_respond({**scope, "client": (address, 1)}) is not None

    assert [is_refused(0), is_refused(0)] == [False, True]
    assert not any(is_refused(number) for number in range(1, 70_000))
    assert is_refused(69_999)
    assert not is_refused(0)


@pytest.mark.parametrize(("unit", "seconds"), [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86400)])
async def test_window_of_each_unit_is_as_long_as_its_name(app: FastAPI, unit: str, seconds: int) -> None:
    async with client_in_front_of(app, rate_limit=f"5/{unit}") as client:
        headers = (await client.get("/problems")).headers
        assert headers["ratelimit-policy"] == f'"default";q=5;w={seconds}'
        matched = re.fullmatch(r'"default";r=4;t=([0-9]+)', headers["ratelimit"])
        assert matched
        assert seconds - 60 < int(matched[1]) <= seconds


# -- Proxies


FORGED = [("X-Forwarded-For", "192.0.2.{}"), ("X-Real-IP", "192.0.2.{}"), ("Forwarded", "for=192.0.2.{}")]


@pytest.mark.parametrize("settings", [{}, {"trusted_proxies": ["192.0.2.0/24", "::1"]}])
async def test_client_that_is_no_trusted_proxy_is_itself_whatever_it_tells(
    app: FastAPI, settings: dict[str, list[str]]
) -> None:
    async with client_in_front_of(app, rate_limit="2/hour", **settings) as client:
        asked = [
            (await client.get(target, headers={name: value.format(len(target))})).status_code
            for name, value in FORGED
            for target in (HELD, ROUTED)
        ]
    assert asked == [200, 200, 429, 429, 429, 429]


def test_client_of_a_trusted_proxy_is_the_last_that_no_trusted_proxy_stands_for(rate_limited: Live) -> None:
    """What a client writes itself stands further left, and counts for nothing."""
    assert [left(rate_limited, f"192.0.2.{number}, 198.51.100.7, 127.0.0.9") for number in range(3)] == [3, 2, 1]
    assert left(rate_limited, "198.51.100.7", ROUTED) == 0
    assert left(rate_limited, "198.51.100.7") is None


def test_word_in_place_of_an_address_is_one_client(rate_limited: Live) -> None:
    assert [left(rate_limited, word) for word in ("unknown", "_hidden", "x" * 500, "1.2.3", "999.1.1.1")] == [
        3, 2, 1, 0, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "lines", "scheme"),
    [
        (1, ["https"], "https"),
        (2, ["https, https"], "https"),
        (3, ["HTTPS"], "https"),
        (4, ["https, http"], "https"),  # between the proxies nothing is encrypted
        (5, ["https", "http"], "https"),
        (6, ["http,https"], "http"),
        (7, ["gopher, https"], "http"),
        (8, [""], "http"),
        (9, [], "http"),
    ],
)
def test_address_that_names_the_scheme_has_the_one_that_the_client_used(
    rate_limited: Live, number: int, lines: list[str], scheme: str
) -> None:
    headers = [("X-Forwarded-For", f"203.0.113.{number}"), *(("X-Forwarded-Proto", line) for line in lines)]
    tiles = json.loads(ask(rate_limited.base, f"{LOCALIDADES}tiles.json", *headers).body)
    assert tiles["tiles"][0].startswith(f"{scheme}://test/")
    manifest = json.loads(ask(rate_limited.base, RECONCILE, *headers).body)
    assert manifest["view"]["url"].startswith(f"{scheme}://test/")
