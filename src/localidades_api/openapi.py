"""What FastAPI does not say of itself in the OpenAPI document: headers, problems, and the browsable pages."""

from typing import Any

from fastapi import FastAPI

from localidades_api.census import PREFIX
from localidades_api.freshness import CACHE_CONTROL

_DESCRIPTION = """
Every locality of Mexico with its official keys, from INEGI's *Catálogo Único de Claves de Áreas Geoestadísticas
Estatales, Municipales y Localidades*. Read-only; no key is needed; any origin may ask.

* An `id` is the official key read as a number, so it never changes.
* A *release* is one whole cut of the catalogue. `Catalogue-Release` names the one that answered, `release=` asks for
  another, and `Link` keeps to it: following `rel="next"` gives every record once, whatever is published meanwhile.
* `ETag` and `If-None-Match` save the transfer of what has not changed.
* Errors are `application/problem+json` (RFC 9457).
"""

_HEADERS: dict[str, tuple[str, str]] = {
    "Allow": ("The methods there are.", "GET"),
    "Vary": ("The request headers that choose the representation.", "Accept"),
    "Catalogue-Release": ("The release that answered.", "2018-09"),
    "ETag": ("Changes when the release does.", '"2018-09.json.0123456789ab"'),
    "Last-Modified": ("When the release was published.", "Fri, 28 Sep 2018 10:12:00 GMT"),
    "Cache-Control": ("How long the answer may be kept.", CACHE_CONTROL),
}
_LINK = (
    "The pages `first`, `prev`, `next` and `last` of the release that answered (RFC 8288).",
    '</api/census/localidades/?page=2&format=json&release=2018-09>; rel="next"',
)


def describe(app: FastAPI) -> None:
    """Make `app.openapi()` tell all of it; the document is made once."""
    app.description = _DESCRIPTION
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    _describe_operation(operation, is_census=path.startswith(PREFIX))
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way of extending it


def _describe_operation(operation: dict[str, Any], *, is_census: bool) -> None:
    for status, answer in operation["responses"].items():
        content = answer.get("content", {})
        if status >= "400" and "application/json" in content:
            content["application/problem+json"] = content.pop("application/json")
        if not is_census:
            continue
        if content:
            content["text/html"] = {"schema": {"type": "string"}}
        answer["headers"] = _headers(status, operation["operationId"])


def _headers(status: str, operation_id: str) -> dict[str, Any]:
    described = dict(_HEADERS)
    if status >= "400":
        described = {name: described[name] for name in ("Allow", "Vary")}
        if status == "503":
            described["Retry-After"] = ("Seconds to wait before asking again.", "5")
    elif operation_id.startswith("list_"):
        described["Link"] = _LINK
    return {
        name: {"description": description, "schema": {"type": "string"}, "example": example}
        for name, (description, example) in described.items()
    }
