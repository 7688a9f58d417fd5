"""Offers operations of the API to assistants as tools of the Model Context Protocol, over stdin and stdout."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic_core import from_json, to_json

from localidades_api import __version__
from localidades_api.client.network import NetworkSettingsError, open_client
from localidades_api.errors import CommandError

_TIMEOUT = 60.0  # seconds to wait for each byte
_INSTRUCTIONS = (
    "The official catalogue of Mexico's localities, municipios and estados (INEGI). A key (`cvegeo`) is text with"
    " leading zeros: nine digits for a locality, five for a municipio, two for an estado; an `id` is the same key read"
    " as a number. Never guess a key: look it up with `match_localities` or `suggest_localities`. Many places share a"
    " name, so give the municipio or the estado whenever you know them. Rely on an outcome `exact` or `sure`; if it is"
    " `ambiguous`, ask the user to choose among the `candidates`. Wherever you show the data, credit INEGI."
)
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
# Operations that are tools, with their parameters; an operation with a body takes its members too.
_OPERATIONS: Mapping[str, Sequence[str]] = {
    "match_localities": ("kind", "fields", "release"),
    "suggest_localities": ("q", "kind", "estado_id", "municipio_id", "limit", "release"),
    "get_locality": ("id", "release"),
    "get_municipality": ("id", "release"),
    "get_state": ("id", "release"),
    "list_nearest_localities": ("lat", "lon", "limit", "release"),
    "get_municipality_at_point": ("lat", "lon", "release"),
    "list_releases": ("page",),
    "list_changes": ("name", "since", "change", "estado_id", "page"),
}


class OperationTool:
    """An operation of the OpenAPI document as a tool."""

    def __init__(self, method: str, path: str, operation: Mapping[str, Any]) -> None:
        self._method = method.upper()
        self._path = path
        body = operation.get("requestBody", {"content": {}})["content"].get("application/json", {"schema": {}})
        self._members: Mapping[str, Any] = body["schema"].get("properties", {})
        self._required = [*body["schema"].get("required", ())]
        parameters = {}
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in _OPERATIONS[operation["operationId"]]:
                parameters[parameter["name"]] = {**parameter["schema"], "description": parameter["description"]}
                self._required += [parameter["name"]] * parameter["required"]
        self.tool = Tool(
            name=operation["operationId"],
            title=operation["summary"],
            description=operation["description"],
            input_schema={
                "type": "object",
                "properties": {**self._members, **parameters},
                "required": self._required,
                "additionalProperties": False,
            },
            annotations=_READ_ONLY,
        )

    def call(self, client: httpx.Client, arguments: Mapping[str, Any]) -> CallToolResult:
        """Send the request; the result has the content of the response, or what is wrong with the request."""
        if missing := [name for name in self._required if name not in arguments]:
            return _refuse(f"Missing: {', '.join(missing)}.")
        body = {name: arguments[name] for name in self._members if name in arguments} or None
        query = {name: str(arguments[name]) for name in arguments if name not in self._members}
        in_path = {name: quote(query.pop(name), safe="") for name in [*query] if f"{{{name}}}" in self._path}
        try:
            # A key with its leading zero is redirected to the key without.
            response = client.request(
                self._method,
                self._path.format(**in_path),
                params=query,
                json=body,
                headers={"Accept": "application/json"},
                follow_redirects=True,
            )
            content = from_json(response.content)
        except (httpx.HTTPError, httpx.InvalidURL):
            return _refuse(
                f"The service at {client.base_url} can't be reached: start it with `localidades-api serve`, or set"
                " `--url` to another."
            )
        except ValueError:
            return _refuse(f"{client.base_url} is not a localidades-api service: check `--url`.")
        if response.is_error:
            return _refuse(response.text)
        answer = {"release": response.headers.get("catalogue-release"), **content}
        return CallToolResult(content=[_text(to_json(answer).decode())], structured_content=answer)


def _refuse(sentence: str) -> CallToolResult:
    return CallToolResult(content=[_text(sentence)], is_error=True)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _connect(url: str) -> httpx.Client:
    """Open a client of the service at an address; raise CommandError if it, or a proxy's setting, can't be used."""
    try:
        address = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError):
        address = httpx.URL()
    if address.scheme not in {"http", "https"} or not address.host or address.query or address.fragment:
        raise CommandError("--url must be the root address of a service, such as http://127.0.0.1:8000.")
    root = address.copy_with(username=None, password=None)  # messages show it
    auth = (address.username, address.password) if address.username else None
    headers = {"Accept-Encoding": "identity"}  # compressed bodies can expand to any size
    try:
        return open_client(base_url=root, auth=auth, headers=headers, timeout=_TIMEOUT)
    except NetworkSettingsError as error:
        raise CommandError(str(error)) from error


def serve_tools(url: str, document: Mapping[str, Any]) -> None:
    """Serve an assistant on stdin and stdout with the service at `url`, until it closes stdin."""
    operations = [
        OperationTool(method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if operation["operationId"] in _OPERATIONS
    ]
    by_name = {operation.tool.name: operation for operation in operations}

    async def list_tools(_: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG001
        return ListToolsResult(tools=[by_name[name].tool for name in _OPERATIONS if name in by_name])

    async def call_tool(_: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        if (operation := by_name.get(params.name)) is None:
            return _refuse(f"There is no tool {params.name}.")
        return await asyncio.to_thread(operation.call, client, params.arguments or {})

    server = Server(
        "localidades-api",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )

    async def serve() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    with _connect(url) as client:
        asyncio.run(serve())
