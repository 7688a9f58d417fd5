"""Errors as responses: application/problem+json (RFC 9457), or an HTML page if the client prefers HTML."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple, Self, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
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
    MethodNotAllowedError,
    NotAcceptableError,
    NotFoundError,
    OverloadedError,
    RequestError,
)
from localidades_api.html.i18n import LANGUAGES, Language, preferred_language
from localidades_api.html.renderer import Format, Renderer, View, root_of, select_renderer
from localidades_api.observability.faults import FAULTS, cause
from localidades_api.observability.metrics import COUNTERS

PROBLEMS = "/problems"  # below the service's root
_MAX_FAULTS = 50  # in one problem: each may name every parameter of a resource


class ProblemPage(NamedTuple):
    """What the HTML page of a problem shows besides the problem, and where that is from."""

    template: str = "problem.html"
    title: str | None = None
    release: Release | None = None
    context: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


_FORESEEN = (LocalidadesError, RequestValidationError, HTTPException)

PageOf = Callable[[Request, LocalidadesError], Awaitable[ProblemPage | None]]


async def answer_error(request: Request, error: Exception, page_of: PageOf) -> Response:
    """Return the problem of an exception; `page_of` is asked what its HTML page shows besides."""
    page = None
    if isinstance(error, _FORESEEN) and ResponsePreferences.of(request.scope).renderer.format == "api":
        try:
            page = await page_of(request, _translate(error, request.scope.get("endpoint")))
        except Exception as worse:  # noqa: BLE001  # it is answered in place of the other
            return problem_response(request.scope, worse)
    return problem_response(request.scope, error, page)


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


def problem_response(scope: Scope, error: Exception, page: ProblemPage | None = None) -> Response:
    """Log or count an error, and return its response; an unexpected error's cause is only in the log."""
    known = _translate(error, scope.get("endpoint"))
    if isinstance(known, OverloadedError):  # not a fault, and too frequent to log
        COUNTERS.refused[known.slug] += 1
    elif known.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log_fault(known, error)
    return problem_of(known, ResponsePreferences.of(scope), page)


def problem_of(known: LocalidadesError, wanted: ResponsePreferences, page: ProblemPage | None = None) -> Response:
    """Return the response to an error of ours, without logging it."""
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


def _log_fault(known: LocalidadesError, error: Exception) -> None:
    """Log an error; an unexpected one with its traceback."""
    if known is error and not (isinstance(known, DatabaseUnavailableError) and known.is_unforeseen):
        values = ("%s: %s (%r)", known.status, known, error.__cause__)
        cause.set(FAULTS.report(error, *values, traceback=False))
    else:
        cause.set(FAULTS.report(error, "%s: %s", known.status, known, traceback=True))


def _translate(error: Exception, endpoint: Callable[..., Any] | None) -> LocalidadesError:
    """Turn any exception into an error of ours; `endpoint` is the function that a request was routed to."""
    if isinstance(error, LocalidadesError) and not isinstance(error, CommandError):
        return error
    if isinstance(error, ClientDisconnect):
        return RequestError("The connection was closed before the body was complete.")
    if isinstance(error, RequestValidationError):
        if any(fault["loc"][0] == "path" for fault in error.errors()):
            return _translate_routing(HTTPStatus.NOT_FOUND)
        return InvalidParametersError(describe_faults(error, endpoint))
    if isinstance(error, HTTPException) and error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _translate_routing(error.status_code)
    return LocalidadesError("Something went wrong; the service has logged the error.")


def describe_faults(error: RequestValidationError, endpoint: Callable[..., Any] | None) -> list[tuple[str, str]]:
    """Return the parameters and the sentences of the first errors; `endpoint` is the function of the resource."""
    return [_fault(fault, endpoint) for fault in error.errors()[:_MAX_FAULTS]]


def _fault(fault: Mapping[str, Any], endpoint: Callable[..., Any] | None) -> tuple[str, str]:
    """Return the parameter and the sentence of a pydantic error."""
    name = str(fault["loc"][-1])
    if fault["type"] == "extra_forbidden":
        return plain_name(name), refuse_parameter(name, _parameters_of(endpoint))
    return plain_name(name), describe_fault(fault)


@cache
def _parameters_of(endpoint: Callable[..., Any] | None) -> list[str]:
    """Return the names of the parameters in the query of a resource: the fields of the model that reads it."""
    hints = get_type_hints(endpoint) if endpoint else {}
    models = [hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, BaseModel)]
    return [name for model in models for name in model.model_fields]


def _translate_routing(status: int) -> RequestError:
    """Turn the status of an HTTPException, which the router and the static files raise, into an error of ours."""
    if status == HTTPStatus.NOT_FOUND:
        return NotFoundError("There is nothing at this address.")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError()
    return RequestError("The service can't process the request as it was sent.")


def problem_type(error: type[LocalidadesError], root: str = "") -> str:
    """Return the relative address of a problem type, which leads to its explanation (`api.site`)."""
    return f"{root}{PROBLEMS}#{error.slug}"


def problem_document(error: LocalidadesError, root: str = "") -> dict[str, object]:
    """Return the problem document of an error (RFC 9457 §3)."""
    return {
        "type": problem_type(type(error), root),
        "title": error.title,
        "status": int(error.status),
        "detail": error.detail,
        **error.members,
    }
