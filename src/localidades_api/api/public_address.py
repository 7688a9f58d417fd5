"""The service's own address, in what leaves it: canonical links, and files for crawlers."""

import hashlib

from fastapi import Request

from localidades_api.http.paths import root_of


def public_url(request: Request) -> str | None:
    """Return the address that the operator has set, without a final slash."""
    url: str | None = request.app.state.public_url
    return url


def requested_base(request: Request) -> str:
    """Return the address of the service as it was requested, without a final slash.

    `request.base_url` is that of the application that the service is mounted in.
    """
    return str(request.base_url.replace(path=root_of(request.scope)))


def base_of(request: Request) -> str:
    """Return the address that the operator has set, or else the one that was requested."""
    return public_url(request) or requested_base(request)


def public_variant(request: Request) -> str:
    """Return what to add to the ETag of a response that has the address that the operator has set."""
    url = public_url(request)
    return f".{hashlib.blake2b(url.encode(), digest_size=3).hexdigest()}" if url else ""
