"""Reads the methods, the guards and the added middleware of an application, again when it has other routes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from re import Pattern
from typing import Any, Self

from fastapi import FastAPI
from fastapi.params import Depends
from fastapi.routing import iter_route_contexts
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.httpsredirect import HTTPSRedirectMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Scope

from localidades_api.http.paths import path_of

_PACKAGE = __name__.partition(".")[0]
# Middleware that gives every client the same answer.
_FOR_ALL: frozenset[object] = frozenset(
    {CORSMiddleware, GZipMiddleware, HTTPSRedirectMiddleware, TrustedHostMiddleware}
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")  # in the order in which Allow lists them


@dataclass(frozen=True, slots=True)
class RouteTable:
    """The routes of an application and its added middleware."""

    count: int  # of the routes that it was built from
    methods: Sequence[tuple[Pattern[str], str]]  # of resources with other methods than GET
    guarded: frozenset[Callable[..., Any] | None]  # route functions behind added dependencies
    has_cors: bool  # CORSMiddleware was added
    is_private: bool  # middleware was added that may decide who gets an answer

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Return the table of the application that handles a request."""
        app = scope["app"]
        table: Self | None = getattr(app.state, "route_table", None)
        if table is None or table.count != len(app.routes):
            table = app.state.route_table = cls.build(app)
        return table

    @classmethod
    def build(cls, app: FastAPI) -> Self:
        """Read the routes of an application."""
        patterns: dict[str, set[Pattern[str]]] = defaultdict(set)  # by path; one without its slash is the same resource
        methods: dict[str, set[str]] = defaultdict(set)
        guarded: set[Callable[..., Any] | None] = set()
        for route in iter_route_contexts(app.routes):
            if route.methods:
                path = str(route.path_format).rstrip("/")
                patterns[path].add(route.path_regex)
                methods[path] |= route.methods
            if not all(_is_own(depends) for depends in getattr(route, "dependencies", ())):
                guarded.add(route.endpoint)
        listed = [
            (pattern, write_methods(allowed))
            for path, allowed in methods.items()
            if not allowed <= {"GET", "HEAD"}
            for pattern in patterns[path]
        ]
        middleware: list[object] = [entry.cls for entry in app.user_middleware]
        added = {cls for cls in middleware if not str(getattr(cls, "__module__", "")).startswith(f"{_PACKAGE}.")}
        is_private = not (added <= _FOR_ALL if app.state.is_public is None else app.state.is_public)
        return cls(len(app.routes), listed, frozenset(guarded), CORSMiddleware in added, is_private)


def _is_own(depends: Depends) -> bool:
    return getattr(depends.dependency, "__module__", "").startswith(f"{_PACKAGE}.")


def write_methods(methods: Iterable[str]) -> str:
    """Return methods in the order of Allow; OPTIONS, which every path answers, only beside others than GET."""
    known = {method.upper() for method in methods}
    listed = [method for method in _METHODS if method in known]
    return ", ".join(listed if listed == ["GET"] else [*listed, "OPTIONS"])


def allowed_methods(scope: Scope) -> str:
    """Return the methods of the resource at a request's path for Allow; GET includes HEAD."""
    path = path_of(scope)
    return next((methods for pattern, methods in RouteTable.of(scope).methods if pattern.match(path)), "GET")


def is_guarded(scope: Scope) -> bool:
    """Return whether an added dependency decides who gets the answer to a request."""
    return scope.get("endpoint") in RouteTable.of(scope).guarded
