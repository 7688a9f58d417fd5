"""Where a service of the tests finds its database, and how long it waits for it.

It is Postgres itself, or a pooler before it (`pytest --pooler MODE`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localidades_api.settings import Settings

DEFAULT_DATABASE_TIMEOUT: float = Settings.model_fields["database_timeout"].default
_LONG_DATABASE_TIMEOUT = 20.0  # seconds; a busy machine may stand still for longer than the default

_ways: list[tuple[str, Callable[[str], str]]] = []


@contextmanager
def through(way: Callable[[str], str], server: str) -> Iterator[None]:
    """Send services to another address in place of a database's of this server."""
    _ways.append((server, way))
    try:
        yield
    finally:
        _ways.pop()


def service_address(url: str) -> str:
    """Return the address to give to a service."""
    for server, way in _ways:
        before, after = server.split("/localidades?")
        if url.startswith(f"{before}/") and url.endswith(after):
            return way(url)
    return url


def database_timeout(address: str) -> float:
    """Return how many seconds a service or a command waits for the database at an address, unless a test sets it.

    Behind a pooler it is the default, for which tests have `localidades-api roles` set up a role.
    """
    return DEFAULT_DATABASE_TIMEOUT if "pgbouncer=true" in address else _LONG_DATABASE_TIMEOUT
