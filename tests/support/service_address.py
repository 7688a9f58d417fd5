"""The database URL and timeout of the tests' services.

The URL leads to Postgres, or to a pooler in front of it (`pytest --pooler MODE`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localidades_api.settings import Settings

DEFAULT_DATABASE_TIMEOUT: float = Settings.model_fields["database_timeout"].default
_LONG_DATABASE_TIMEOUT = 20.0  # seconds; a busy machine may stall for longer than the default

_ways: list[tuple[str, Callable[[str], str]]] = []


@contextmanager
def through(way: Callable[[str], str], server: str) -> Iterator[None]:
    """Replace the URLs of this server's databases for services."""
    _ways.append((server, way))
    try:
        yield
    finally:
        _ways.pop()


def service_address(url: str) -> str:
    """Return the database URL for a service."""
    for server, way in _ways:
        before, after = server.split("/localidades?")
        if url.startswith(f"{before}/") and url.endswith(after):
            return way(url)
    return url


def database_timeout(address: str) -> float:
    """Return the default database timeout of services and commands, in seconds; behind a pooler, the service's own."""
    return DEFAULT_DATABASE_TIMEOUT if "pgbouncer=true" in address else _LONG_DATABASE_TIMEOUT
