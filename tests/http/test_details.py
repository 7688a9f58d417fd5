"""Estados, municipios and single localities: as in the file, at one URL, or gone with an explanation."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from localidades_api.catalogue.schemas import GoneProblem
from tests.support.application import client_of, database_with, running_app
from tests.support.catalogue import TRAPS, Place
from tests.support.records import municipality_of, record_of, state_of

CENSUS = "/api/census/"
SCRIPT = "<script>alert(1)</script>"

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
    *(place for place in SECOND if place.cvegeo not in {"140020109", "140020110"}),
    place("140020007", "Vuelve"),
    place("140020111", "De la segunda"),
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


# -- Addresses


@pytest.mark.parametrize("slash", ["/", ""])
@pytest.mark.parametrize(
    ("written", "address"),
    [("localidades/010010001", "localidades/10010001"), ("localidades/0010010001", "localidades/10010001"),
     ("municipios/01001", "municipios/1001"), ("estados/01", "estados/1")],
)  # fmt: skip
async def test_key_with_leading_zeros_redirects_and_keeps_the_query(
    client: httpx.AsyncClient, written: str, address: str, slash: str
) -> None:
    query = "?release=2020-01&format=json"
    answer = await client.get(f"{CENSUS}{written}{slash}{query}", follow_redirects=True)
    assert (answer.status_code, str(answer.url)) == (200, f"http://test{CENSUS}{address}/{query}")
    assert {hop.status_code for hop in answer.history} == {308}
    assert not any(hop.headers["location"].startswith(("/", "http")) for hop in answer.history), "relative"


NO_KEYS = [
    "0", "000000000", "-1", "1.0", "x", "%201", "%D9%A1", "%C2%B2", "1,2", "%00", "1%00", "%FF", "%3Cscript%3E",
    "1000000000", "9" * 17, "0" * 17 + "1", "9" * 5000, "010010001%2F",
]  # fmt: skip


NOTHING = [
    "localidades/10010001/x", "localidades/", *(f"localidades/{key}" for key in NO_KEYS),
    *(f"{kind}/{key}" for kind in ("municipios", "estados") for key in ("0", "x", "100000", "9" * 17)),
]  # fmt: skip
UNKNOWN = ["localidades/320580045", "municipios/1999", "municipios/99999", "estados/31", "estados/99"]


@pytest.mark.parametrize(("targets", "said"), [(NOTHING, "There is nothing"), (UNKNOWN, "Neither this release")])
async def test_key_without_a_place_is_404(client: httpx.AsyncClient, targets: list[str], said: str) -> None:
    for target in targets:
        problem = await get(client, f"{target}/", 404)
        assert list(problem) == ["type", "title", "status", "detail"], target
        assert problem["detail"].startswith(said), target
        assert "<script>" not in problem["detail"]


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
        pytest.param("140020109", "2020-01", 140020111, id="new key in the newest"),
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
    assert [place["id"] for place in suggested] == ([successor] if successor else [])


async def test_each_release_has_the_localities_and_areas_of_its_file(history: httpx.AsyncClient) -> None:
    """Every member, in its order, without a space."""
    for name, places in RELEASES.items():
        estados = {place.cvegeo[:2]: state_of(place) for place in places}
        municipios = {place.cvegeo[:5]: municipality_of(place, places) for place in places}
        for path, records in (("estados", estados), ("municipios", municipios)):
            listed = await get(history, f"{path}/?release={name}")
            assert listed["results"] == [record for _, record in sorted(records.items())]
        expected: dict[str, Any] = {f"estados/{int(key)}": estado for key, estado in estados.items()}
        for key, municipio in municipios.items():
            expected[f"municipios/{int(key)}"] = {**municipio, "estado": estados[key[:2]]}
        for place in places:
            above = {"municipio": municipios[place.cvegeo[:5]], "estado": estados[place.cvegeo[:2]]}
            expected[f"localidades/{int(place.cvegeo)}"] = {**record_of(place), **above}
        for target, record in expected.items():
            content = (await history.get(f"{CENSUS}{target}/?release={name}")).content
            assert content == json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("target", "lacking"),
    [("localidades/140020007/", ["2020-01"]), ("municipios/14003/", ["2020-01", "2021-01"]),
     ("estados/32/", ["2020-01", "2021-01"])],
)  # fmt: skip
async def test_place_is_410_in_the_releases_that_lack_it(
    history: httpx.AsyncClient, target: str, lacking: list[str]
) -> None:
    for release in RELEASES:
        answer = await get(history, f"{target}?release={release}", 410 if release in lacking else 200)
        if release in lacking:
            assert (answer["last_release"], answer["successor"]) == ("2019-01", None)
