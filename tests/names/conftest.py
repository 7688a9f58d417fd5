from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace, Withdrawn
from localidades_api.names.writer import build_index


@pytest.fixture
def index_of(tmp_path: Path) -> Iterator[Callable[..., NameIndex]]:
    """Return a function that builds and opens an index of places, which is closed with the test."""
    with ExitStack() as stack:

        def index_of(*places: IndexedPlace, withdrawn: tuple[Withdrawn, ...] = ()) -> NameIndex:
            folder = tmp_path / f"names-{sum(1 for _ in tmp_path.iterdir())}"
            build_index(folder, places, withdrawn)
            return stack.enter_context(closing(NameIndex(folder)))

        yield index_of
