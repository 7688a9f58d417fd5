"""The command that gives assistants tools."""

from typing import Annotated

import typer

from localidades_api.errors import ConfigurationError


def mcp(
    url: Annotated[str, typer.Option(help="Root address of the running service to query.")] = "http://127.0.0.1:8000",
) -> None:
    """Give an assistant tools to query a running service, over stdin and stdout (Model Context Protocol)."""
    try:
        from localidades_api.extensions.mcp.tools import serve_tools  # needs an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "This command needs the extra `mcp`: run `pip install '.[mcp]'` in a clone."
        ) from error
    from localidades_api.app import create_app

    serve_tools(url, create_app().openapi())
