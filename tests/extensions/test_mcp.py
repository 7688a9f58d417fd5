"""`localidades-api mcp` with the SDK's own client on stdin and stdout, and a real service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from tests.support.application import database_with
from tests.support.catalogue import TRAPS, many
from tests.support.commands import invoke
from tests.support.wire import COMMAND, environment, serving

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("record", {"cvegeo": "999999999"}, "Neither this release nor an earlier one has this key."),
    ("record", {"cvegeo": "1001"}, "A key has its leading zeros: nine digits, five for a municipio, two for"),
    ("changes", {"since": "2018/09"}, "The name of a release has up to 64 letters, digits, dots, hyphens"),
    ("match", {"rows": [{"nombre": "a"}] * 101}, "rows: Give 100 or fewer."),
    ("match", {"rows": [{"nombre": "a"}, {"estado": 5, "x": 1}]},
     "rows[1].nombre: It is required. rows[1].estado: Give a text. rows[1].x: There is no such member."),
    ("match", {"rows": ["Guadalajara"]}, "rows[0]: Give an object."),
    ("nearest", {"latitud": 91, "longitud": 0}, "latitud: Input should be less than or equal to 90."),
    ("nearest", {"latitud": "north", "longitud": 0}, "latitud: Give a number."),
    ("find", {"text": "a", "limit": 1000}, "limit: Input should be less than or equal to 20."),
    ("find", {"text": "a", "kind": "localidades"}, "kind: Did you mean `localidad`? This parameter takes: "),
]  # fmt: skip


@asynccontextmanager
async def assistant(url: str) -> AsyncIterator[Client]:
    """Yield a client of the command, which uses the service at a URL."""
    program, *arguments = COMMAND
    command = StdioServerParameters(command=program, args=[*arguments, "mcp", "--url", url], env=environment())
    async with Client(stdio_client(command)) as client:
        yield client


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the result of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


async def refused(client: Client, tool: str, **arguments: object) -> str:
    """Return the error message of a tool."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    [said] = result.content
    assert isinstance(said, TextContent)
    return said.text


async def test_tools_lead_from_a_name_to_its_record(live_server: str) -> None:
    async with assistant(live_server) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name: list(tool.input_schema["properties"]) for tool in tools} == {
            "match": ["rows"], "find": ["text", "kind", "limit"], "record": ["cvegeo"],
            "nearest": ["latitud", "longitud", "limit"], "changes": ["since", "kind", "page"],
        }  # fmt: skip
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
        assert "Never guess a key" in (client.instructions or "")

        rows = [{"nombre": TRAPS[0].nombre, "estado": "Ags."}, {"nombre": "Xyzzyqwert"}, {"nombre": "Ninguno"}]
        matches = await call(client, "match", rows=rows)
        first, second, third = matches["answers"]
        assert matches["release"] == "2020-01"
        assert (first["outcome"], first["cvegeo"]) == ("exact", "010010001")
        assert (second["outcome"], second["cvegeo"]) == ("none", None)
        assert [one["poblacion"] for one in (first, second, *third["candidates"])] == [863893, None, None, None]
        assert [one["latitud"] for one in (first, second, *third["candidates"])] == [21.880833, None, *[21.880833] * 2]
        assert {one["longitud"] for one in (first, *third["candidates"])} == {-102.296111}

        found = await call(client, "find", text="aguas", limit=3)
        assert [place["cvegeo"] for place in found["places"]][:2] == ["01", "010010001"]
        [place] = (await call(client, "find", text="aguas", kind="localidad", limit=1))["places"]
        assert place["cvegeo"] == "010010001"

        columns = (await call(client, "record", cvegeo="010010001"))["columns"]
        assert (columns["municipio_id"], columns["estado"]["nombre"]) == ("01001", "Aguascalientes")
        municipio = await call(client, "record", cvegeo="01001")
        assert municipio["columns"]["estado_id"] == "01"

        point = {"latitud": columns["latitud"], "longitud": columns["longitud"]}
        [nearest] = (await call(client, "nearest", **point, limit=1))["places"]
        assert (nearest["cvegeo"], nearest["metres"] < 1) == ("010010001", True)

        for name, arguments, said in REFUSED:
            answer = await refused(client, name, **arguments)
            assert said in answer, name
            assert "pydantic" not in answer
            assert "should match" not in answer  # followed by a regular expression


@pytest.mark.tail
async def test_changes_and_withdrawn_keys_are_reported(server: str, migrated: str) -> None:
    releases = {"2019-01": many(20), "2020-01": many(22), "2021-01": many(25)[1:]}
    with database_with(server, migrated, releases) as database, ExitStack() as services:
        live = services.enter_context(serving(database))
        async with assistant(live.base) as client:
            last = await call(client, "changes")
            assert (last["since"], last["release"], last["total"]) == ("2020-01", "2021-01", 4)
            assert all(len(one["cvegeo"]) == 9 for one in last["changes"])
            [removed] = (await call(client, "changes", kind="removed"))["changes"]
            assert (removed["before"], removed["after"]) == (many(1)[0].nombre, None)
            assert (await call(client, "changes", since="2019-01", kind="added"))["total"] == 5
            assert "There is no such release" in await refused(client, "changes", since="1999-01")
            gone = await refused(client, "record", cvegeo=removed["cvegeo"])
            assert "2020-01 is the last release that had it" in gone
            await asyncio.to_thread(services.close)
            said = await refused(client, "find", text="a")
            assert "can't be reached" in said
            assert "localidades-api serve" in said


def test_bad_url_is_refused() -> None:
    wrong = invoke("mcp", "--url", "nowhere")
    assert wrong.returncode == 1
    assert "--url must be the root address" in wrong.stderr
