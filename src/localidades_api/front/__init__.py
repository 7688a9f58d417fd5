"""What stands between the server and routing: layers, each of which may answer itself or ask the one behind it.

A layer is an ASGI application that can also be asked for what is at hand: an answer that needs no waiting is written
without a task of its own (`protocol`, decision 0007).
"""

from fastapi import FastAPI

from localidades_api.fast_path import FastPath
from localidades_api.front.layers import Layer
from localidades_api.settings import Settings


def put_layers_before(app: FastAPI, settings: Settings) -> Layer:  # noqa: ARG001  # the layers to come are chosen by them
    """Return the outermost layer of those that the settings ask for."""
    return FastPath(app)


__all__ = ["Layer", "put_layers_before"]
