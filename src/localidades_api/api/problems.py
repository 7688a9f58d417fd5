"""Errors as responses: application/problem+json (RFC 9457), or an HTML page if the client prefers HTML."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple, Self, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from localidades_api.catalogue.messages import describe_fault, plain_name, refuse_parameter
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import (
    CommandError,
    DatabaseUnavailableError,
    GoneError,
    InvalidPageError,
    InvalidParametersError,
    LocalidadesError,
    NotAcceptableError,
    NotFoundError,
    OverloadedError,
    RequestError,
    StatusError,
)
from localidades_api.html.languages.accept_language import preferred_language
from localidades_api.html.languages.translators import LANGUAGES, Language
from localidades_api.html.renderer import Format, Renderer, View, select_renderer
from localidades_api.http.paths import root_of
from localidades_api.observability.faults import FAULTS, cause, is_refused
from localidades_api.observability.metrics import COUNTERS

PROBLEMS = "/problems"  # below the service's root
_MAX_FAULTS = 50  # in one problem: each value may name every parameter of a resource


class ProblemPage(NamedTuple):
    """The further content of a problem's HTML page, and its sources."""

    template: str = "problem.html"
    title: str | None = None
    release: Release | None = None
    context: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


PageOf = Callable[[Request, LocalidadesError], Awaitable[ProblemPage | None]]


@dataclass(frozen=True, slots=True)
class ResponsePreferences:
    """The headers and query that choose a problem's representation, valid or not; the defaults choose JSON."""

    headers: Headers = field(default_factory=Headers)
    query: QueryParams = field(default_factory=QueryParams)
    root: str = ""

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Take the headers, query and root from the scope of a request."""
        return cls(Headers(scope=scope), QueryParams(scope["query_string"]), root_of(scope))

    @property
    def renderer(self) -> Renderer:
        """The renderer of the problem; Accept decides if `format` is invalid, and JSON is the last resort."""
        known: dict[str, Format] = {"json": "json", "api": "api"}
        formats = self.query.getlist("format")
        try:
            return select_renderer(known.get(formats[0]) if len(formats) == 1 else None, self.headers)
        except NotAcceptableError:
            return select_renderer("json", self.headers)

    @property
    def language(self) -> Language:
        """The language that `lang` names, else the one that Accept-Language prefers."""
        asked = self.query.get("lang")
        return next((known for known in LANGUAGES if known == asked), None) or preferred_language(self.headers)


def record_problem(error: LocalidadesError) -> None:
    """Count an error, or log its cause, which the response doesn't show."""
    if isinstance(error, OverloadedError):  # not a fault, and too frequent to log
        COUNTERS.refused[error.slug] += 1
    elif error.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not is_refused.get():
        if isinstance(error, DatabaseUnavailableError) and error.is_unforeseen:  # unknown to this package
            cause.set(FAULTS.report(error, "%s: %s", error.status, error, traceback=True))
        else:
            cause.set(FAULTS.report(error, "%s: %s (%r)", error.status, error, error.__cause__, traceback=False))


def problem_of(known: LocalidadesError, wanted: ResponsePreferences, page: ProblemPage | None = None) -> Response:
    """Return the response to an error."""
    page = page or ProblemPage()
    content = problem_document(known, wanted.root)
    renderer, language = wanted.renderer, wanted.language
    headers = {"Cache-Control": "no-store", **known.headers}
    if renderer.format == "api":
        headers["Vary"] = "Accept-Language"
    # Links of the HTML page keep only parameters that are known to be valid.
    sound = {name: value for name, value in sorted(wanted.query.items()) if name != "format"}
    if not isinstance(known, InvalidPageError | GoneError):
        sound = {"lang": language} if sound.get("lang") == language else {}
    view = View(
        page.template,
        page.title or known.title,
        content,
        known.status,
        root=wanted.root,
        release=page.release,
        pinned=sound.get("release"),
        language=language,
        query=sound,
        context=page.context,
    )
    return Response(
        renderer.render(view),
        known.status,
        {**headers, **renderer.headers, "Content-Type": renderer.problem_type, **page.headers},
    )


def translate(error: Exception, endpoint: Callable[..., Any] | None) -> LocalidadesError:
    """Turn any exception into a LocalidadesError; `endpoint` is the function that handled the request.

    A ValidationError within it is the client's if a model that reads the query, or a base of one, raised it.
    """
    if isinstance(error, LocalidadesError) and not isinstance(error, CommandError):
        return error
    if isinstance(error, ClientDisconnect):
        return RequestError("The connection was closed before the body was complete.")
    if isinstance(error, RequestValidationError) or (
        isinstance(error, ValidationError)
        and any(error.title == base.__name__ for model in _models_of(endpoint) for base in model.__mro__)
    ):
        faults = error.errors()
        if any(fault["loc"][:1] == ("path",) for fault in faults):
            return _no_resource()
        return InvalidParametersError([_fault(fault, endpoint) for fault in faults[:_MAX_FAULTS]])
    if isinstance(error, HTTPException):  # of routers, static files or added routes
        is_plain = error.status_code == HTTPStatus.NOT_FOUND and error.detail == HTTPStatus.NOT_FOUND.phrase
        return _no_resource() if is_plain else StatusError(error.status_code, str(error.detail), error.headers)
    return LocalidadesError("Something went wrong; the service has logged the error.")


def _fault(fault: Mapping[str, Any], endpoint: Callable[..., Any] | None) -> tuple[str, str]:
    """Return the parameter and the sentence of a pydantic error."""
    name = str(fault["loc"][-1]) if fault["loc"] else "query"
    if fault["type"] == "extra_forbidden":
        known = [parameter for model in _models_of(endpoint) for parameter in model.model_fields]
        return plain_name(name), refuse_parameter(name, known)
    return plain_name(name), describe_fault(fault)


@cache
def _models_of(endpoint: Callable[..., Any] | None) -> list[type[BaseModel]]:
    """Return the models that read the query of a resource."""
    hints = {**get_type_hints(endpoint), "return": None} if endpoint else {}
    return [hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, BaseModel)]


def _no_resource() -> NotFoundError:
    return NotFoundError("There is nothing at this address.")


def problem_type(error: type[LocalidadesError], root: str = "") -> str:
    """Return the relative address of a problem type, which leads to its explanation (`api.site`)."""
    return f"{root}{PROBLEMS}#{error.slug}" if error.slug else "about:blank"


def problem_document(error: LocalidadesError, root: str = "") -> dict[str, object]:
    """Return the problem document of an error (RFC 9457 §3)."""
    return {
        "type": problem_type(type(error), root),
        "title": error.title,
        "status": int(error.status),
        "detail": error.detail,
        **error.members,
    }
