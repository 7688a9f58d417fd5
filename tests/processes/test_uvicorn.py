"""The version of uvicorn that is served with."""

import sys

import uvicorn

from localidades_api.server.run import TESTED
from tests.support.metrics import await_metrics, value
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ask, serving

ANOTHER = "import uvicorn; uvicorn.__version__ = '0.99.0'; from localidades_api.cli import app; app()"


def test_installed_uvicorn_is_the_tested_one() -> None:
    assert uvicorn.__version__.startswith(TESTED)


def test_another_uvicorn_serves_with_its_own_protocol_and_the_cache(seeded_database: str) -> None:
    with serving(seeded_database, command=(sys.executable, "-c", ANOTHER)) as live:
        first, second = (ask(live.base, f"{LOCALIDADES}?page=2") for _ in range(2))
        assert (first.status, first.body, first.one("etag")) == (200, second.body, second.one("etag"))
        assert (first.one("allow"), first.one("vary")) == ("GET", "Accept")
        await_metrics(live.base, lambda metrics: value(metrics, "response_cache_requests_total", "hit") >= 1)
        eventually(lambda: "uvicorn 0.99.0 is not tested" in live.output.read_text())
