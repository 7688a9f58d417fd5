"""Outlines of municipios, and the municipio of a point (docs/guides/outlines.md)."""

from localidades_api.api.extension import Extension, Outlines
from localidades_api.extensions.outlines.queries import find_edition, find_geometries, find_touched
from localidades_api.extensions.outlines.router import AT, TAG, router

EXTENSION = Extension(
    router,
    AT,
    summary=f"- [Municipio of a point]({{base}}{AT}?lat=21.88&lon=-102.3): by the outlines of municipios",
    tags=({"name": TAG, "description": "The municipio of a point, and the outlines of municipios and estados."},),
    outlines=Outlines(find_edition, find_geometries, find_touched),
)
