"""The paths of the API, the methods that they allow, and the keys that this service adds to the ASGI scope."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from starlette.types import Scope

PREFIX = "/api/census"
LOCALIDADES = f"{PREFIX}/localidades/"
MATCH = f"{LOCALIDADES}match/"
MANIFEST = f"{PREFIX}/manifest.json"  # of an export
NEAREST = f"{LOCALIDADES}nearest/"
RECONCILE = f"{PREFIX}/reconcile/"
WSCATGEO = "/wscatgeo/"
MATCH_PAGE = "/match"  # below the service's root, as the next
MAP_PAGE = "/map"
OGC = "/ogc"
_BELOW = f"{PREFIX}/"
_READ = "GET"
# The resources that take a body; everything else is read only. Clients keep the address as it was typed.
_ALLOWED: Mapping[str, str] = {
    path: allow
    for resource, allow in {
        MATCH: "POST, OPTIONS",
        NEAREST: "GET, POST, OPTIONS",
        RECONCILE: "GET, POST, OPTIONS",
    }.items()
    for path in (resource, resource.rstrip("/"))
}

OPERATION = "localidades.operation"  # name of the path operation, set once it is known
WITH_BODY = "localidades.with_body"  # False for HEAD, so that a body that is not sent need not be made


def path_of(scope: Scope) -> str:
    """Return the path of a request below the service's root."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def is_api(scope: Scope) -> bool:
    """Return whether a request is for a path of the API."""
    path = path_of(scope)
    return path.startswith(_BELOW) or path == PREFIX


def allowed(path: str) -> str:
    """Return the value of a resource's Allow header; HEAD goes with GET, unsaid."""
    return _ALLOWED.get(path, _READ)


def takes_body(scope: Scope) -> bool:
    """Return whether the body of a request is read; any other is discarded."""
    return scope["method"] == "POST" and scope["path"] in _ALLOWED


def operation_of(scope: MutableMapping[str, Any]) -> str:
    """Return the name of the function that responded, `static`, or `none` for any unknown path."""
    if name := scope.get(OPERATION):
        return str(name)
    if "route" in scope:
        return str(scope["route"].name)
    return "static" if "endpoint" in scope else "none"
