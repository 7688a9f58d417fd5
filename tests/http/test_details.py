"""Estados, municipios and single localities: as in the file, at one URL, or gone with an explanation."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from localidades_api.catalogue.schemas import GoneProblem
from tests.support.application import await_release, client_of, database_with, import_into, running_app
from tests.support.catalogue import TRAPS, Place, many, write_catalogue
from tests.support.pages import BROWSER, Page
from tests.support.records import municipality_of, record_of, state_of
from tests.support.wire import ask

CENSUS = "/api/census/"
SCRIPT = "<script>alert(1)</script>"
SMALL = many(132)

# Keys that come and go: all differences between the three releases.
POINT, ELSEWHERE = ("20.111111", "-103.111111"), ("20.222222", "-103.222222")


def place(cvegeo: str, nombre: str, point: tuple[str, str] = POINT) -> Place:
    return Place(cvegeo, nombre, latitud=point[0], longitud=point[1], nom_ent="Jalisco", nom_abr="Jal.")


KEPT = [
    *(place(f"14001{1 + number:04d}", f"Se queda {number}", ELSEWHERE) for number in range(60)),
    Place("050010001", "Pueblo", nom_ent=SCRIPT, nom_mun=f"{SCRIPT} y {SCRIPT}"),
    Place("050010002", SCRIPT, nom_ent=SCRIPT, nom_mun=f"{SCRIPT} y {SCRIPT}", carta='">' + SCRIPT),
    *(replace(trap) for trap in TRAPS if trap.cvegeo.startswith("01")),
    place("140020113", "Gemela"),
]
FIRST = [
    *KEPT,
    place("140020001", "Con clave nueva"),
    place("140020002", "Dos candidatas"),
    place("140020003", "Se mudó"),
    place("140020004", "Sin punto", ("-", "-")),
    place("140020005", "Otro nombre"),
    place("140020006", "San Jose"),
    place("140020007", "Vuelve"),
    place("140020110", "De las dos primeras"),
    place("140020112", "Gemela"),
    Place("140030001", "De un municipio que se va", nom_ent="Jalisco", nom_abr="Jal.", nom_mun="Se fue"),
    Place("320010001", "De un estado que se va", nom_ent="Zacatecas", nom_abr="Zac."),
]
SECOND = [
    *KEPT,
    place("140020101", "Con clave nueva"),
    place("140020102", "Dos candidatas"),
    place("140020103", "Dos candidatas"),
    place("140020104", "Sin punto", ("-", "-")),
    place("140020105", "Nombre otro"),
    place("140020106", "San José"),
    place("140020108", "Se mudó", (POINT[0], ELSEWHERE[1])),  # a degree is enough
    place("140020109", "De la segunda"),
    place("140020110", "De las dos primeras"),
]
THIRD = [
    *(one for one in SECOND if one.cvegeo not in {"140020109", "140020110"}),
    place("140020007", "Vuelve"),
    place("140020111", "De la tercera"),
]
RELEASES = {"2019-01": FIRST, "2020-01": SECOND, "2021-01": THIRD}


@pytest.fixture(scope="module")
async def history(server: str, migrated: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a service that holds the three releases."""
    with database_with(server, migrated, RELEASES, allow_shrink=True) as url:
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def get(client: httpx.AsyncClient, target: str, status: int = 200) -> Any:  # noqa: ANN401  # JSON
    answer = await client.get(CENSUS + target)
    assert answer.status_code == status, answer.text
    return answer.json()


# -- Details against the file


async def test_every_locality_municipio_and_estado_matches_the_file(client: httpx.AsyncClient) -> None:
    """Every member, in its order, without a space."""
    for one in SMALL:
        state, municipality = state_of(one), municipality_of(one, SMALL)
        for target, expected in (
            (f"localidades/{int(one.cvegeo)}", {**record_of(one), "municipio": municipality, "estado": state}),
            (f"municipios/{int(one.cvegeo[:5])}", {**municipality, "estado": state}),
            (f"estados/{int(one.cvegeo[:2])}", state),
        ):
            content = (await client.get(f"{CENSUS}{target}/")).content
            assert content == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()


# -- Addresses


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("localidades/010010001/", "localidades/10010001/"), ("localidades/0010010001/", "localidades/10010001/"),
        ("municipios/01001/", "municipios/1001/"), ("estados/01/", "estados/1/"),
    ],
)  # fmt: skip
async def test_key_with_leading_zeros_redirects_and_keeps_the_query(
    client: httpx.AsyncClient, written: str, address: str
) -> None:
    for target, query, hops in ((written, "?release=2020-01&format=json", 1), (written[:-1], "?format=api", 2)):
        at = f"http://test{CENSUS}{target}{query}"
        for _ in range(hops):
            answer = await client.get(at)
            assert answer.status_code == 308
            assert re.match(r"(\.\./)?[0-9]+/(\?|$)", answer.headers["location"]), "relative"
            at = urljoin(at, answer.headers["location"])
        assert ((await client.get(at)).status_code, at) == (200, f"http://test{CENSUS}{address}{query}")


NO_KEYS = [
    "0", "000000000", "-1", "1.0", "x", "%201", "%D9%A1", "%C2%B2", "1,2", "%00", "1%00", "%FF", "%3Cscript%3E",
    "1000000000", "9" * 17, "0" * 17 + "1", "9" * 5000, "010010001%2F",
]  # fmt: skip


def test_impossible_key_is_404(live_server: str) -> None:
    others = [(resource, key) for resource in ("municipios", "estados") for key in ("0", "x", "100000", "9" * 17)]
    for resource, key in [*(("localidades", key) for key in NO_KEYS), *others]:
        answer = ask(live_server, f"{CENSUS}{resource}/{key}/")
        assert (answer.status, answer.one("content-type")) == (404, "application/problem+json"), key
        assert "<script>" not in answer.text
        assert ask(live_server, f"{CENSUS}{resource}/{key}").status in {308, 404}, key


@pytest.mark.parametrize(
    "target",
    [
        "localidades/320580045/", "municipios/1999/", "municipios/99999/", "estados/31/", "estados/99/",
        "localidades/10010001/x/", "localidades//",
    ],
)  # fmt: skip
async def test_unknown_key_is_404(client: httpx.AsyncClient, target: str) -> None:
    problem = await get(client, target, 404)
    assert list(problem) == ["type", "title", "status", "detail"]
    is_key = target.split("/")[1].isdecimal() and target.count("/") == 2
    assert problem["detail"].startswith("Neither this release" if is_key else "There is nothing")


@pytest.mark.parametrize(
    "target",
    ["estados/", "estados/1/", "municipios/1001/", "localidades/10010001/", "localidades/suggest/?q=ardillas",
     "releases/2020-01/changes/?since=2020-01", "localidades/download/"],
)  # fmt: skip
async def test_missing_trailing_slash_redirects_and_keeps_the_query(client: httpx.AsyncClient, target: str) -> None:
    path, _, query = target.partition("?")
    query = "&".join(filter(None, [query, "format=json&a=%20%3C"]))
    asked = f"http://test{CENSUS}{path[:-1]}?{query}"
    answer = await client.get(asked, headers={"Host": "evil.example"})
    assert answer.status_code == 308
    assert "://" not in answer.headers["location"]
    assert urljoin(asked, answer.headers["location"]) == f"http://test{CENSUS}{path}?{query}"


# -- Keys that come and go


@pytest.mark.parametrize(
    ("key", "last_release", "successor"),
    [
        pytest.param("140020001", "2019-01", 140020101, id="new key"),
        pytest.param("140020002", "2019-01", None, id="two candidates"),
        pytest.param("140020003", "2019-01", None, id="moved"),
        pytest.param("140020004", "2019-01", None, id="no coordinates"),
        pytest.param("140020005", "2019-01", None, id="renamed"),
        pytest.param("140020006", "2019-01", None, id="an accent more"),
        pytest.param("140020110", "2020-01", None, id="of the first two"),
        pytest.param("140020112", "2019-01", None, id="a twin that had its key before"),
    ],
)
async def test_withdrawn_locality_is_410_with_its_last_state(
    history: httpx.AsyncClient, key: str, last_release: str, successor: int | None
) -> None:
    answer = await history.get(f"{CENSUS}localidades/{key}/")
    problem = answer.json()
    GoneProblem.model_validate(problem, strict=True, extra="forbid")
    assert answer.status_code == problem["status"] == 410
    assert (problem["last_release"], problem["successor"]) == (last_release, successor)
    assert ("successor" in problem["detail"]) == (successor is not None)
    suggested = (await get(history, f"localidades/suggest/?q={key}"))["results"]
    assert [one["id"] for one in suggested] == ([successor] if successor else [])


async def test_withdrawn_locality_is_200_in_older_releases(history: httpx.AsyncClient) -> None:
    for name, places in RELEASES.items():
        for one in places:
            found = await get(history, f"localidades/{int(one.cvegeo)}/?release={name}")
            assert found == {**record_of(one), "municipio": municipality_of(one, places), "estado": state_of(one)}


async def test_restored_locality_is_410_only_in_between(history: httpx.AsyncClient) -> None:
    await get(history, "localidades/140020007/?release=2019-01")
    gone = await get(history, "localidades/140020007/?release=2020-01", 410)
    assert (gone["last_release"], gone["successor"]) == ("2019-01", None)
    await get(history, "localidades/140020007/")


@pytest.mark.parametrize("target", ["municipios/14003/", "estados/32/"])
async def test_withdrawn_municipio_and_estado_are_410(history: httpx.AsyncClient, target: str) -> None:
    for release in ("2020-01", "2021-01"):
        gone = await get(history, f"{target}?release={release}", 410)
        assert (gone["last_release"], gone["successor"]) == ("2019-01", None)
    await get(history, f"{target}?release=2019-01")


# -- Lists of estados and municipios


def states_of(places: list[Place]) -> list[dict[str, Any]]:
    return [state_of(one) for _, one in sorted({one.cvegeo[:2]: one for one in places}.items())]


def municipalities_of(places: list[Place]) -> list[dict[str, Any]]:
    return [municipality_of(one, places) for _, one in sorted({one.cvegeo[:5]: one for one in places}.items())]


async def test_estados_and_municipios_are_listed_by_id(client: httpx.AsyncClient, history: httpx.AsyncClient) -> None:
    for path, expected in (("estados/", states_of(SMALL)), ("municipios/?page_size=1000", municipalities_of(SMALL))):
        content = {"quantity": len(expected), "total_pages": 1, "results": expected}
        answer = await client.get(f"{CENSUS}{path}")
        assert answer.content == json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    for name, places in RELEASES.items():
        assert (await get(history, f"estados/?release={name}"))["results"] == states_of(places)
        assert (await get(history, f"municipios/?release={name}"))["results"] == municipalities_of(places)


async def test_municipios_can_be_filtered_by_estado(client: httpx.AsyncClient) -> None:
    for estado in ("01", "32", "1"):
        expected = [one for one in municipalities_of(SMALL) if one["estado_id"] == int(estado)]
        answer = await client.get(f"{CENSUS}municipios/?estado_id={estado}&page_size=1000")
        assert answer.json() == {"quantity": len(expected), "total_pages": 1, "results": expected}
        assert f"estado_id={int(estado)}&page_size=1000>" in answer.headers["link"]
    assert await get(client, "municipios/?estado_id=31") == {"quantity": 0, "total_pages": 0, "results": []}
    assert (await get(client, "municipios/?estado_id=31&page=2", 404))["total_pages"] == 0


# -- Pages for people


async def test_history_on_a_page_includes_a_new_release(seeded_database: str, tmp_path: Path) -> None:
    target = f"{CENSUS}localidades/10010001/?release=2020-01&format="
    async with running_app(seeded_database) as app, client_of(app) as client:
        before = {format_: await client.get(target + format_) for format_ in ("json", "api")}
        file = write_catalogue(tmp_path / "catun_localidad_2021-01.csv", many(133))
        await import_into(seeded_database, file)
        await await_release(client, "2021-01")
        holding = {name: {"If-None-Match": answer.headers["etag"]} for name, answer in before.items()}
        assert (await client.get(f"{target}json", headers=holding["json"])).status_code == 304
        after = await client.get(f"{target}api", headers=holding["api"])
        assert [after.status_code, "2021-01" in before["api"].text, "2021-01" in after.text] == [200, False, True]


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("estados/", SCRIPT),
        ("estados/5/", SCRIPT),
        ("municipios/", f"{SCRIPT} y {SCRIPT}"),
        ("municipios/5001/", f"{SCRIPT} y {SCRIPT}"),
        ("localidades/50010002/", '">' + SCRIPT),
        ("localidades/suggest/?q=script", f"{SCRIPT}, {SCRIPT} y {SCRIPT}, {SCRIPT}"),
        ("localidades/nearest/?lat=21.88&lon=-102.29&limit=100", f"{SCRIPT}, {SCRIPT} y {SCRIPT}, {SCRIPT}"),
        ("localidades/?search=script", SCRIPT),
        ("releases/", "2019-01"),
        ("releases/2019-01/changes/?since=2021-01", "De un municipio que se va"),
    ],
)
async def test_html_page_escapes_names(history: httpx.AsyncClient, target: str, named: str) -> None:
    answer = await history.get(CENSUS + target, headers=BROWSER)
    assert answer.text.startswith("<!doctype html>")
    page = Page.of(answer)
    assert named in page.one("html").text
    pictures = [one.attributes["src"] for one in page.elements if one.tag in {"img", "iframe", "object", "embed"}]
    assert set(pictures) <= {"/static/icon.svg", f"{CENSUS}localidades/backdrop.svg?release=2021-01"}
    assert not any(name.startswith("on") for one in page.elements for name in one.attributes)
    assert "<script>" not in answer.text.lower()
