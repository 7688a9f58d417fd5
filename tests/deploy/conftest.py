"""A service on the demo, which the guides and their examples are tried on."""

from collections.abc import Iterator

import pytest

from tests.support.application import import_file
from tests.support.postgres import new_database
from tests.support.waiting import IS_MEASURED
from tests.support.wire import await_names, serving


@pytest.fixture(scope="module")
def demo_service(server: str, migrated: str) -> Iterator[str]:
    """Lend the address of the service on the demo, as `make run` starts it."""
    with new_database(server, migrated) as url:
        import_file(url, "demo")
        with serving(url) as live:
            if IS_MEASURED:  # a guide gives its reader's retries the time of a build that is not
                await_names(live)
            yield live.base
