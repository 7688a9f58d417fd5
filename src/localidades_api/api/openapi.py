"""Adds to FastAPI's OpenAPI document: descriptions, headers, problems and examples."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from fastapi import FastAPI

from localidades_api.api import Services
from localidades_api.api.problems import problem_document
from localidades_api.api.route_table import write_methods
from localidades_api.errors import (
    ContentTooLargeError,
    DatabaseUnavailableError,
    GoneError,
    InvalidPageError,
    InvalidParametersError,
    LocalidadesError,
    NotAcceptableError,
    NotFoundError,
    RangeNotSatisfiableError,
    RequestTimeoutError,
    UnsupportedMediaTypeError,
)
from localidades_api.html.i18n import LANGUAGES, Language, document_translator
from localidades_api.html.renderer import FORMATS
from localidades_api.http.caching import CACHE_CONTROL
from localidades_api.http.paths import PREFIX
from localidades_api.releases.tracker import ReleaseTracker

DESCRIPTION = """
Every locality in Mexico with its official keys, from INEGI's *Catálogo Único de Claves de Áreas Geoestadísticas
Estatales, Municipales y Localidades*. The API is read-only, needs no API key, and allows requests from any origin.

* An `id` is the official key read as a number, so it never changes.
* A *release* is one complete version of the catalogue. The `Catalogue-Release` header names the release of a response,
  and `release=` selects another. `Link` headers stay on one release: following `rel="next"` returns every record once,
  even if another release is published meanwhile.
* `ETag` and `If-None-Match` avoid transferring what has not changed.
* Errors are `application/problem+json` (RFC 9457).
* Answers are JSON unless something else is asked for, and this document describes the JSON. Resources that take
  `format` are HTML pages too, errors included: with `format=api`, and for browsers by default.

The licence of this document is that of the software. INEGI's terms of free use cover the data: credit INEGI wherever
you show them, with the words in `attribution` of `/api/census/`.
"""
_TAGS = {  # in the order of /docs
    "Localities": "The places: lists, records, suggestions while somebody types, and the nearest to a point.",
    "Areas": "Municipios, and the estados that they belong to.",
    "Matching": "Find keys for tables of names or points, of any length.",
    "Downloads": "All localities, or those that match filters, as one file.",
    "Map": "The places drawn: vector tiles for MapLibre, QGIS and others, and a drawing of the country as an SVG.",
    "Releases": "The versions of the catalogue, their totals, and what changed from one to another.",
    "Reconciliation": "For OpenRefine and other clients of the Reconciliation Service API.",
    "Health": "For operators: whether the service runs, and whether it is ready.",
}
TAGS = [{"name": name, "description": description} for name, description in _TAGS.items()]

_HEADERS: dict[str, tuple[str, str]] = {
    "Allow": ("The methods that the resource allows.", "GET"),
    "Vary": ("The request headers that choose the representation.", "Accept"),
    "Catalogue-Release": ("The release that the response comes from.", "2018-09"),
    "ETag": ("Changes when the release changes or the service is upgraded.", '"2018-09.json.0123456789ab"'),
    "Last-Modified": ("When the release was published.", "Fri, 28 Sep 2018 10:12:00 GMT"),
    "Cache-Control": ("How long caches may keep the response.", CACHE_CONTROL),
}
_OF_DOWNLOADS: dict[str, tuple[str, str]] = {
    "Catalogue-Records": ("The number of records in the file.", "304363"),
    "Content-Disposition": ("The name of the file.", 'attachment; filename="localidades-2018-09.csv"'),
}
_PROBLEMS: dict[str, LocalidadesError] = {
    "404": NotFoundError("There is no such release."),
    "406": NotAcceptableError(list(FORMATS)),
    "408": RequestTimeoutError(),
    "410": GoneError("2012-06", 10010002),
    "413": ContentTooLargeError(500, "queries"),
    "415": UnsupportedMediaTypeError(["application/json", "application/x-ndjson", "text/csv"]),
    "416": RangeNotSatisfiableError(75_000_000),
    "422": InvalidParametersError(
        [("page", "A page number is a whole number from 1, written with the digits 0 to 9.")],
    ),
    "503": DatabaseUnavailableError(),
}
_TEXTS = frozenset({"summary", "description", "tags"})  # members of the document that are translated
_EXAMPLES = frozenset({"example", "examples"})
_LINK = (
    "The pages `first`, `prev`, `next` and `last` of the same release (RFC 8288).",
    '</api/census/localidades/?page=2&format=json&release=2018-09>; rel="next"',
)


def describe(app: FastAPI) -> None:
    """Extend `app.openapi()`, and give it a language.

    The document is generated once; the one of a language is made of it when it is first asked for, and again when the
    releases in its examples have changed.
    """
    generate = app.openapi

    def describe_all() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for path, operation in _operations(document):
                _describe_operation(operation, path, write_methods(document["paths"][path]))
            # A collection before what lies under it, unlike the routes, where `nearest/` must precede `{id}/`.
            document["paths"] = dict(sorted(document["paths"].items()))
            app.openapi_schema = document
        return app.openapi_schema

    @lru_cache(maxsize=len(LANGUAGES))
    def describe_in(language: Language, newest: tuple[str, str] | None) -> dict[str, Any]:
        document = deepcopy(describe_all())
        if newest:
            for parameter in _parameters(document):
                _name_release(parameter, *newest)
        return document if language == LANGUAGES[0] else translate(document, document_translator(language))

    def openapi(language: Language = LANGUAGES[0]) -> dict[str, Any]:
        services: Services | None = getattr(app.state, "services", None)  # set while the service runs
        return describe_in(language, _newest(services.releases) if services else None)

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way of extending it


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


def _newest(releases: ReleaseTracker) -> tuple[str, str] | None:
    """Return the names of the served release and the one before it; the first release counts as its own predecessor."""
    if releases.served not in releases.every:
        return None
    place = releases.every.index(releases.served)
    return releases.served.name, releases.every[max(place - 1, 0)].name


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every operation, with its path."""
    for path, operations in document["paths"].items():
        for operation in operations.values():
            yield path, operation


def _parameters(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for _, operation in _operations(document):
        yield from operation.get("parameters", ())


def _name_release(parameter: dict[str, Any], current: str, previous: str) -> None:
    """Use an existing release as the example of a parameter, so that the values /docs fills in work."""
    if name := {"release": current, "name": current, "since": previous}.get(parameter["name"]):
        parameter["schema"]["examples"] = [name]
        if "example" in parameter:
            parameter["example"] = name


def _describe_operation(operation: dict[str, Any], path: str, allow: str) -> None:
    """Describe an operation; of its representations only JSON is named, or generated types would be of all of them."""
    for parameter in operation.get("parameters", ()):
        _describe_parameter(parameter)
    if "parameters" in operation:
        operation["parameters"].sort(key=lambda parameter: not parameter["required"])
    is_api = path.startswith(PREFIX)
    if is_api and "requestBody" in operation:
        operation["responses"].pop("304", None)  # clients don't revalidate the answer to a POST
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if status >= "400" and "application/json" in content:
            content["application/problem+json"] = _with_example(status, content.pop("application/json"))
        if not is_api:
            continue
        # Not `format: binary`, which the route gives CSV: generated clients would expect bytes in decoded text.
        content |= {name: {"schema": {"type": "string"}} for name in content if name.startswith("text/")}
        answer["headers"] = _headers(status, operation, allow)


def _with_example(status: str, content: dict[str, Any]) -> dict[str, Any]:
    of_page = content["schema"].get("$ref", "").endswith("/InvalidPageProblem")
    return {**content, "example": problem_document(InvalidPageError(6088) if of_page else _PROBLEMS[status])}


def _describe_parameter(parameter: dict[str, Any]) -> None:
    if parameter["required"] and "examples" in parameter["schema"]:
        # /docs fills this in, so trying it out takes one click. It would fill in optional parameters with one too.
        parameter["example"] = parameter["schema"]["examples"][0]


def _headers(status: str, operation: Mapping[str, Any], allow: str) -> dict[str, Any]:
    parameters = {parameter["name"] for parameter in operation.get("parameters", ())}
    described = {**_HEADERS, "Allow": (_HEADERS["Allow"][0], allow)}
    if "304" not in operation["responses"]:
        of_release = "Catalogue-Release" if "requestBody" in operation else "Cache-Control"
        described = {name: described[name] for name in ("Allow", "Vary", of_release)}
    if operation["operationId"] == "download_localities" and status in {"200", "206"}:
        described |= _OF_DOWNLOADS
    if status >= "400":
        described = {name: described[name] for name in ("Allow", "Vary")}
        if status == "503":
            described["Retry-After"] = ("Seconds to wait before trying again.", "5")
    elif status == "307":
        described = {name: described[name] for name in ("Allow", "Vary")}
        described["Location"] = ("The relative address of the smaller page.", "?format=api&page_size=100&page=1")
    elif status == "308":
        described = {"Location": ("The relative address with the key's canonical spelling.", "../10010001/")}
    elif "page" in parameters:
        described["Link"] = _LINK
    return {
        name: {"description": description, "schema": {"type": "string"}, "example": example}
        for name, (description, example) in described.items()
    }
