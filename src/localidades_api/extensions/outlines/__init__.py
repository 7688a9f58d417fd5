"""Outlines of municipios, and the municipio of a point (docs/guides/outlines.md)."""

from localidades_api.api.extension import Extension
from localidades_api.extensions.outlines.queries import BORDERS
from localidades_api.extensions.outlines.router import TAG, router

EXTENSION = Extension(
    router,
    tags=({"name": TAG, "description": "The municipio of a point, and the outlines of municipios and estados."},),
    front_page="outlines/front_page.html",
    borders=BORDERS,
)
