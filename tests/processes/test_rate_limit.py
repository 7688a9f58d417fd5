"""Rate limits, and the proxies that tell whose request it is."""

import json
import re
import time
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from localidades_api.middleware.interface import Middleware
from localidades_api.middleware.rate_limit import RateLimit
from tests.support.application import client_in_front_of
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES, Live, ask, send, serving

HELD = f"{LOCALIDADES}?page=2"
ROUTED = f"{LOCALIDADES}?page_size=7"
TARGETS = [HELD, ROUTED, "/problems", "/nothing"]


def served(server: str, seeded: str, **settings: str) -> Iterator[Live]:
    with new_database(server, seeded) as url, serving(url, **settings) as live:
        yield live


# -- Rate limits


@pytest.fixture(scope="module")
def rate_limited(server: str, seeded: str) -> Iterator[Live]:
    """Lend a server that answers an address four times an hour, and believes this machine as a proxy.

    Each test asks from addresses of its own.
    """
    yield from served(server, seeded, LOCALIDADES_RATE_LIMIT="4/hour", LOCALIDADES_TRUSTED_PROXIES="127.0.0.0/8")


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


def test_window_that_has_ended_begins_anew(server: str, seeded: str) -> None:
    for live in served(server, seeded, LOCALIDADES_RATE_LIMIT="1/second"):
        seen = [200]
        deadline = time.monotonic() + 20
        while seen != [200, 429, 200] and time.monotonic() < deadline:
            if (status := ask(live.base, HELD).status) != seen[-1]:
                seen.append(status)
        assert seen == [200, 429, 200]


def test_no_header_tells_of_a_limit_that_there_is_not(live_server: str) -> None:
    assert "ratelimit" not in ask(live_server, HELD).text.lower()


def test_memory_for_clients_is_bounded(app: Middleware) -> None:
    layer = RateLimit(app, "10/hour")
    for number in range(70_000):
        layer._take({"client": (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1)})
    assert len(layer._windows) == 65_536
    assert layer._take({"client": ("10.1.17.111", 1)})[0] == 8


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


@pytest.mark.parametrize("trusted", ["", "192.0.2.0/24,::1"])
def test_client_that_is_no_trusted_proxy_is_itself_whatever_it_tells(server: str, seeded: str, trusted: str) -> None:
    settings = {"LOCALIDADES_RATE_LIMIT": "2/hour", "LOCALIDADES_TRUSTED_PROXIES": trusted}
    for live in served(server, seeded, **settings):
        asked = [
            ask(live.base, target, (name, value.format(len(target)))).status
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
