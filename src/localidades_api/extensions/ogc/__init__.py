"""OGC API - Features (docs/decisions/ogc.md)."""

from localidades_api.api.extension import Extension
from localidades_api.extensions.ogc.router import DEFINITION, OGC, router

EXTENSION = Extension(
    router,
    f"{OGC}/",
    definition=(f"{{base}}{OGC}/api", DEFINITION),
    link="layers for QGIS, GDAL and ArcGIS (OGC API)",
    summary=f"- [OGC API - Features]({{base}}{OGC}/): for QGIS and GDAL",
)
