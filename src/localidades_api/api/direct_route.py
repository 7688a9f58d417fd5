"""Routes that read their parameters themselves; FastAPI declares and documents them."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Query
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.types import Receive, Scope, Send


class DirectRoute(APIRoute):
    """A route to a function of the request, the parameters in its path, a model of its query, and dependencies.

    A dependency is a plain function of the request. FastAPI's own way from a route to its function also takes bodies,
    dependencies that wait, and what has to be closed afterwards, which costs a fifth of a request
    (docs/decisions/tree.md).
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401  # FastAPI's
        super().__init__(path, endpoint, **options)
        self._checks = [_function_of(one) for one in self.dependencies]
        self._dependencies: dict[str, Callable[[Request], Any]] = {}
        self._path: dict[str, TypeAdapter[Any]] = {}
        self._query: tuple[str, TypeAdapter[Any]] | None = None
        for name, hint in get_type_hints(endpoint, include_extras=True).items():
            marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
            if name == "return":
                continue
            if hint is Request:
                self._dependencies[name] = lambda request: request
            elif depends := next((mark for mark in marks if isinstance(mark, Depends)), None):
                self._dependencies[name] = _function_of(depends)
            elif any(isinstance(mark, Query) for mark in marks):
                self._query = name, TypeAdapter(hint)
            else:
                self._path[name] = TypeAdapter(hint)
        if not self._path.keys() <= self.param_convertors.keys():
            raise TypeError(f"{endpoint.__name__} takes parameters that are not in its path, {path}")

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the function with its parameters, and send the response that it returns."""
        request = Request(scope, receive, send)
        for check in self._checks:
            check(request)
        response = await self.endpoint(**self._read(request))
        await response(scope, receive, send)

    def _read(self, request: Request) -> dict[str, Any]:
        """Return what the function takes; raise RequestValidationError with everything that is wrong."""
        taken = {name: get(request) for name, get in self._dependencies.items()}
        faults: list[Any] = []
        for name, adapter in self._path.items():
            try:
                taken[name] = adapter.validate_python(request.path_params[name])
            except ValidationError as error:
                faults += _faults(error, "path", name)
        if self._query:
            name, adapter = self._query
            try:
                taken[name] = adapter.validate_python(dict(request.query_params.multi_items()))
            except ValidationError as error:
                faults += _faults(error, "query")
        if faults:
            raise RequestValidationError(faults)
        return taken


def _function_of(depends: Depends) -> Callable[[Request], Any]:
    assert depends.dependency  # noqa: S101  # FastAPI has set it
    if iscoroutinefunction(depends.dependency):
        raise TypeError(f"{depends.dependency.__name__} is a coroutine: a dependency of a DirectRoute can't wait")
    return depends.dependency


def _faults(error: ValidationError, *place: str) -> list[dict[str, Any]]:
    return [{**fault, "loc": (*place, *fault["loc"])} for fault in error.errors(include_url=False)]
