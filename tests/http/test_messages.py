"""What is said of parameters that can't be used: in words, in both languages, with what there is to choose from."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from localidades_api.app import create_app
from localidades_api.languages.translators import lenient_translator
from localidades_api.settings import Settings
from tests.support.messages import REGULAR_EXPRESSION
from tests.support.wire import LOCALIDADES

CENSUS = "/api/census/"
DOCUMENT = create_app(Settings()).openapi()
MARKER = "zyx_marker"  # what no message may repeat
GARBAGE = ("", MARKER, MARKER * 60, "0", "1e9", "9" * 17, "٣", "Csv", "[a-z]+", "U,R", "010010001,", "010010001," * 501)
_OF_PATTERNS = re.compile(r"[\^$\\\[\]{}|*]|\(\?|\+(?=['\"])|pattern|regex")


def parameters() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give every operation and parameter of a query, and what the operation needs besides."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            described: list[dict[str, Any]] = operation.get("parameters", [])
            queried = [one for one in described if one["in"] == "query"]
            needed = {one["name"]: str(one["example"]) for one in queried if one["required"]}
            for one in queried:
                yield f"{method.upper()} {addressed(path, described)}", one["name"], needed


def addressed(path: str, described: list[dict[str, Any]]) -> str:
    """Return a path with the examples of its parameters."""
    return path.format(**{one["name"]: one["example"] for one in described if one["in"] == "path"})


@pytest.mark.parametrize(("operation", "name", "needed"), list(parameters()), ids=lambda value: str(value)[:60])
async def test_message_of_any_parameter_is_a_sentence_in_both_languages(
    client: httpx.AsyncClient, operation: str, name: str, needed: dict[str, str]
) -> None:
    method, target = operation.split(" ")
    refused = 0
    for value in GARBAGE:
        answer = await client.request(method, target, params={**needed, name: value})
        for fault in answer.json().get("errors", ()) if answer.status_code == 422 else ():
            refused += 1
            assert re.fullmatch(r"[A-Z`].*\.", fault["message"]), (value, fault)
            assert not _OF_PATTERNS.search(fault["message"]), (value, fault)
            assert MARKER not in answer.text
            assert lenient_translator("es")(fault["message"]) != fault["message"], (value, fault)
            assert lenient_translator("en")(fault["message"]) == fault["message"]
    assert refused > 0


def addresses() -> Iterator[str]:
    """Give every path that has parameters, once for each, with a gap for the value of that one."""
    for path, methods in DOCUMENT["paths"].items():
        described = methods.get("get", {}).get("parameters", [])
        for gap in [one["name"] for one in described if one["in"] == "path"]:
            others = [one for one in described if one["name"] != gap]
            yield addressed(path, [*others, {"name": gap, "in": "path", "example": "{}"}])


@pytest.mark.parametrize("address", list(addresses()))
async def test_message_of_an_address_that_leads_nowhere_shows_no_pattern(
    client: httpx.AsyncClient, address: str
) -> None:
    refused = 0
    for value in GARBAGE:
        answer = await client.get(address.format(quote(value, safe="")), headers={"Accept": "application/json"})
        if answer.status_code >= 400:
            refused += 1
            assert not REGULAR_EXPRESSION.search(answer.json()["detail"]), (value, answer.text)
            assert MARKER not in answer.text
    assert refused > 0


def bodies() -> Iterator[tuple[str, str, list[object]]]:
    """Give every operation that takes a body of JSON, and such bodies with what can't be used in each place."""
    values: list[Any] = [*GARBAGE, None, True, -1, 1e9, [], {}, [MARKER], {MARKER: MARKER}]
    for path, methods in DOCUMENT["paths"].items():
        body = methods.get("post", {}).get("requestBody", {"content": {}})["content"].get("application/json")
        if body:
            members = body["schema"]["properties"]["rows"]["items"]["properties"]
            [example] = body["example"]["rows"]
            yield path, "rows", [*values, *({"rows": value} for value in values), {"rows": values}]
            for name in members:
                yield path, name, [{"rows": [{**example, name: value} for value in values]}]


def said(answer: object) -> Iterator[str]:
    """Give what a body that is refused, and each row that is, are told."""
    parts = answer if isinstance(answer, dict) else {}
    yield from (parts[name] for name in ("detail", "problem") if isinstance(parts.get(name), str))
    yield from (text for part in [*parts.get("results", ()), *parts.get("errors", ())] for text in said(part))
    yield from (parts[name] for name in ("message", "error") if isinstance(parts.get(name), str))


@pytest.mark.parametrize(("path", "place", "sent"), list(bodies()), ids=lambda value: str(value)[:60])
async def test_message_of_a_body_shows_no_pattern(
    client: httpx.AsyncClient, path: str, place: str, sent: list[object]
) -> None:
    answers = [(await client.post(path, json=body)).json() for body in sent]
    for text in [text for answer in answers for text in said(answer)]:
        assert not REGULAR_EXPRESSION.search(text), (place, text)
        assert re.fullmatch(r"(?s)[A-Z`].*\.", text), (place, text)
    assert place != "rows" or sum(any(said(answer)) for answer in answers) >= len(answers) - 1  # no rows are no fault


def unknown_to() -> Iterator[tuple[str, list[str]]]:
    """Give every resource that is read with a query, and the names of its parameters."""
    for path, methods in DOCUMENT["paths"].items():
        described = methods.get("get", {}).get("parameters", [])
        if names := [one["name"] for one in described if one["in"] == "query"]:
            yield addressed(path, described), names


@pytest.mark.parametrize(("path", "names"), list(unknown_to()))
async def test_unknown_parameter_is_answered_with_those_that_the_resource_takes(
    client: httpx.AsyncClient, path: str, names: list[str]
) -> None:
    answer = await client.get(path, params={"zzz": "1", "<b>": "2"})
    said = {fault["parameter"]: fault["message"] for fault in answer.json()["errors"]}
    for unknown in ("zzz", "(a name that is not plain ASCII)"):
        start, _, taken = said[unknown].removesuffix(".").partition(": ")
        assert start == "Unknown parameter. This resource takes"
        assert sorted(taken.split(", ")) == sorted(names)


@pytest.mark.parametrize(
    ("path", "given", "meant"),
    [
        ("localidades/", "estado", "estado_id"),
        ("localidades/", "municipio", "municipio_id"),
        ("localidades/", "pgae", "page"),
        ("localidades/", "pageSize", "page_size"),
        ("localidades/", "Clave", "clave"),
        ("localidades/", "field", "fields"),
        ("localidades/10010001/", "releases", "release"),
        ("localidades/nearest/", "latitude", "lat"),
        ("municipios/", "ESTADO_ID", "estado_id"),
        ("estados/", "formato", "format"),
        ("releases/2020-01/changes/", "changes", "change"),
        ("localidades/", "id", None),
        ("localidades/", "q", None),
        ("localidades/", "nombre", None),
        ("localidades/", "estado_idestado_idestado_idestado_idestado_id", None),
    ],
)
async def test_mistyped_parameter_is_answered_with_the_one_that_was_meant(
    client: httpx.AsyncClient, path: str, given: str, meant: str | None
) -> None:
    faults = (await client.get(f"{CENSUS}{path}", params={given: "1"})).json()["errors"]
    (message,) = [fault["message"] for fault in faults if fault["message"].startswith("Unknown parameter.")]
    assert re.findall("Did you mean `([^`]*)`", message) == ([meant] if meant else [])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("localidades/?ambito=u", "Did you mean `U`? This parameter takes: U, R."),
        ("localidades/?ambito=urbano", "This parameter takes: U, R."),
        ("localidades/?format=JSON", "Did you mean `json`? This parameter takes: json, api."),
        ("localidades/?lang=ES", "Did you mean `es`? This parameter takes: en, es."),
        ("localidades/?sort=población", "Did you mean `poblacion`? This parameter takes: clave, -clave, nombre,"
         " -nombre, poblacion, -poblacion, relevance."),
        ("localidades/download/?format=CSV", "Did you mean `csv`? This parameter takes: csv, excel, ndjson, geojson,"
         " parquet, xlsx, gpkg."),
        ("localidades/suggest/?q=a&kind=estado,Localidad", "Did you mean `localidad`? This parameter takes, separated"
         " by commas: localidad, municipio, estado."),
        ("releases/2020-01/changes/?since=2020-01&change=rename", "Did you mean `renamed`? This parameter takes: added,"
         " removed, renamed, relocated, updated."),
    ],
)  # fmt: skip
async def test_mistyped_value_is_answered_with_those_to_choose_from(
    client: httpx.AsyncClient, query: str, message: str
) -> None:
    answer = await client.get(f"{CENSUS}{query}")
    assert [fault["message"] for fault in answer.json()["errors"]] == [message]


async def test_mistyped_parameter_is_told_on_a_page_in_its_language(client: httpx.AsyncClient) -> None:
    page = await client.get(f"{LOCALIDADES}?estado=1&ambito=u&format=api&lang=es")
    assert "Parámetro desconocido. ¿Quiso decir <code>estado_id</code>? Este recurso acepta: " in page.text
    assert "¿Quiso decir <code>U</code>? Este parámetro acepta: U, R." in page.text


async def test_problem_has_an_end_however_many_parameters_are_unknown(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{LOCALIDADES}?" + "&".join(f"x{number}" for number in range(1300)))
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 50
    assert len(answer.content) < 20_000
