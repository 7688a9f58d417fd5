"""Where the API lives, and the keys under which a request's scope says more than ASGI does."""

from starlette.types import Scope

PREFIX = "/api/census"
LOCALIDADES = f"{PREFIX}/localidades/"
_BELOW = f"{PREFIX}/"

OPERATION = "localidades.operation"  # once it is known: the name of the function that answers
WITH_BODY = "localidades.with_body"  # False for a HEAD, which need not make what is not sent


def is_api(scope: Scope) -> bool:
    """Tell whether a request is for something of the census."""
    path: str = scope["path"]
    return path.startswith(_BELOW) or path == PREFIX
