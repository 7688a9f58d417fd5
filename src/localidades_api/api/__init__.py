"""The routes: those under /api/census (`census`), and the pages, files and probes beside them (`site`)."""

from localidades_api.api.services import Services

__all__ = ["Services"]
