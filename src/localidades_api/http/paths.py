"""The paths of the API, and the keys that this service adds to the ASGI scope."""

from starlette.types import Scope

PREFIX = "/api/census"
LOCALIDADES = f"{PREFIX}/localidades/"
_BELOW = f"{PREFIX}/"

OPERATION = "localidades.operation"  # name of the path operation, set once it is known
WITH_BODY = "localidades.with_body"  # False for HEAD, so that a body that is not sent need not be made


def is_api(scope: Scope) -> bool:
    """Return whether a request is for a path of the API."""
    path: str = scope["path"]
    return path.startswith(_BELOW) or path == PREFIX
