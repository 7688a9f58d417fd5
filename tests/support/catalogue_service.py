"""Starts the service on files of a catalogue."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.application import import_file
from tests.support.postgres import new_database
from tests.support.wire import await_names, serving


@contextmanager
def serving_files(server: str, migrated: str, files: Iterable[Path]) -> Iterator[str]:
    """Yield the address of a service that has imported these files, in this order, and indexed their names."""
    with new_database(server, migrated) as url:
        for file in files:
            import_file(url, file)
        with serving(url) as live:
            await_names(live.base)
            yield live.base
