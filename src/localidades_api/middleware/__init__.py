"""What stands between the server and routing: layers, each of which may answer itself or ask the one behind it.

A layer is an ASGI application that can also be asked for what is at hand: an answer that needs no waiting is written
without a task of its own (`protocol`, decision 0007).
"""

from fastapi import FastAPI

from localidades_api.middleware.cached_pages import FastPath
from localidades_api.middleware.concurrency_limit import Admission
from localidades_api.middleware.faults import LayerFaults
from localidades_api.middleware.interface import Layer
from localidades_api.middleware.management_port import OperationsPort
from localidades_api.middleware.proxy_headers import TrustedProxies
from localidades_api.middleware.rate_limit import RateLimit
from localidades_api.middleware.telemetry import Telemetry
from localidades_api.middleware.trusted_hosts import TrustedHosts
from localidades_api.settings import Settings


def put_layers_before(app: FastAPI, settings: Settings) -> Layer:
    """Return the outermost layer of those that the settings ask for."""
    layer: Layer = Admission(FastPath(app), max_in_flight=settings.max_in_flight, max_waiting=settings.max_waiting)
    if settings.rate_limit:
        layer = RateLimit(layer, settings.rate_limit)
    if settings.trusted_hosts:
        layer = TrustedHosts(layer, settings.trusted_hosts)
    if settings.trusted_proxies:
        layer = TrustedProxies(layer, settings.trusted_proxies)
    if settings.operations_port is not None:
        layer = OperationsPort(layer, settings.operations_port)
    return Telemetry(LayerFaults(layer), app, settings)


__all__ = ["Layer", "put_layers_before"]
