"""ETag, If-None-Match, and the SQL statements of each request."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from localidades_api.catalogue.schemas import Release
from localidades_api.http import caching
from localidades_api.http.caching import entity_tag
from localidades_api.http.conditional import is_fresh
from tests.extensions.outline_files import geojson, import_outlines_into, write
from tests.support.application import client_of, import_into, recorded_statements, running_app
from tests.support.catalogue import many, write_catalogue
from tests.support.database import WHO_WAIT, connected
from tests.support.postgres import locked_in_thread
from tests.support.waiting import eventually_async
from tests.support.wire import LOCALIDADES, ROOT

INDEX = "/api/census/"
RELEASE = Release(
    id=1, name="2018-09", source="catun_localidad.zip", sha256="ab" * 32, states=32, municipalities=2463,
    localities=304363, published_at=datetime(2018, 9, 28, 10, 12, 13, 999999, tzinfo=UTC),
)  # fmt: skip
TAG = entity_tag(RELEASE, "json")


def test_last_modified_is_a_date_of_http() -> None:
    assert caching.freshness_headers(RELEASE, "json")["Last-Modified"] == "Fri, 28 Sep 2018 10:12:13 GMT"


def test_etag_depends_on_release_content_and_representation() -> None:
    elsewhere = RELEASE.model_copy(update={"id": 7, "published_at": RELEASE.published_at + timedelta(days=1)})
    assert entity_tag(elsewhere, "json") == TAG
    others = [RELEASE.model_copy(update=changed) for changed in ({"name": "2018-10"}, {"sha256": "cd" * 32})]
    assert TAG not in {entity_tag(RELEASE, "api"), *(entity_tag(other, "json") for other in others)}


def test_etag_in_a_clone_depends_on_its_files_and_elsewhere_on_the_version(tmp_path: Path) -> None:
    """An edit changes what the same rows look like. All workers have the same tag."""
    package = tmp_path / "src" / "localidades_api"
    shutil.copytree(ROOT / "src" / "localidades_api", package, ignore=shutil.ignore_patterns("static", "__pycache__"))
    program = (
        "import sys; from localidades_api.http.caching import Release, entity_tag\n"
        "print(entity_tag(Release.model_validate_json(sys.argv[1]), 'json'))"
    )

    def tag() -> str:
        command = [sys.executable, "-c", program, RELEASE.model_dump_json()]
        env = {**os.environ, "PYTHONPATH": str(package.parent)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    tags = [tag()]
    (package / "compiled.pyc").write_text("as Python writes them")
    (tmp_path / "docs").mkdir()
    tags.append(tag())
    for edited in (package / "html/templates/state.html", package / "api/areas.py", tmp_path / "docs/data.md"):
        with edited.open("a", encoding="utf-8") as file:
            file.write("\n")
        tags.append(tag())
    assert [tags.index(tag) for tag in tags] == [0, 0, 2, 3, 4]
    (package / "migrations").mkdir()  # as in an installed package
    tags = [tag()]
    (package / "api" / "areas.py").touch()
    shutil.copy(package / "api" / "problems.py", package / "api" / "more.py")
    tags.append(tag())
    (package / "__init__.py").write_text('__version__ = "999.0.0"\n', encoding="utf-8")
    tags.append(tag())
    assert [tags.index(tag) for tag in tags] == [0, 0, 2]


CODINGS = ("-gzip", ";gzip", "--gzip", "-br", "-zstd")  # as servers in front add them
FRESH = [
    [TAG], [f"W/{TAG}"], ["*"], [f'W/"x"\t,\tW/{TAG} , "y"'], [f'"a,b", {TAG}'], ['"x"', TAG],
    *([f'W/{TAG[:-1]}{coding}"'] for coding in CODINGS),
]  # fmt: skip
OTHERS = [
    [], ['"x"'], [TAG.strip('"')], [TAG.upper()], ['"*"'], ['*, "x"'], ["\xff\x00"],
    *([f'{TAG[:-1]}{ending}"'] for ending in ("-x", "gzip", "-gzip-gzip", "-gzipx")),
]  # fmt: skip


@pytest.mark.parametrize("lines", [*FRESH, *OTHERS])
def test_if_none_match_is_compared_weakly(lines: list[str]) -> None:
    assert is_fresh(lines, TAG) is (lines in FRESH)


# -- Through the application


async def test_page_is_the_same_in_every_coding(client: httpx.AsyncClient) -> None:
    """It shows headers of the same list as JSON, which has a coding if it is long."""
    target = f"{LOCALIDADES}?page_size=100&format=api"
    pages = {(await client.get(target, headers={"Accept-Encoding": coding})).text for coding in ("br", "identity")}
    assert len(pages) == 1


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        (LOCALIDADES, 60),
        (f"{LOCALIDADES}?release=2020-01", 86400),
        (f"{LOCALIDADES}?estado_id=1&release=2020-01", 86400),
        (f"{LOCALIDADES}?release=2020-01&format=api", 60),  # its page mentions other releases
        (f"{LOCALIDADES}10010001/?release=2020-01", 86400),
        # Places are also found by their names in other releases.
        (f"{LOCALIDADES}suggest/?q=pa&release=2020-01", 60),
        (f"{LOCALIDADES}?search=pa&release=2020-01", 60),
        (f"{INDEX}municipios/?search=a&release=2020-01", 60),
        (f"{INDEX}municipios/?release=2020-01", 86400),
        (f"{LOCALIDADES}download/?format=csv&search=pa&release=2020-01", 60),
        (f"{LOCALIDADES}download/?format=csv&release=2020-01", 86400),
        (f"{INDEX}releases/", 60),
        (f"{INDEX}releases/2020-01/changes/?since=2020-01", 86400),
        *((f"{path}{query}", seconds) for query, seconds in (("", 60), ("?release=2020-01", 86400))
          for path in (f"{LOCALIDADES}tiles/5/7/14.mvt", f"{LOCALIDADES}backdrop.svg", "/wscatgeo/mgee/01")),
    ],
)  # fmt: skip
async def test_response_for_a_named_release_is_fresh_for_a_day(
    client: httpx.AsyncClient, target: str, seconds: int
) -> None:
    answer = await client.get(target)
    assert answer.status_code == 200
    assert f"max-age={seconds}," in answer.headers["cache-control"]


async def test_if_modified_since_is_ignored(client: httpx.AsyncClient) -> None:
    header = {"If-Modified-Since": (await client.get(LOCALIDADES)).headers["last-modified"]}
    assert (await client.get(LOCALIDADES, headers=header)).status_code == 200


BEYOND = ("localidades/?", "localidades/?ambito=R&", "municipios/?", "estados/?", "releases/?",
          "releases/2020-01/changes/?since=2020-01&")  # fmt: skip


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"{LOCALIDADES}?page=0", 422),
        (f"{LOCALIDADES}?release=none", 404),
        (f"{INDEX}nothing/", 404),
        *((f"{INDEX}{path}page=99&format={format_}", 404) for path in BEYOND for format_ in ("json", "api")),
    ],
)
async def test_errors_are_never_304_or_cached(client: httpx.AsyncClient, target: str, status: int) -> None:
    tag = (await client.get(target.replace("page=99", "page=1"))).headers.get("etag", "*")
    answer = await client.get(target, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.headers["cache-control"]) == (status, "no-store")
    assert "etag" not in answer.headers


KEYS = ("1", "33", "1001", "1999", "10010001", "19999999", "2020-01", "2000-01", "mgee/01", "mgee/33", "mgem/01/001",
        "mgem/01/999", "estados", "municipios", "localidades", "atajos", "de-nada", "json")  # fmt: skip


async def test_key_that_does_not_exist_is_never_304(seeded_database: str, tmp_path: Path) -> None:
    """Whichever tag of its resource a client has."""
    await import_into(seeded_database, write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(131)))
    await import_outlines_into(seeded_database, write(tmp_path, geojson(), "mgem.json"))
    checked, statuses = set(), set()
    async with running_app(seeded_database) as app, client_of(app) as client:
        [withdrawn] = {place.cvegeo.lstrip("0") for place in many(132)} - {
            place.cvegeo.lstrip("0") for place in many(131)
        }
        for route in iter_route_contexts(app.routes):
            names = re.findall(r"{(\w+)", str(route.path))
            if not names or "GET" not in (route.methods or ()):
                continue
            values = (*KEYS, withdrawn) if len(names) < 3 else ("0", "1", "33")
            pattern = re.sub(r"{(\w+)[^}]*}", r"{\1}", str(route.path))
            targets = [
                pattern.format_map(dict(zip(names, chosen, strict=True)))
                for chosen in product(values, repeat=len(names))
            ]
            for accept in ("application/json", "text/html"):
                answers = [(target, await client.get(target, headers={"Accept": accept})) for target in targets]
                tags = {answer.headers["etag"] for _, answer in answers if "etag" in answer.headers}
                for target, answer in answers:
                    if "etag" in answer.headers:
                        continue
                    for condition in ("*", ", ".join(tags)):
                        again = await client.get(target, headers={"Accept": accept, "If-None-Match": condition})
                        assert (again.status_code, again.content) == (answer.status_code, answer.content), target
                    statuses.add(answer.status_code)
                    checked |= {pattern} if tags else set()
    assert {404, 410} <= statuses
    assert len(checked) >= 10, checked


# Requests in turn, and how many statements each runs. Count and positions of a list are queried once, for all pages,
# spellings and orders of a filter.
COSTS = [
    (LOCALIDADES, 1),
    (f"{LOCALIDADES}?estado_id=1&page_size=5", 2),
    (f"{LOCALIDADES}?estado_id=01&page_size=5&page=2", 1),
    (f"{LOCALIDADES}?estado_id=1&fields=cvegeo,ambito", 1),
    (f"{LOCALIDADES}?cvegeo=010010002,010010001", 2),
    (f"{LOCALIDADES}?cvegeo=10010001,10010002,10010001", 1),
    (f"{LOCALIDADES}?bbox=-118,14,-86,33", 2),
    (f"{LOCALIDADES}?bbox=-118.0,14.00,-86,33&page_size=5&page=2", 1),
    (f"{LOCALIDADES}?search=lugar&ambito=R", 0),
    (f"{LOCALIDADES}?sort=nombre", 2),
    (f"{LOCALIDADES}?sort=nombre&page=3", 1),
    (f"{LOCALIDADES}?sort=nombre&search=lugar", 1),
    (f"{LOCALIDADES}10010001/", 1),
    (f"{LOCALIDADES}010010001/", 0),  # a redirect
    (f"{LOCALIDADES}nearest/?lat=21&lon=-102", 1),
    (f"{LOCALIDADES}suggest/?q=lugar", 0),
    (f"{LOCALIDADES}tiles/5/6/14.mvt", 1),
    (f"{LOCALIDADES}backdrop.svg", 1),
    (f"{INDEX}estados/", 1),
    (f"{INDEX}municipios/?search=municipio&sort=-nombre&fields=id", 1),
    (f"{INDEX}municipios/1001/", 1),
]


async def test_number_of_sql_statements_per_request(seeded_database: str) -> None:
    async with running_app(seeded_database) as app, client_of(app) as client:
        await client.get(INDEX)  # the release is known now
        for target, count in COSTS:
            with recorded_statements(app) as statements:
                answer = await client.get(target)
            assert len(statements) == count, (target, statements)
            if tag := answer.headers.get("etag"):
                with recorded_statements(app) as statements:
                    again = await client.get(target, headers={"If-None-Match": tag})
                looked_up = statements[: bool(re.search(r"/\d+/$", target))]  # whether there is that key
                assert (again.status_code, statements) == (304, looked_up), target
        with recorded_statements(app) as statements:
            await asyncio.gather(*(client.get(f"{LOCALIDADES}?page=2") for _ in range(8)))
        assert len(statements) == 1


async def test_preloading_ends_with_the_application(seeded_database: str) -> None:
    """Otherwise a service stops late while its database hangs."""
    before = asyncio.all_tasks()
    async with locked_in_thread(seeded_database, "localities"), connected(seeded_database) as other:
        async with running_app(seeded_database, page_cache_bytes=10**6, database_timeout=60, wants_names=False):
            await eventually_async(lambda: other.fetchval(WHO_WAIT))
        await eventually_async(lambda: asyncio.all_tasks() <= before, within=20)
