"""A private Postgres in a folder, for whoever has configured none.

Everybody who uses the folder's server shares it, and it runs for as long as one of them does: see `watchdog`. A service
starts it again when it dies: see `restart`.

    cluster-18/    the data; another major version gets another folder
    run/           the socket, elsewhere if its path is too long; nothing listens on a network
    postgres.log   what server and watchdog say
    users.lock     held shared by each user, and exclusively by a watchdog that stops the server
    start.lock     held by the one who starts the server
    watchdog.lock    held by the watchdog
    postgres-18.6/ a copy of the binaries, where root's are closed to the server's user
    *.partial      something unfinished: the next start removes it
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from localidades_api.embedded.binaries import find_binaries
from localidades_api.embedded.postgres_process import run_embedded
from localidades_api.embedded.restart import restarted_when_dead
from localidades_api.settings import Settings

__all__ = ["find_binaries", "provide_database", "run_embedded"]


@contextmanager
def provide_database(settings: Settings, *, watch: bool = False) -> Iterator[str]:
    """Yield the address of the configured database, or of an embedded one that runs meanwhile.

    With `watch`, which is for what runs for long, the embedded one is started again whenever it dies.
    """
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    with ExitStack() as stack:
        place = (settings.data_dir, settings.postgres_bin)
        url = stack.enter_context(run_embedded(*place, shutdown_timeout=settings.shutdown_timeout))
        if watch:
            stack.enter_context(restarted_when_dead(*place, settings.shutdown_timeout))
        yield url
