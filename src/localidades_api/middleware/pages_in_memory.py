"""Tells requests for pages that are in memory from those that may wait for the database."""

from urllib.parse import parse_qsl

from fastapi import FastAPI
from starlette.types import Scope

from localidades_api.api import Services
from localidades_api.http.paths import LOCALIDADES

_MAX_QUERY = 200  # bytes; no plain query is longer


class PagesInMemory:
    """The pages of the served release that are in the page cache, so that routing answers them without the database."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def has(self, scope: Scope) -> bool:
        """Tell whether a request is plainly for such a page as JSON; False for any that is not recognized."""
        if scope["path"] != LOCALIDADES or scope["method"] != "GET" or len(scope["query_string"]) > _MAX_QUERY:
            return False
        if any(name == b"accept" and b"html" in value for name, value in scope["headers"]):
            return False
        services: Services = self._app.state.services
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        served, page = services.releases.served, query.pop("page", "1")
        if served is None or query.items() - {("format", "json"), ("release", served.name)} or not page.isdecimal():
            return False
        held = services.pages.held(served)
        return held is not None and 0 < int(page) < len(held.pages) and held.pages[int(page)] is not None
