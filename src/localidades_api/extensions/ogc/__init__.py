"""OGC API - Features, which QGIS, GDAL and ArcGIS read. It has rules of its own, so its paths have an OpenAPI document.

`next` leads to the page after a position, as ours do; `startindex` and `offset` are for ArcGIS, and another release may
shift them.
"""

from localidades_api.api.extension import Extension
from localidades_api.extensions.ogc.router import OGC, router

EXTENSION = Extension(
    router,
    f"{OGC}/",
    link="layers for QGIS, GDAL and ArcGIS (OGC API)",
    municipios=f"{OGC}/collections/municipios/items",
)
