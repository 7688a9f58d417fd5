"""`localidades-api mcp` with the SDK's own client on stdin and stdout, and a real service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from tests.extensions.outline_files import geojson, import_outlines_into, write
from tests.support.application import database_with
from tests.support.catalogue import TRAPS, many
from tests.support.commands import invoke
from tests.support.wire import COMMAND, environment, serving

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("get_locality", {"id": "999999999"}, "Neither this release nor an earlier one has this key."),
    ("get_locality", {}, "Missing: id."),
    ("list_changes", {"name": "2020-01", "since": "2018/09"}, "The name of a release has up to 64 letters"),
    ("match_localities", {"rows": "Guadalajara"}, "rows"),
    ("list_nearest_localities", {"lat": 91, "lon": 0}, "less than or equal to 90"),
    ("suggest_localities", {"q": "a", "nothing": 1}, "Unknown parameter"),
    ("get_municipality_at_point", {"lat": 21, "lon": -102}, "outlines"),
]


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
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {
            "match_localities", "suggest_localities", "get_locality", "get_municipality", "get_state",
            "list_nearest_localities", "get_municipality_at_point", "list_releases", "list_changes",
        }  # fmt: skip
        assert [*tools["match_localities"].input_schema["properties"]] == ["rows", "release", "kind", "fields"]
        assert [*tools["list_releases"].input_schema["properties"]] == ["page"]
        assert tools["match_localities"].input_schema["required"] == ["rows"]
        assert tools["list_changes"].input_schema["required"] == ["name", "since"]
        assert "#/components" not in str([tool.input_schema for tool in tools.values()])
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        assert "Never guess a key" in (client.instructions or "")

        rows = [{"nombre": TRAPS[0].nombre, "estado": "Ags."}, {"nombre": "Xyzzyqwert"}]
        matches = await call(client, "match_localities", rows=rows, fields="poblacion,latitud")
        first, second = matches["results"]
        assert matches["release"] == "2020-01"
        assert (first["outcome"], first["cvegeo"], first["poblacion"]) == ("exact", "010010001", 863893)
        assert (second["outcome"], second["cvegeo"]) == ("none", None)

        suggested = await call(client, "suggest_localities", q="aguas", kind="estado,localidad", limit=3)
        assert [place["cvegeo"] for place in suggested["results"]][:2] == ["01", "010010001"]

        locality = await call(client, "get_locality", id="010010001")  # with its zero
        assert (locality["cvegeo"], locality["estado"]["nombre"]) == ("010010001", "Aguascalientes")
        assert (await call(client, "get_municipality", id=1001))["estado_id"] == 1

        point = {"lat": locality["latitud"], "lon": locality["longitud"]}
        [nearest] = (await call(client, "list_nearest_localities", **point, limit=1))["results"]
        assert (nearest["id"], nearest["distancia"] < 1) == (10010001, True)

        for name, arguments, said in REFUSED:
            assert said in await refused(client, name, **arguments), name


@pytest.mark.tail
async def test_changes_withdrawn_keys_and_the_municipio_of_a_point_are_told(
    server: str, migrated: str, tmp_path: Path
) -> None:
    releases = {"2019-01": many(20), "2020-01": many(22), "2021-01": many(25)[1:]}
    with database_with(server, migrated, releases) as database, ExitStack() as services:
        await import_outlines_into(database, write(tmp_path, geojson(), "mgem.json"))
        live = services.enter_context(serving(database))
        async with assistant(live.base) as client:
            [municipio] = (await call(client, "get_municipality_at_point", lat=21.88, lon=-102.3))["results"]
            assert (municipio["cvegeo"], municipio["in_release"]) == ("01001", True)
            listed = [release["release"] for release in (await call(client, "list_releases"))["results"]]
            assert listed == ["2019-01", "2020-01", "2021-01"]
            between = {"name": "2021-01", "since": "2020-01"}
            last = await call(client, "list_changes", **between)
            assert (last["release"], last["quantity"]) == ("2021-01", 4)
            [removed] = (await call(client, "list_changes", **between, change="removed"))["results"]
            assert (removed["before"]["nombre"], removed["after"]) == (many(1)[0].nombre, None)
            assert "There is no such release" in await refused(client, "list_changes", name="2021-01", since="1999-01")
            gone = await refused(client, "get_locality", id=removed["id"])
            assert '"last_release":"2020-01"' in gone
            await asyncio.to_thread(services.close)
            said = await refused(client, "suggest_localities", q="a")
            assert "can't be reached" in said
            assert "localidades-api serve" in said


def test_bad_url_is_refused() -> None:
    wrong = invoke("mcp", "--url", "nowhere")
    assert wrong.returncode == 1
    assert "--url must be the root address" in wrong.stderr
