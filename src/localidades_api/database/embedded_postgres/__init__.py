"""A private Postgres in a folder, used when no database is configured.

All processes that use the folder share one server, which runs until the last of them ends (`watchdog`).

    cluster-18/    the data; another major version gets another folder
    run/           the socket, elsewhere if its path is too long; the server listens on no network
    postgres.log   the log of server and watchdog
    users.lock     held shared by each user, and exclusively by a watchdog that stops the server
    start.lock     held by the process that starts the server
    watchdog.lock  held by the watchdog
    postgres-18.6/ a copy of the binaries, if the server's user can't read root's
    *.partial      unfinished; the next start removes it
"""

from collections.abc import Iterator
from contextlib import contextmanager

from localidades_api.database.embedded_postgres.binaries import find_binaries, forget_client_variables
from localidades_api.database.embedded_postgres.postgres_process import run_embedded
from localidades_api.settings import Settings

__all__ = ["find_binaries", "provide_database", "run_embedded"]


@contextmanager
def provide_database(settings: Settings) -> Iterator[str]:
    """Yield the address of the configured database, or of an embedded one that runs until the end."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    forget_client_variables()
    with run_embedded(settings.data_dir, settings.postgres_bin, shutdown_timeout=settings.shutdown_timeout) as url:
        yield url
