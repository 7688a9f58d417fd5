"""The middleware between the server and routing: each may respond to a request or pass it on (`interface`)."""

from fastapi import FastAPI

from localidades_api.middleware.concurrency_limit import ConcurrencyLimit
from localidades_api.middleware.exceptions import MiddlewareExceptions
from localidades_api.middleware.interface import Middleware
from localidades_api.middleware.management_port import ManagementPort
from localidades_api.middleware.pages_in_memory import PagesInMemory
from localidades_api.middleware.proxy_headers import ProxyHeaders
from localidades_api.middleware.response_cache import MAX_BYTES, ResponseCache
from localidades_api.middleware.telemetry import Telemetry
from localidades_api.settings import Settings


def build_middleware_stack(app: FastAPI, settings: Settings) -> Middleware:
    """Build the middleware that the settings enable, from the inside out, and return the outermost."""
    cache = ResponseCache(app, MAX_BYTES if settings.page_cache_bytes else 0)
    stack: Middleware = ConcurrencyLimit(
        cache, PagesInMemory(app).has, max_in_flight=settings.max_in_flight, max_queued=settings.max_queued
    )
    if settings.trusted_proxies:
        stack = ProxyHeaders(stack, settings.trusted_proxies)
    if settings.management_port is not None:
        stack = ManagementPort(stack, settings.management_port)
    return Telemetry(MiddlewareExceptions(stack), settings)


__all__ = ["Middleware", "build_middleware_stack"]
