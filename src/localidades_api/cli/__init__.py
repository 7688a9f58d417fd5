"""The command line: `commands` defines the commands and their options; each larger one has its own module.

Commands import what they need when they run, which keeps help and completion fast.
"""

from localidades_api.cli.commands import app

__all__ = ["app"]
