"""An observer of imports and retirements that looks away."""

import pytest

from localidades_api.errors import CatalogueError
from localidades_api.importer.source import open_source
from localidades_api.observability.progress import Step


class Silent:
    """The observer of what nobody watches."""

    def begin(self, step: Step) -> None:
        """Ignore it."""

    def expect(self, amount: int) -> None:
        """Ignore it."""

    def advance(self, amount: int) -> None:
        """Ignore it."""


def refusal_of(source: str) -> str:
    """Open a file or an address of a catalogue, and return the sentence that refuses it."""
    with pytest.raises(CatalogueError) as caught, open_source(source, Silent()):
        pass
    return str(caught.value)
