"""The catalogue as tools for assistants (Model Context Protocol), over stdin and stdout."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ValidationError

from localidades_api import __version__
from localidades_api.catalogue.messages import describe_fault, describe_place
from localidades_api.cli.assistant.tools import CatalogueTools
from localidades_api.cli.service import Service

_TIMEOUT = 60.0  # seconds without a byte
_INSTRUCTIONS = (
    "The official catalogue of Mexico's localities, municipios and estados (INEGI). A key (cvegeo) is text with leading"
    " zeros: nine digits for a locality, five for a municipio, two for an estado. Never guess a key: look it up with"
    " `match` or `find`. Many places share a name, so give the municipio or the estado whenever you know them, and ask"
    " the user if the outcome is `ambiguous`. Wherever you show the data, credit INEGI."
)
_MAX_FAULTS = 10  # told at once
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def serve_tools(service: Service) -> None:
    """Answer the assistant on stdin until it closes it."""
    with service.connect(_TIMEOUT) as client:
        build_server(CatalogueTools(service, client)).run("stdio")


class _Server(MCPServer):
    """Tells what is wrong with the arguments of a call in sentences of this service."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; raise ToolError."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            faults = error.__cause__.errors(include_url=False)[:_MAX_FAULTS]
            said = [f"{describe_place(fault['loc'])}: {describe_fault(fault)}" for fault in faults]
            raise ToolError(" ".join(said)) from error.__cause__


def build_server(catalogue: CatalogueTools) -> MCPServer:
    """Return a server with the tools."""
    server = _Server("localidades-api", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    for tool in (catalogue.match, catalogue.find, catalogue.record, catalogue.nearest, catalogue.changes):
        server.add_tool(tool, annotations=_READ_ONLY, structured_output=True)
    return server
