"""The command that gives assistants the catalogue as tools (Model Context Protocol)."""

from typing import Annotated

import typer

from localidades_api.cli.errors import errors_as_sentences
from localidades_api.errors import ConfigurationError


def mcp(
    url: Annotated[str, typer.Option(help="Root address of the running service that answers.")] = (
        "http://127.0.0.1:8000"
    ),
) -> None:
    """Offer a running service's catalogue to an assistant as tools, over stdin and stdout."""
    with errors_as_sentences():
        from localidades_api.cli.service import Service  # noqa: PLC0415  # imported when it runs

        service = Service.parse(url, None)
        try:
            from localidades_api.cli.assistant import serve_tools  # noqa: PLC0415  # needs an extra
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "This command needs the extra `mcp`: run `pip install '.[mcp]'` in a clone."
            ) from error
        serve_tools(service)
