"""Offers the catalogue to assistants as tools of the Model Context Protocol, over stdin and stdout."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import httpx
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from localidades_api import __version__
from localidades_api.catalogue.keys import KIND_BY_DIGITS, KINDS, KeyOfPlace, NameOfRelease
from localidades_api.catalogue.messages import describe_fault, describe_place
from localidades_api.catalogue.pagination import MAX_PAGE_SIZE
from localidades_api.catalogue.schemas import ChangeKind
from localidades_api.http.paths import LOCALIDADES, MATCH, NEAREST, PREFIX
from localidades_api.http.service import Service

_TIMEOUT = 60.0  # seconds to wait for each byte
_INSTRUCTIONS = (
    "The official catalogue of Mexico's localities, municipios and estados (INEGI). A key (cvegeo) is text with leading"
    " zeros: nine digits for a locality, five for a municipio, two for an estado. Never guess a key: look it up with"
    " `match` or `find`. Many places share a name, so give the municipio or the estado whenever you know them, and ask"
    " the user if the outcome is `ambiguous`. Wherever you show the data, credit INEGI."
)
_MAX_FAULTS = 10  # in one message
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_MAX_BYTES = 2_000_000  # of a response: 100 rows with five candidates each take some 300 kB
_MAX_ROWS = 100

Key = Annotated[str, Field(description="Official key, with leading zeros.")]
Text = Annotated[str, Field(min_length=1, max_length=100)]


# -- Arguments and results; keys are text, with their leading zeros


class WrittenPlace(BaseModel):
    """A place as written by a person."""

    model_config = ConfigDict(extra="forbid")

    nombre: Annotated[Text, Field(description="Name of the locality.")]
    municipio: Annotated[Text | None, Field(description="Name or key of its municipio, if known.")] = None
    estado: Annotated[Text | None, Field(description="Name, abbreviation or key of its estado, if known.")] = None
    latitud: Annotated[float | None, Field(ge=-90, le=90, description="Degrees north.")] = None
    longitud: Annotated[float | None, Field(ge=-180, le=180, description="Degrees east: negative in Mexico.")] = None


class Place(BaseModel):
    """A place with its official key."""

    cvegeo: Key
    label: Annotated[str, Field(description="Name, municipio and estado.")]
    poblacion: int | None
    latitud: float | None
    longitud: float | None


class PlaceCandidate(Place):
    """A place that may be the right one for a row."""

    score: Annotated[float, Field(description="100 times the estimated probability that it is the right one.")]


class Matched(BaseModel):
    """The result for a row."""

    outcome: Annotated[
        str,
        Field(
            description="`exact` or `sure`: rely on `cvegeo`. `ambiguous`: a person has to choose among `candidates`."
            " `none`: no place is similar. `problem`: the row can't be read, and `problem` says why."
        ),
    ]
    cvegeo: Annotated[str | None, Field(description="Official key, with leading zeros, if `exact` or `sure`.")]
    label: str | None
    poblacion: int | None
    latitud: float | None
    longitud: float | None
    score: float | None
    differences: Annotated[list[str], Field(description="What differs between the row and the place.")]
    candidates: list[PlaceCandidate]
    problem: str | None


class Matches(BaseModel):
    """The results, in the order of the rows."""

    release: Annotated[str, Field(description="The release of the catalogue that answered.")]
    answers: list[Matched]


class FoundPlace(Place):
    """A place that was searched for."""

    kind: Annotated[str, Field(description="`localidad`, `municipio` or `estado`.")]
    metres: Annotated[float | None, Field(description="Distance from the given point.")] = None


class Places(BaseModel):
    """Places, with the likeliest or nearest first."""

    release: str
    places: list[FoundPlace]


class PlaceRecord(BaseModel):
    """Everything that the catalogue says about a place."""

    release: str
    cvegeo: Key
    columns: dict[str, JsonValue]


class Change(BaseModel):
    """A change of a locality between two releases."""

    change: str
    cvegeo: Key
    before: Annotated[str | None, Field(description="Its name in the earlier release; null if it was added.")]
    after: Annotated[str | None, Field(description="Its name in the later release; null if it was removed.")]


class Changes(BaseModel):
    """One page of the changes between two releases."""

    since: str
    release: str
    total: Annotated[int, Field(description="Changes on all pages.")]
    pages: int
    changes: list[Change]


# -- The tools


class CatalogueTools:
    """The tools; assistants read their docstrings."""

    def __init__(self, service: Service, client: httpx.Client) -> None:
        self._service = service
        self._client = client

    def match(self, rows: Annotated[list[WrittenPlace], Field(min_length=1, max_length=_MAX_ROWS)]) -> Matches:
        """Find the official key of each place in a list of names, up to 100 at a time.

        Understands abbreviations, misspellings, everyday and former names, and says how certain each answer is.
        """
        body = {"rows": [row.model_dump(exclude_none=True) for row in rows]}
        release, content = self._request("POST", MATCH, json=body, fields="poblacion,latitud,longitud")
        return Matches(release=release, answers=[_matched(answer) for answer in content["results"]])

    def find(
        self,
        text: Annotated[Text, Field(description="A name or part of it, with or without its municipio or estado.")],
        kind: Annotated[
            Literal["localidad", "municipio", "estado", "any"], Field(description="What to look for.")
        ] = "any",
        limit: Annotated[int, Field(ge=1, le=20)] = 10,
    ) -> Places:
        """Find localities, municipios and estados by a name or the beginning of one, with the likeliest first."""
        kinds = "localidad,municipio,estado" if kind == "any" else kind
        query = {"q": text, "kind": kinds, "limit": str(limit)}
        release, content = self._request("GET", f"{LOCALIDADES}suggest/", **query)
        return Places(release=release, places=[FoundPlace.model_validate(place) for place in content["results"]])

    def record(
        self,
        cvegeo: Annotated[
            KeyOfPlace,
            Field(description="Nine digits for a locality, five for a municipio, two for an estado."),
        ],
    ) -> PlaceRecord:
        """Show everything that the catalogue says about the place with a key: name, area, point, population, dwellings.

        For a key that INEGI has withdrawn, says which one has replaced it.
        """
        kind = KINDS[KIND_BY_DIGITS[len(cvegeo)]].plural
        release, content = self._request("GET", f"{PREFIX}/{kind}/{int(cvegeo)}/")
        return PlaceRecord(release=release, cvegeo=cvegeo, columns=_with_text_keys(content))

    def nearest(
        self,
        latitud: Annotated[float, Field(ge=-90, le=90, description="Degrees north.")],
        longitud: Annotated[float, Field(ge=-180, le=180, description="Degrees east: negative in Mexico.")],
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> Places:
        """List the localities nearest to a point, with their distance in metres."""
        query = {"lat": f"{latitud:.6f}", "lon": f"{longitud:.6f}", "limit": str(limit)}
        release, content = self._request("GET", NEAREST, **query)
        places = [
            FoundPlace.model_validate(
                {**place, "kind": "localidad", "cvegeo": f"{place['id']:09}", "metres": place["distancia"]}
            )
            for place in content["results"]
        ]
        return Places(release=release, places=places)

    def changes(
        self,
        since: Annotated[
            NameOfRelease | None,
            Field(description="The earlier release; by default the one before the current one."),
        ] = None,
        kind: Annotated[ChangeKind | None, Field(description="Only changes of this kind.")] = None,
        page: Annotated[int, Field(ge=1, le=10_000)] = 1,
    ) -> Changes:
        """List what changed in the catalogue since an earlier release: added, removed, renamed, relocated, updated."""
        release, before = self._newest_two()
        earlier = since or before
        query = {"since": earlier, "page": str(page), "page_size": "100", **({"change": kind} if kind else {})}
        _, content = self._request("GET", f"{PREFIX}/releases/{release}/changes/", **query)
        changes = [
            Change(
                change=one["change"],
                cvegeo=f"{one['id']:09}",
                before=one["before"] and one["before"]["nombre"],
                after=one["after"] and one["after"]["nombre"],
            )
            for one in content["results"]
        ]
        return Changes(
            since=earlier, release=release, total=content["quantity"], pages=content["total_pages"], changes=changes
        )

    def _newest_two(self) -> tuple[str, str]:
        """Return the names of the current release and the one before it; if there is none, the current one twice."""
        _, content = self._request("GET", f"{PREFIX}/releases/", page_size=str(MAX_PAGE_SIZE))
        names = [one["release"] for one in content["results"]]
        current = next(index for index, one in enumerate(content["results"]) if one["current"])
        return names[current], names[max(current - 1, 0)]

    def _request(self, method: str, path: str, json: object = None, **query: str) -> tuple[str, dict[str, Any]]:
        """Return the release and the content of a response; raise ToolError for an error."""
        address, headers = self._service.at(path, **query), {"Accept": "application/json"}
        try:
            with self._client.stream(method, address, json=json, headers=headers) as response:
                body = bytearray()
                for chunk in response.iter_raw():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise ToolError("The service's response is longer than any response of this API.")
            content = from_json(bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolError(
                f"The service at {self._service.root} can't be reached: start it with `localidades-api serve`, or set"
                " `--url` to another."
            ) from error
        except ValueError as error:
            raise ToolError(f"{self._service.root} is not a localidades-api service: check `--url`.") from error
        if not response.is_success:
            raise ToolError(_explain(content))
        return response.headers.get("catalogue-release", ""), content


def _matched(answer: Mapping[str, Any]) -> Matched:
    differences = [f"{one['code']}: {one['given']} → {one['found']}" for one in answer["faults"]]
    return Matched.model_validate({**answer, "differences": differences})


def _with_text_keys(record: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Replace the keys of the municipio and estado, which are numbers, by text."""
    digits = {"estado_id": 2, "municipio_id": 5}
    return {
        name: f"{value:0{digits[name]}}"
        if name in digits
        else _with_text_keys(value)
        if isinstance(value, dict)
        else value
        for name, value in record.items()
        if name != "id"
    }


def _explain(problem: Mapping[str, Any]) -> str:
    """Return the message for a problem; for a withdrawn key, it names the successor."""
    if last_release := problem.get("last_release"):
        successor = f" {problem['successor']:09} has replaced it." if problem["successor"] else ""
        return f"INEGI has withdrawn this key; {last_release} is the last release that had it.{successor}"
    detail = str(problem.get("detail", "The service refuses the request."))
    return " ".join([detail, *(f"{fault['parameter']}: {fault['message']}" for fault in problem.get("errors", ()))])


# -- The server


class _Server(MCPServer):
    """Describes invalid arguments in the words of this service instead of pydantic's."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; raise ToolError."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            faults = error.__cause__.errors()[:_MAX_FAULTS]
            messages = [f"{describe_place(fault['loc'])}: {describe_fault(fault)}" for fault in faults]
            raise ToolError(" ".join(messages)) from error.__cause__


def serve_tools(url: str) -> None:
    """Serve an assistant on stdin and stdout with the service at `url`, until it closes stdin."""
    service = Service.parse(url, None)
    server = _Server("localidades-api", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    with service.connect(_TIMEOUT) as client:
        catalogue = CatalogueTools(service, client)
        for tool in (catalogue.match, catalogue.find, catalogue.record, catalogue.nearest, catalogue.changes):
            server.add_tool(tool, annotations=_READ_ONLY, structured_output=True)
        server.run("stdio")
