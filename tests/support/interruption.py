"""Ctrl-C where Python drops it."""

import signal
import weakref


class _Thing:
    pass


def interrupt_within_callback() -> None:
    """Raise SIGINT in a callback of a weak reference; Python prints and drops what is raised there."""
    thing = _Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
    del thing
    assert reference() is None
