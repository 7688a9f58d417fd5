"""OGC API - Features, for QGIS, GDAL and ArcGIS. Its rules differ from the API's: it has a separate OpenAPI document.

`next` leads to the page after a position, as in other lists; `startindex` and `offset` are for ArcGIS, and another
release may shift them.
"""

from localidades_api.api.extension import Extension
from localidades_api.extensions.ogc.router import OGC, router

EXTENSION = Extension(
    router,
    f"{OGC}/",
    link="layers for QGIS, GDAL and ArcGIS (OGC API)",
    municipios=f"{OGC}/collections/municipios/items",
)
