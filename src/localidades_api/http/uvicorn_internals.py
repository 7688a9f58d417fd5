"""Everything undocumented that this project uses of uvicorn, and the version it was tested with (decision 0020)."""

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.config import STARTUP_FAILURE
from uvicorn.middleware.proxy_headers import _TrustedHosts as TrustedHosts
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState
from uvicorn.supervisors import Multiprocess

from localidades_api.errors import ConfigurationError

TESTED = "0.54"  # the bound in pyproject.toml


def check_version(installed: str = uvicorn.__version__) -> None:
    """Raise ConfigurationError for another minor version of uvicorn, whose internals may differ."""
    if not installed.startswith(f"{TESTED}."):
        raise ConfigurationError(
            f"uvicorn {installed} is installed, but localidades-api is tested only with {TESTED}:"
            f" pip install 'uvicorn=={TESTED}.*'."
        )


__all__ = [
    "STARTUP_FAILURE",
    "STATUS_LINE",
    "ASGI3Application",
    "HttpToolsProtocol",
    "Multiprocess",
    "RequestResponseCycle",
    "ServerState",
    "TrustedHosts",
    "check_version",
]
