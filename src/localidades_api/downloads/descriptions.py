"""The origin of a file's records and the meaning of its columns, in Spanish, for formats that can hold them."""

from collections.abc import Mapping

from localidades_api.catalogue.locality import ATTRIBUTES
from localidades_api.catalogue.schemas import Release

ORIGIN = "https://www.inegi.org.mx/app/ageeml/"

MEANINGS: Mapping[str, str] = {
    "id": "Clave oficial leída como número; nunca cambia",
    "cvegeo": "Clave geoestadística (CVEGEO): nueve dígitos, con ceros a la izquierda",
    "clave": "Clave de la localidad en su municipio (CVE_LOC): cuatro dígitos",
    "nombre": "Nombre de la localidad, tal como lo publica el INEGI",
    **{name: one.meaning or one.label for name, one in ATTRIBUTES.items()},
    "municipio_id": "Clave del municipio, con la del estado, leída como número",
    "municipio_clave": "Clave del municipio en su estado: tres dígitos",
    "municipio": "Nombre del municipio",
    "estado_id": "Clave del estado leída como número",
    "estado_clave": "Clave del estado: dos dígitos",
    "estado": "Nombre del estado",
    "estado_abreviatura": "Abreviatura del nombre del estado",
    "cve_ent": "Clave del estado (CVE_ENT): dos dígitos, con ceros a la izquierda",
    "cve_mun": "Clave del municipio con la del estado (CVE_ENT, CVE_MUN): cinco dígitos, con ceros a la izquierda",
}


def credit(release: Release) -> str:
    """Return the credit that INEGI's terms of free use require."""
    if release.is_demo:
        return "Demostración: los municipios y las localidades son inventados; no son datos del INEGI."
    return (
        "Fuente: INEGI, Catálogo Único de Claves de Áreas Geoestadísticas Estatales, Municipales y Localidades"
        f" ({release.name}). Datos reordenados por este servicio, que el INEGI no avala."
    )
