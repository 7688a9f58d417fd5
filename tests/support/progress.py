"""An observer of imports and retirements that looks away."""

from localidades_api.observability.progress import Step


class Silent:
    """The observer of what nobody watches."""

    def begin(self, step: Step) -> None:
        """Ignore it."""

    def expect(self, amount: int) -> None:
        """Ignore it."""

    def advance(self, amount: int) -> None:
        """Ignore it."""
