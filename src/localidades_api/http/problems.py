"""Errors as answers: application/problem+json (RFC 9457), or a page where HTML was asked for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
from localidades_api.http.html.i18n import LANGUAGES, Language, preferred_language
from localidades_api.http.html.renderer import (
    Format,
    Renderer,
    View,
    root_of,
    select_renderer,
)
from localidades_api.observability.faults import FAULTS, cause
from localidades_api.observability.metrics import COUNTERS

PROBLEMS = "/problems"  # below the service's root
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_UNKNOWN = "This resource has no such parameter."


def install_handlers(app: FastAPI) -> None:
    """Answer every error as a problem; other middleware is to be added later, so that it completes these answers."""
    app.add_exception_handler(LocalidadesError, _handle)
    app.add_exception_handler(RequestValidationError, _handle)
    app.add_exception_handler(HTTPException, _handle)
    app.add_middleware(FaultsAsProblems)


class FaultsAsProblems:
    """Answers whatever escapes the application behind it as a problem, as long as no answer has begun.

    `sender` returns what completes such an answer, where nothing else does.
    """

    def __init__(self, app: ASGIApp, sender: Callable[[Scope, Send], Send] = lambda _, send: send) -> None:
        self._app = app
        self._sender = sender

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and answer what went wrong."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            if has_begun:
                raise
            answer = problem_response(scope, error)
            await answer(scope, receive, self._sender(scope, send))


async def _handle(request: Request, error: Exception) -> Response:
    return problem_response(request.scope, error)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request says of the form of its answer, whether or not that can be used; without a request, JSON."""

    headers: Headers = field(default_factory=Headers)
    query: QueryParams = field(default_factory=QueryParams)
    root: str = ""

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Read it from a request's scope."""
        return cls(Headers(scope=scope), QueryParams(scope["query_string"]), root_of(scope))

    @property
    def renderer(self) -> Renderer:
        """The one of an answer; where `format` is the fault, Accept decides, and where Accept is, JSON."""
        known: dict[str, Format] = {"json": "json", "api": "api"}
        formats = self.query.getlist("format")
        try:
            return select_renderer(known.get(formats[0]) if len(formats) == 1 else None, self.headers)
        except NotAcceptableError:
            return select_renderer("json", self.headers)

    @property
    def language(self) -> Language:
        """The language that is asked for, else the one that is preferred."""
        asked = self.query.get("lang")
        return next((known for known in LANGUAGES if known == asked), None) or preferred_language(self.headers)


def problem_response(scope: Scope, error: Exception) -> Response:
    """Answer an error; of one that was not foreseen the log has the cause and the client only that it happened."""
    known = _translate(error)
    if isinstance(known, OverloadedError):  # no fault, and there may be very much of it
        COUNTERS.refused[known.slug] += 1
    elif known.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log_fault(known, error)
    return problem_of(known, Wanted.of(scope))


def problem_of(known: LocalidadesError, wanted: Wanted) -> Response:
    """Answer an error of ours, without a word in the log."""
    content = problem_document(known, wanted.root)
    renderer, language = wanted.renderer, wanted.language
    headers = {"Cache-Control": "no-store", **known.headers}
    if known.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = "GET"  # RFC 9110 §15.5.6 wants it of every 405, under the census or not
    if renderer.format == "api":
        headers["Vary"] = "Accept-Language"
    # What is known to be sound; links of the page keep to it.
    sound = {name: value for name, value in sorted(wanted.query.items()) if name != "format"}
    if not isinstance(known, InvalidPageError | GoneError):
        sound = {"lang": language} if sound.get("lang") == language else {}
    view = View(
        "problem.html",
        known.title,
        content,
        known.status,
        root=wanted.root,
        pinned=sound.get("release"),
        language=language,
        query=sound,
    )
    return Response(
        renderer.render(view),
        known.status,
        {**headers, **renderer.headers, "Content-Type": renderer.problem_type},
    )


def _log_fault(known: LocalidadesError, error: Exception) -> None:
    """Write down what went wrong; what was not foreseen with its traceback."""
    if known is error and not (isinstance(known, DatabaseUnavailableError) and known.is_unforeseen):
        values = ("%s: %s (%r)", known.status, known, error.__cause__)
        cause.set(FAULTS.report(error, *values, traceback=False))
    else:
        cause.set(FAULTS.report(error, "%s: %s", known.status, known, traceback=True))


def _translate(error: Exception) -> LocalidadesError:
    """Turn what others raise into an error of ours."""
    if isinstance(error, LocalidadesError) and not isinstance(error, CommandError):
        return error
    if isinstance(error, RequestValidationError):
        if any(fault["loc"][0] == "path" for fault in error.errors()):
            return _translate_routing(HTTPStatus.NOT_FOUND)
        return InvalidParametersError([_fault(fault) for fault in error.errors()])
    if isinstance(error, HTTPException) and error.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return _translate_routing(error.status_code)
    return LocalidadesError("Something went wrong; the service has logged the error.")


def _translate_routing(status: int) -> RequestError:
    """Turn what the router and the static files refuse into an error of ours."""
    if status == HTTPStatus.NOT_FOUND:
        return NotFoundError("There is nothing at this address.")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError()
    return RequestError("The service can't process the request as it was sent.")


def _fault(fault: Mapping[str, Any]) -> tuple[str, str]:
    """Return the parameter and the sentence of one of pydantic's errors, whose messages hold no input."""
    name = str(fault["loc"][-1])
    return plain_name(name), _UNKNOWN if fault["type"] == "extra_forbidden" else f"{fault['msg'].rstrip('.')}."


def plain_name(name: str) -> str:
    """Return a parameter's name if it can be shown as it is, else a word for it."""
    return name if _PLAIN_NAME.fullmatch(name) else "(a name that is not plain ASCII)"


def problem_type(error: type[LocalidadesError], root: str = "") -> str:
    """Return the address of a type of problem, which leads to what is said of it (`problem_types`)."""
    return f"{root}{PROBLEMS}#{error.slug}"


def problem_document(error: LocalidadesError, root: str = "") -> dict[str, object]:
    """Return an error as an answer shows it."""
    return {
        "type": problem_type(type(error), root),
        "title": error.title,
        "status": int(error.status),
        "detail": error.detail,
        **error.members,
    }
