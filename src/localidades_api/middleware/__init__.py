"""The middleware between the server and routing, from the outside in."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from localidades_api.middleware.concurrency_limit import ConcurrencyLimit
from localidades_api.middleware.management_port import ManagementPort
from localidades_api.middleware.pages_in_memory import PagesInMemory
from localidades_api.middleware.telemetry import Telemetry
from localidades_api.response_cache import CachedResponses
from localidades_api.settings import Settings


def build_middleware_stack(app: FastAPI, settings: Settings) -> ASGIApp:
    """Build the middleware that the settings enable, from the inside out, and return the outermost."""
    limit = ConcurrencyLimit(app, PagesInMemory(app).has, settings.max_in_flight)
    stack: ASGIApp = CachedResponses(limit)
    if settings.management_port is not None:
        stack = ManagementPort(stack, settings.management_port)
    return Telemetry(stack, settings)


__all__ = ["build_middleware_stack"]
