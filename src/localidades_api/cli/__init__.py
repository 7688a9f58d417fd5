"""The command line: `commands` has the commands and their options; what the larger ones do has a module each.

A command imports what it needs when it runs, so that help and completion are fast.
"""

from localidades_api.cli.commands import app

__all__ = ["app"]
