from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from localidades_api.names.files.writer import build_index
from localidades_api.names.index import NameIndex
from localidades_api.names.places import IndexedPlace, Withdrawn


@pytest.fixture(scope="module")
def index_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., NameIndex]]:
    """Return a function that builds and opens an index of places, which is closed with the module."""
    with ExitStack() as stack:

        def index_of(*places: IndexedPlace, withdrawn: tuple[Withdrawn, ...] = ()) -> NameIndex:
            folder = tmp_path_factory.mktemp("index") / "names"
            build_index(folder, places, withdrawn)
            return stack.enter_context(closing(NameIndex(folder)))

        yield index_of
