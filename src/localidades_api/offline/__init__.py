"""INEGI's catalogue without a server: `Catalogue.open("catun_localidad.zip")` for programs and notebooks."""

from localidades_api.offline.catalogue import Catalogue

__all__ = ["Catalogue"]
