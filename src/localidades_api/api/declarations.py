"""The responses that routes declare for the OpenAPI document: headers, problems, and sets that several routes share."""

from collections.abc import Mapping
from typing import Any

from localidades_api.api.problems import problem_document
from localidades_api.catalogue.pagination import MAX_HTML_PAGE_SIZE
from localidades_api.catalogue.schemas import (
    GoneProblem,
    InvalidPageProblem,
    InvalidParametersProblem,
    NotAcceptableProblem,
    Problem,
    UnsupportedMediaTypeProblem,
)
from localidades_api.errors import (
    DatabaseUnavailableError,
    GoneError,
    InvalidPageError,
    InvalidParametersError,
    LocalidadesError,
    NotAcceptableError,
    NotFoundError,
    StatusError,
    UnsupportedMediaTypeError,
)
from localidades_api.html.renderer import FORMATS, JSON
from localidades_api.http.caching import CACHE_CONTROL

Responses = dict[int | str, dict[str, Any]]


def header(description: str, example: str) -> dict[str, Any]:
    """Declare a header of a response."""
    return {"description": description, "schema": {"type": "string"}, "example": example}


_MODELS: Mapping[type[LocalidadesError], type[Problem]] = {  # of errors whose problems have further members
    GoneError: GoneProblem,
    InvalidPageError: InvalidPageProblem,
    InvalidParametersError: InvalidParametersProblem,
    NotAcceptableError: NotAcceptableProblem,
    UnsupportedMediaTypeError: UnsupportedMediaTypeProblem,
}


def problem(error: LocalidadesError, description: str, model: type[Problem] | None = None) -> dict[str, Any]:
    """Declare a response with a problem; that of `error` is the example, and its type chooses the model."""
    content = {JSON.problem_type: {"example": problem_document(error)}}
    return {"model": model or _MODELS.get(type(error), Problem), "description": description, "content": content}


UNAUTHORIZED: Responses = {401: problem(StatusError(401, "Not authenticated", None), "The request has no valid key.")}

_HOW_LONG = "How long caches may keep the response."
OF_RELEASE = {"Catalogue-Release": header("The release that the response comes from.", "2018-09")}
_FRESHNESS = {
    **OF_RELEASE,
    "ETag": header("Changes when the release changes or the service is upgraded.", '"2018-09.json.0123456789ab"'),
    "Last-Modified": header("When the release was published.", "Fri, 28 Sep 2018 10:12:00 GMT"),
    "Cache-Control": header(_HOW_LONG, CACHE_CONTROL),
}
_LINK = header(
    "The pages `first`, `prev`, `next` and `last` of the same release (RFC 8288).",
    '</api/census/localidades/?page=2&format=json&release=2018-09>; rel="next"',
)

ERRORS: Responses = {
    422: problem(
        InvalidParametersError([("page", "A page number is a whole number from 1, written with the digits 0 to 9.")]),
        "A parameter is unknown, repeated or out of range.",
    ),
    503: {
        **problem(
            DatabaseUnavailableError(),
            "No catalogue is published yet, the database does not answer, or the service is at capacity.",
        ),
        "headers": {"Retry-After": header("Seconds to wait before trying again.", "5")},
    },
}
NEGOTIATED: Responses = {
    **ERRORS,
    404: problem(NotFoundError("There is no such release."), "There is no such release."),
    406: problem(
        NotAcceptableError(list(FORMATS)), "The resource has no representation that the Accept header allows."
    ),
}
CACHEABLE: Responses = {
    **NEGOTIATED,
    200: {"headers": _FRESHNESS},
    304: {"description": "The client already has this response (If-None-Match).", "headers": _FRESHNESS},
}
PAGINATED: Responses = {
    **{status: {**CACHEABLE[status], "headers": {**_FRESHNESS, "Link": _LINK}} for status in (200, 304)},
    307: {
        "description": f"Redirects to a smaller page: an HTML page has at most {MAX_HTML_PAGE_SIZE} records.",
        "headers": {"Location": header("The relative address of the smaller page.", "?page=1&page_size=100")},
    },
    404: problem(InvalidPageError(6088), "The page is past the last one, or the release does not exist."),
}
NO_KEY: Responses = {
    308: {
        "description": "Redirects to the key without its leading zero.",
        "headers": {"Location": header("The relative address with the key's canonical spelling.", "../10010001/")},
    },
    404: problem(
        NotFoundError("Neither this release nor an earlier one has this key."),
        "Neither this release nor an earlier one has the key, or the release does not exist.",
    ),
    410: problem(GoneError("2012-06", 10010002), "An earlier release had the key, and this one does not."),
}
