"""The routes of the application, as each request goes through them."""

from collections import Counter

from starlette.routing import Mount, Route

from localidades_api.api.ogc import OgcRoute
from localidades_api.api.routes import DirectRoute
from localidades_api.app import create_app
from localidades_api.settings import Settings


def test_routes_are_flat_and_each_is_there_once() -> None:
    """No route is reached through another, and none by FastAPI's own way from a route to its function."""
    routes = create_app(Settings(), in_background=False).routes
    assert {type(route) for route in routes} <= {DirectRoute, OgcRoute, Route, Mount}
    named = Counter((route.path, *sorted(route.methods or ())) for route in routes if isinstance(route, Route))
    assert set(named.values()) == {1}
