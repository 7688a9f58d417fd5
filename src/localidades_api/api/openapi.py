"""Extends FastAPI's OpenAPI document: headers of every response, recorded examples, and Spanish."""

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from localidades_api.api.declarations import header
from localidades_api.api.route_table import write_methods
from localidades_api.html.languages.translators import LANGUAGES, Language, document_translator
from localidades_api.html.renderer import JSON
from localidades_api.http.paths import PREFIX

DESCRIPTION = """
Every locality in Mexico with its official keys, from INEGI's *Catálogo Único de Claves de Áreas Geoestadísticas
Estatales, Municipales y Localidades*. The API is read-only.

* An `id` is the official key read as a number, so it never changes.
* A *release* is one complete version of the catalogue. The `Catalogue-Release` header names the release of a response,
  and `release=` selects another. `Link` headers stay on one release: following `rel="next"` returns every record once,
  even if another release is published meanwhile.
* `ETag` and `If-None-Match` avoid transferring what has not changed.
* Errors are `application/problem+json` (RFC 9457).
* Answers are JSON unless something else is asked for, and this document describes the JSON. Resources that take
  `format` are HTML pages too, errors included: with `format=api`, and for browsers by default.
* The examples of many rows are answers of the demo catalogue, whose places are invented.

The licence of this document is that of the software. INEGI's terms of free use cover the data: credit INEGI wherever
you show them, with the words in `attribution` of `/api/census/`.
"""
KEYLESS = "\nThe API needs no key.\n"
_TAGS = {  # in the order of /docs
    "Localities": "The places: lists, records, suggestions while somebody types, and the nearest to a point.",
    "Areas": "Municipios, and the estados that they belong to.",
    "Matching": "Find keys for tables of names or points, of any length.",
    "Downloads": "All localities, or those that match filters, as one file.",
    "Map": "The places drawn: vector tiles for MapLibre, QGIS and others, and a drawing of the country as an SVG.",
    "Releases": "The versions of the catalogue, their totals, and what changed from one to another.",
    "Health": "For operators: whether the service runs, and whether it is ready.",
}
TAGS = [{"name": name, "description": description} for name, description in _TAGS.items()]

_TEXTS = frozenset({"summary", "description", "tags"})  # members of the document that are translated
_EXAMPLES = frozenset({"example", "examples"})


def describe(app: FastAPI) -> None:
    """Extend `app.openapi()`, and give it a language."""
    generate = app.openapi

    @cache
    def openapi(language: Language = LANGUAGES[0]) -> dict[str, Any]:
        document = deepcopy(generate())
        is_open, say = not app.router.dependencies, document_translator(language)
        if is_open:
            document["security"] = []  # says that no request needs a key
        for path, item in document["paths"].items():
            for operation in item.values():
                _complete_responses(operation["responses"], write_methods(item) if path.startswith(PREFIX) else None)
                _complete_parameters(operation.get("parameters", []))
                if recorded := read_examples().get(operation["operationId"]):
                    _add_examples(operation, recorded)
        document = translate(document, say)
        if is_open:
            document["info"]["description"] += say(KEYLESS)
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way of extending it


def _complete_responses(responses: Mapping[str, dict[str, Any]], allow: str | None) -> None:
    """Add the headers of every response under `/api/census`, and put the schemas of problems where they belong.

    FastAPI documents the model of a response as JSON, whatever media type it is declared with.
    """
    for response in responses.values():
        if allow:
            added = {
                "Allow": header("The methods that the resource allows.", allow),
                "Vary": header("The request headers that choose the representation.", "Accept"),
            }
            response["headers"] = {**added, **response.get("headers", {})}
        content = response.get("content", {})
        if "schema" not in (described := content.get(JSON.problem_type, {"schema": None})):
            described |= content.pop("application/json", {})


def _complete_parameters(parameters: list[dict[str, Any]]) -> None:
    """Put the required parameters first, and give them an example.

    /docs fills in each `example` of a parameter, also of an optional one: all at once would find nothing.
    """
    parameters.sort(key=lambda parameter: not parameter["required"])  # pydantic has inherited fields first
    for parameter in parameters:
        if parameter["required"] and "examples" in parameter["schema"]:
            parameter["example"] = parameter["schema"]["examples"][0]


@cache
def read_examples() -> Mapping[str, Mapping[str, Any]]:
    """Return requests to the demo catalogue and its answers, by operation id, which `make regen` records."""
    examples: Mapping[str, Mapping[str, Any]] = json.loads((Path(__file__).parent / "examples.json").read_bytes())
    return examples


def _add_examples(operation: Mapping[str, Any], recorded: Mapping[str, Any]) -> None:
    operation["requestBody"]["content"][JSON.media_type]["example"] = recorded["request"]
    operation["responses"]["200"]["content"][JSON.media_type]["example"] = recorded["answer"]


def translate(document: Mapping[str, Any], say: Callable[[str], str]) -> dict[str, Any]:
    """Return the document with its texts translated: not its names, and not its examples, which the API answers."""

    def say_all(name: str, value: Any) -> Any:  # noqa: ANN401  # any part of JSON
        match value:
            case dict() if name not in _EXAMPLES:
                return {name: say_all(name, part) for name, part in value.items()}
            case list() if name not in _EXAMPLES:
                return [say_all(name, part) for part in value]
            case str() if name in _TEXTS:
                return say(value)
        return value

    translated: dict[str, Any] = say_all("", document)
    for named in (*translated["tags"], translated["info"]["contact"]):
        named["name"] = say(named["name"])
    return translated
