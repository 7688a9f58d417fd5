"""The paths of the service, and the keys that it adds to the ASGI scope."""

from collections.abc import MutableMapping
from typing import Any

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Scope

PREFIX = "/api/census"
LOCALIDADES = f"{PREFIX}/localidades/"
MATCH = f"{LOCALIDADES}match/"
NEAREST = f"{LOCALIDADES}nearest/"
MATCH_PAGE = "/match"  # below the service's root, as the next
MAP_PAGE = "/map"
HELP = "/help"
PICTURES = f"{HELP}/pictures"  # of the guides
STATIC = "/static"


class _DigitsConvertor(Convertor[str]):
    """A path parameter of digits, as in `{id:digits}`; a word at the same place belongs to another route."""

    regex = "[0-9]+"

    def convert(self, value: str) -> str:
        """Return the digits; pydantic reads the number, within its bounds."""
        return value

    def to_string(self, value: object) -> str:
        """Return the digits for an address."""
        return str(value)


register_url_convertor("digits", _DigitsConvertor())

ROOT = "localidades.root"  # the path prefix of the service, as the middleware found it
OPERATION = "localidades.operation"  # name of the path operation, set where routing did not find it
REQUEST_ID = "localidades.request_id"
WITH_BODY = "localidades.with_body"  # False for HEAD: the body is not sent, so it need not be made


def root_of(scope: Scope) -> str:
    """Return the path prefix of the service: that of a proxy, and that of the application it is mounted in.

    Within a mount of the service's own, such as `/static`, `root_path` includes that of the mount.
    """
    root: str = scope.get(ROOT, scope.get("root_path", ""))
    return root


def path_of(scope: Scope) -> str:
    """Return the path of a request below the service's root."""
    path: str = scope["path"]
    return path.removeprefix(root_of(scope))


def is_census(scope: Scope) -> bool:
    """Return whether the path of a request is under `/api/census`."""
    path = path_of(scope)
    return path.startswith(f"{PREFIX}/") or path == PREFIX


def operation_of(scope: MutableMapping[str, Any]) -> str:
    """Return the name of the function that responded, `static`, or `none` for any unknown path."""
    if name := scope.get(OPERATION):
        return str(name)
    if "route" in scope:
        return str(scope["route"].name)
    return "static" if "endpoint" in scope else "none"
