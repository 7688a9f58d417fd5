"""Descriptions of a release in standard vocabularies, compared with the file and the page."""

import csv
import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from localidades_api.api.dataset import describe_data_package, describe_for_pages
from localidades_api.catalogue.schemas import Release
from localidades_api.downloads.formats import FILE_TYPES
from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.pages import Page
from tests.support.postgres import new_database
from tests.support.wire import LOCALIDADES

PACKAGE = f"{LOCALIDADES}datapackage.json"


@pytest.fixture(scope="module")
async def of_two(
    server: str, seeded: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """Lend a client of an application that serves another release than 2020-01, which it has too."""
    file = write_catalogue(tmp_path_factory.mktemp("newer") / "catun_localidad_2021-01.csv", many(140))
    with new_database(server, seeded) as url:
        await import_into(url, file)
        async with running_app(url, in_background=False) as app, client_of(app) as client:
            assert (await client.get("/api/census/")).headers["catalogue-release"] == "2021-01"
            yield client


async def test_every_csv_row_conforms_to_the_data_package(of_two: httpx.AsyncClient) -> None:
    client = of_two
    answer = await client.get(f"{PACKAGE}?release=2020-01")
    assert answer.headers["cache-control"] == "no-cache, private"
    (resource,) = answer.json()["resources"]
    assert resource["path"].startswith("http://test/")
    fields = resource["schema"]["fields"]
    rows = list(csv.DictReader((await client.get(resource["path"])).text.splitlines()))
    assert [field["name"] for field in fields] == list(rows[0])
    types: dict[str, Any] = {"integer": int, "number": float, "string": str}
    for field in fields:
        assert field["description"]
        constraints = field.get("constraints", {})
        for row in rows:
            if value := row[field["name"]]:
                types[field["type"]](value)
                assert re.fullmatch(constraints.get("pattern", ".*"), value)
                assert value in constraints.get("enum", [value])
            else:
                assert not constraints.get("required")
    assert len({row[resource["schema"]["primaryKey"]] for row in rows}) == len(rows) == 132


async def test_data_package_has_validators(of_two: httpx.AsyncClient) -> None:
    answer = await of_two.get(f"{PACKAGE}?release=2020-01")
    listed = await of_two.get(f"{LOCALIDADES}?release=2020-01")
    assert answer.headers["last-modified"] == listed.headers["last-modified"]
    tag = {"If-None-Match": answer.headers["etag"]}
    for target, host in ((PACKAGE, "test"), (f"{PACKAGE}?release=2020-01", "other")):
        assert (await of_two.get(target, headers=tag | {"Host": host})).status_code == 200


async def test_page_describes_the_dataset_for_search_engines(of_two: httpx.AsyncClient) -> None:
    client = of_two
    page = Page.of(await client.get("/api/census/?format=api&release=2020-01"))
    scripts = [one for one in page.all("script") if one.attributes.get("type") == "application/ld+json"]
    schema_org, dcat = (json.loads(one.text) for one in scripts)
    assert all('": ' not in one.text and "México" in one.text for one in scripts)  # no spaces or escapes to download
    assert (schema_org["@type"], schema_org["inLanguage"]) == ("Dataset", "es")
    assert 50 <= len(schema_org["description"]) <= 5000
    assert schema_org["creditText"] not in schema_org["description"]  # which the page would have twice
    assert dcat["dct:description"] == f"{schema_org['description']} {schema_org['creditText']}"
    assert (dcat["@type"], dcat["dcat:version"]) == ("dcat:Dataset", schema_org["version"])
    assert dcat["dcat:keyword"] == schema_org["keywords"] != []
    assert len(schema_org["distribution"]) == len(dcat["dcat:distribution"]) == len(FILE_TYPES)
    for file, distribution in zip(schema_org["distribution"], dcat["dcat:distribution"], strict=True):
        assert distribution["dcat:downloadURL"] == distribution["dcat:accessURL"] == file["contentUrl"]
        assert distribution["dct:license"] == schema_org["license"]
        answer = await client.get(file["contentUrl"])
        assert answer.headers["content-type"].startswith(file["encodingFormat"])
        assert distribution["dcat:mediaType"] == f"media:{file['encodingFormat']}"
        assert answer.headers["content-disposition"] == f'attachment; filename="{file["name"]}"'
        assert answer.headers["catalogue-release"] == "2020-01"
    for address in (schema_org["url"], dcat["@id"], dcat["dcat:landingPage"]):
        assert (await client.get(address)).headers["catalogue-release"] == "2020-01"


def test_demo_is_not_offered_to_search_engines() -> None:
    places = {"states": 32, "municipalities": 2463, "localities": 304_400}
    demo = Release(id=1, name="demo", source="demo", sha256="0" * 64, published_at=datetime.now(UTC), **places)
    assert describe_for_pages(demo, "") == []
    assert "licenses" not in describe_data_package(demo, "http://test/file.csv")
