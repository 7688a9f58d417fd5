"""INEGI's web service wscatgeo, so that programs written for it need only another address (docs/guides/wscatgeo.md)."""

from localidades_api.api.extension import Extension
from localidades_api.extensions.wscatgeo.router import WSCATGEO, router

EXTENSION = Extension(router, WSCATGEO)
