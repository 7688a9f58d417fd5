"""What stands between the server and routing: layers, each of which may answer itself or ask the one behind it.

A layer is an ASGI application that can also be asked for what is at hand: an answer that needs no waiting is written
without a task of its own (`protocol`, decision 0007).
"""

from fastapi import FastAPI

from localidades_api.middleware.cached_pages import CachedPages
from localidades_api.middleware.concurrency_limit import ConcurrencyLimit
from localidades_api.middleware.faults import MiddlewareFaults
from localidades_api.middleware.interface import Middleware
from localidades_api.middleware.management_port import ManagementPort
from localidades_api.middleware.proxy_headers import ProxyHeaders
from localidades_api.middleware.rate_limit import RateLimit
from localidades_api.middleware.telemetry import Telemetry
from localidades_api.middleware.trusted_hosts import TrustedHosts
from localidades_api.settings import Settings


def build_middleware_stack(app: FastAPI, settings: Settings) -> Middleware:
    """Return the outermost layer of those that the settings ask for."""
    layer: Middleware = ConcurrencyLimit(
        CachedPages(app), max_in_flight=settings.max_in_flight, max_queued=settings.max_queued
    )
    if settings.rate_limit:
        layer = RateLimit(layer, settings.rate_limit)
    if settings.trusted_hosts:
        layer = TrustedHosts(layer, settings.trusted_hosts)
    if settings.trusted_proxies:
        layer = ProxyHeaders(layer, settings.trusted_proxies)
    if settings.management_port is not None:
        layer = ManagementPort(layer, settings.management_port)
    return Telemetry(MiddlewareFaults(layer), app, settings)


__all__ = ["Middleware", "build_middleware_stack"]
