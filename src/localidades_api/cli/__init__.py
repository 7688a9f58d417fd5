"""The command line: `commands` defines the commands and their options; each larger one has its own module."""

from localidades_api.cli.commands import app

__all__ = ["app"]
