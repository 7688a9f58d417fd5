"""No request fails or mixes releases when one is published while names are suggested and matched."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, await_names, serving

NAMES = {"2020-01": "Asientos", "2021-01": "Nuevo Asiento"}  # of one place
ROW = b'{"nombre":"Asientos"}\n'


@pytest.mark.tail
def test_no_request_fails_during_a_publication(server: str, seeded: str, tmp_path: Path) -> None:
    places = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in many(132)]
    file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    with new_database(server, seeded) as url, serving(url, "--workers", "2", LOCALIDADES_RELEASE_POLL="0.2") as live:
        await_names(live.base)
        is_over = threading.Event()
        seen: Counter[tuple[str, str]] = Counter()
        faults: list[str] = []

        def repeat(ask: Callable[[httpx.Client], tuple[str, set[str]]]) -> None:
            """Send requests until the end; record the release and the names of each response."""
            another_worker = {"Connection": "close"}
            with httpx.Client(base_url=live.base, headers=another_worker, timeout=PATIENCE) as client:
                while not is_over.is_set():
                    try:
                        release, names = ask(client)
                    except (httpx.HTTPError, AssertionError) as error:
                        faults.append(repr(error))
                        return
                    seen[ask.__name__, release] += 1
                    if names != {NAMES[release]}:
                        faults.append(f"{release}: {names}")

        askers = [threading.Thread(target=repeat, args=[ask]) for ask in (suggest, match, match_slowly) for _ in "12"]
        for asker in askers:
            asker.start()
        with suppress(AssertionError):
            eventually(lambda: seen["match_slowly", "2020-01"] > 1)
            import_file(url, file)
            eventually(
                lambda: faults or all(seen[ask.__name__, "2021-01"] > 3 for ask in (suggest, match, match_slowly))
            )
        is_over.set()
        for asker in askers:
            asker.join()
    assert faults == []
    assert {name for name, _ in seen} == {"suggest", "match", "match_slowly"}
    assert min(seen[name, release] for name in ("suggest", "match", "match_slowly") for release in NAMES) > 1


def suggest(client: httpx.Client) -> tuple[str, set[str]]:
    answer = client.get(f"{LOCALIDADES}suggest/", params={"q": "asientos, asientos", "limit": "1"})
    assert answer.status_code == 200, answer.text
    return answer.headers["catalogue-release"], {one["nombre"] for one in answer.json()["results"]}


def match(client: httpx.Client) -> tuple[str, set[str]]:
    return _matched(client, ROW * 50)


def match_slowly(client: httpx.Client) -> tuple[str, set[str]]:
    """Send rows for longer than a publication needs to reach every worker."""
    is_sent = threading.Event()

    def rows() -> Iterator[bytes]:
        for _ in range(15):
            yield ROW * 10
            is_sent.wait(0.1)

    return _matched(client, rows())


def _matched(client: httpx.Client, content: bytes | Iterator[bytes]) -> tuple[str, set[str]]:
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post(f"{LOCALIDADES}match/", content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = [json.loads(line) for line in answer.text.splitlines()]
    assert len(found) == (50 if isinstance(content, bytes) else 150)
    return answer.headers["catalogue-release"], {one["label"].partition(",")[0] for one in found}
