"""The index of the made-up names: built once a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localidades_api.search.index import NameIndex
from tests.support.names import open_index


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameIndex]:
    """Lend the index of `tests.support.names`."""
    folder: Path = tmp_path_factory.mktemp("bulk")
    opened = open_index(folder)
    yield opened
    opened.close()
