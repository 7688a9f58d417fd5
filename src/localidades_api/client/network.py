"""Opens HTTP clients; httpx takes proxies and certificates from the environment.

Like `client`, this module imports nothing of the service.
"""

from collections.abc import Mapping
from typing import Any

import httpx

# Hosts that are asked directly, whatever proxy the environment names.
_DIRECT: Mapping[str, None] = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}


class NetworkSettingsError(Exception):
    """The proxies or certificates that the environment names can't be used; the text has no password."""


def open_client(**options: Any) -> httpx.Client:  # noqa: ANN401  # those of httpx
    """Open a client; raise NetworkSettingsError."""
    try:
        return httpx.Client(mounts=_DIRECT, **options)
    except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:
        # That of an address may quote a part of its password.
        reason = "an address is not valid" if isinstance(error, httpx.InvalidURL) else error
        raise NetworkSettingsError(
            f"The proxies or certificates that the environment names can't be used ({reason}): check HTTP_PROXY,"
            " HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE."
        ) from None
