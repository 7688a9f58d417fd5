"""Messages about bad requests: a sentence in both languages that helps and never repeats what was sent."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from localidades_api.api.params import LocalitiesQuery
from localidades_api.app import create_app
from localidades_api.html.languages.translators import _messages, lenient_translator
from localidades_api.settings import Settings
from tests.support.wire import LOCALIDADES

DOCUMENT = create_app(Settings()).openapi()
MARKER = "zyx_marker"
VALUES = (MARKER * 60, "", "0", "9" * 17)
LIST = ", ".join(LocalitiesQuery.model_fields)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("localidades/?page=x", "A page number is a whole number from 1, written with the digits 0 to 9."),
        ("localidades/?pageSize=1", f"Unknown parameter. Did you mean `page_size`? This resource takes: {LIST}."),
        (f"localidades/?{'estado_id' * 5}=1", f"Unknown parameter. This resource takes: {LIST}."),
        ("localidades/?ambito=u", "Did you mean `U`? This parameter takes: U, R."),
        (
            "estados/?sort=-clavé",
            "Did you mean `-clave`? This parameter takes: id, -id, clave, -clave, nombre, -nombre, abreviatura,"
            " -abreviatura, relevance.",
        ),
        (
            "localidades/suggest/?q=a&kind=estado,Localidad",
            "Did you mean `localidad`? This parameter takes, separated by commas: localidad, municipio, estado.",
        ),
    ],
)
async def test_message_says_what_the_parameter_takes(client: httpx.AsyncClient, query: str, message: str) -> None:
    answer = await client.get(f"/api/census/{query}")
    assert answer.status_code == 422
    assert [fault["message"] for fault in answer.json()["errors"]] == [message]
    assert lenient_translator("es")(message) != message


def test_message_with_something_in_braces_is_translated_as_itself() -> None:
    """Another one may match it as well, such as `{count} rows` a sentence that ends so."""
    patterns = {text: message for text, message in _messages("es").items() if "{" in text}
    assert len(patterns) > 50
    for text, message in patterns.items():
        values = dict.fromkeys(re.findall(r"\{(\w+)\}", text), "7")
        assert lenient_translator("es")(text.format(**values)) == message.format(**values)


def parameters() -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Yield the method and path of every operation, each parameter of its query, and the required ones."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            described: list[dict[str, Any]] = operation.get("parameters", [])
            target = path.format(**{part["name"]: part["example"] for part in described if part["in"] == "path"})
            queried = [parameter for parameter in described if parameter["in"] == "query"]
            required = {needed["name"]: str(needed["example"]) for needed in queried if needed["required"]}
            for parameter in queried:
                yield method.upper(), target, parameter["name"], required


async def test_no_message_about_a_parameter_repeats_its_value(client: httpx.AsyncClient) -> None:
    for method, target, name, required in parameters():
        faults: list[dict[str, str]] = []
        for value in VALUES:
            answer = await client.request(method, target, params={**required, name: value})
            assert MARKER not in answer.text or answer.is_success
            faults += answer.json()["errors"] if answer.status_code == 422 else []
        assert faults, (target, name)
        for fault in faults:
            assert re.fullmatch(r"[A-Z`].*\.", fault["message"]), (target, fault)
            assert lenient_translator("es")(fault["message"]) != fault["message"], (target, fault)


async def test_no_message_about_a_body_repeats_it(client: httpx.AsyncClient) -> None:
    """Bad rows are another matter: they come back beside their problems, as `sent`."""
    tables = [path for path, methods in DOCUMENT["paths"].items() if "application/json" in str(methods.get("post"))]
    assert tables
    for path in tables:
        for value in (MARKER, [MARKER], {MARKER: MARKER}, {"rows": MARKER}):
            answer = await client.post(path, json=value)
            assert MARKER not in answer.text, (path, value)


async def test_message_on_a_page_is_in_its_language(client: httpx.AsyncClient) -> None:
    page = await client.get(f"{LOCALIDADES}?estado=1&ambito=u&format=api&lang=es")
    assert "Parámetro desconocido. ¿Quiso decir <code>estado_id</code>? Este recurso acepta: " in page.text
    assert "¿Quiso decir <code>U</code>? Este parámetro acepta: U, R." in page.text


async def test_number_of_reported_errors_is_limited(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{LOCALIDADES}?" + "&".join(f"x{number}" for number in range(1300)))
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 50
    assert len(answer.content) < 20_000
