"""Rows that are sent while a release is published are all matched in one release."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx

from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import LOCALIDADES, ask, await_names, serving

NAMES = {"2020-01": "Asientos", "2021-01": "Nuevo Asiento"}  # of one place


def test_rows_sent_during_a_publication_are_of_one_release(server: str, seeded: str, tmp_path: Path) -> None:
    """tests/model has short requests at any moment."""
    places = [replace(place, nombre="Nuevo Asiento") if place.nombre == "Asientos" else place for place in many(132)]
    file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    with new_database(server, seeded) as url, serving(url, LOCALIDADES_RELEASE_POLL="0.2") as live:
        await_names(live.base)

        def rows() -> Iterator[bytes]:
            yield b'{"nombre":"Asientos"}\n' * 10
            import_file(url, file)
            eventually(lambda: "2021-01" in ask(live.base, f"{LOCALIDADES}suggest/?q=a").all("catalogue-release"))
            yield b'{"nombre":"Asientos"}\n' * 10

        headers = {"Content-Type": "application/x-ndjson"}
        answer = httpx.post(f"{live.base}{LOCALIDADES}match/", content=rows(), headers=headers, timeout=PATIENCE)
    answers = [json.loads(line) for line in answer.text.splitlines()]
    labels = [one["label"] or one["candidates"][0]["label"] for one in answers]
    assert len(labels) == 20
    assert {label.partition(",")[0] for label in labels} == {NAMES[answer.headers["catalogue-release"]]}
