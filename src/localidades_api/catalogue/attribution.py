"""The origin of the data, and the credit that INEGI's terms of free use require."""

from collections.abc import Mapping
from typing import Literal

CATALOGUE = "Catálogo Único de Claves de Áreas Geoestadísticas Estatales, Municipales y Localidades"
ORIGIN = "https://www.inegi.org.mx/app/ageeml/"
TERMS = "https://www.inegi.org.mx/inegi/terminos.html"

REARRANGED = "Rearranged by this service, which INEGI does not endorse."
_REARRANGED: Mapping[str, str] = {
    "en": REARRANGED,
    "es": "Datos reorganizados por este servicio, que el INEGI no avala.",
}
_INVENTED: Mapping[str, str] = {
    "en": "Demo: the municipios and localities are invented; they are not INEGI data.",
    "es": "Demostración: los municipios y las localidades son inventados; no son datos del INEGI.",
}


def cite(release: str) -> str:
    """Return the citation of a release, in Spanish in every language."""
    return f"Fuente: INEGI, {CATALOGUE} ({release})."


def credit(release: str, language: Literal["en", "es"], *, is_demo: bool) -> str:
    """Return the credit to show with the data of a release; files have it in Spanish, answers in English."""
    return _INVENTED[language] if is_demo else f"{cite(release)} {_REARRANGED[language]}"
