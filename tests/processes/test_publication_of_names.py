"""No request fails or mixes releases when one is published while names are suggested and matched."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, await_names, serving

NAMES = {"2020-01": "Asientos", "2021-01": "Nuevo Asiento"}  # of one place
ROW = b'{"nombre":"Asientos"}\n'


def suggest(client: httpx.Client) -> tuple[str, set[str]]:
    """Return the release and the names of a response."""
    answer = client.get(f"{LOCALIDADES}suggest/", params={"q": "asientos, asientos", "limit": "1"})
    assert answer.status_code == 200, answer.text
    return answer.headers["catalogue-release"], {one["nombre"] for one in answer.json()["results"]}


def match(client: httpx.Client) -> tuple[str, set[str]]:
    """Send rows for longer than a publication needs to reach every worker."""

    def rows() -> Iterator[bytes]:
        for _ in range(15):
            yield ROW * 10
            time.sleep(0.1)

    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"{LOCALIDADES}match/", content=rows(), headers=headers)
    assert answer.status_code == 200, answer.text
    found = [json.loads(line)["candidates"][0]["label"] for line in answer.text.splitlines()]
    assert len(found) == 150
    return answer.headers["catalogue-release"], {label.partition(",")[0] for label in found}


@pytest.mark.tail
def test_no_request_fails_during_a_publication(server: str, seeded: str, tmp_path: Path) -> None:
    places = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in many(132)]
    file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    with (
        new_database(server, seeded) as url,
        serving(url, "--workers", "2", LOCALIDADES_RELEASE_POLL="0.2") as live,
        ThreadPoolExecutor(4) as pool,
    ):
        await_names(live.base)
        is_over, seen = threading.Event(), Counter[tuple[str, str]]()

        def repeat(ask: Callable[[httpx.Client], tuple[str, set[str]]]) -> None:
            another_worker = {"Connection": "close"}
            with httpx.Client(base_url=live.base, headers=another_worker, timeout=PATIENCE) as client:
                while not is_over.is_set():
                    release, names = ask(client)
                    assert names == {NAMES[release]}
                    seen[ask.__name__, release] += 1

        def await_each(release: str) -> None:
            wanted = [(name, release) for name in ("suggest", "match")]
            eventually(lambda: any(one.done() for one in asking) or all(seen[one] > 3 for one in wanted))

        asking = [pool.submit(repeat, ask) for ask in (suggest, match) for _ in "12"]
        try:
            await_each("2020-01")
            import_file(url, file)
            await_each("2021-01")
        finally:
            is_over.set()
        for one in asking:
            one.result()
