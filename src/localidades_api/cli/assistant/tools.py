"""The tools for assistants: each asks a running service over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import httpx
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, JsonValue
from pydantic_core import from_json

from localidades_api.catalogue.keys import KeyOfPlace, NameOfRelease
from localidades_api.catalogue.schemas import ChangeKind
from localidades_api.cli.assistant.answers import (
    Change,
    Changes,
    FoundPlace,
    Matched,
    Matches,
    PlaceRecord,
    Places,
    Text,
    WrittenPlace,
)
from localidades_api.cli.service import Service
from localidades_api.http.paths import LOCALIDADES, MATCH, NEAREST, PREFIX

_MAX_BYTES = 2_000_000  # of an answer: a hundred rows with five candidates each have some 300 kB
_MAX_ROWS = 100


class CatalogueTools:
    """The tools; the sentences of their docstrings are what an assistant reads."""

    def __init__(self, service: Service, client: httpx.Client) -> None:
        self._service = service
        self._client = client

    def match(self, rows: Annotated[list[WrittenPlace], Field(min_length=1, max_length=_MAX_ROWS)]) -> Matches:
        """Find the official key of each place in a list of names, up to 100 at a time.

        Understands abbreviations, misspellings, everyday and former names, and says how certain each answer is.
        """
        body = {"rows": [row.model_dump(exclude_none=True) for row in rows]}
        release, content = self._ask("POST", MATCH, json=body)
        return Matches(release=release, answers=[_matched(answer) for answer in content["results"]])

    def find(
        self,
        text: Annotated[Text, Field(description="A name or part of it, with or without its municipio or estado.")],
        kind: Annotated[
            Literal["localidad", "municipio", "estado", "any"], Field(description="What to look for.")
        ] = "any",
        limit: Annotated[int, Field(ge=1, le=20)] = 10,
    ) -> Places:
        """Find localities, municipios and estados by a name, or by the beginning of one, the likeliest first."""
        kinds = "localidad,municipio,estado" if kind == "any" else kind
        query = {"q": text, "kind": kinds, "limit": str(limit)}
        release, content = self._ask("GET", f"{LOCALIDADES}suggest/", **query)
        return Places(release=release, places=[FoundPlace.model_validate(place) for place in content["results"]])

    def record(
        self,
        cvegeo: Annotated[
            KeyOfPlace,
            Field(description="Nine digits for a locality, five for a municipio, two for an estado."),
        ],
    ) -> PlaceRecord:
        """Show everything that the catalogue says about the place with a key: name, area, point, population, dwellings.

        Also says which key has replaced one that INEGI has withdrawn.
        """
        kind = {2: "estados", 5: "municipios", 9: "localidades"}[len(cvegeo)]
        release, content = self._ask("GET", f"{PREFIX}/{kind}/{int(cvegeo)}/")
        return PlaceRecord(release=release, cvegeo=cvegeo, columns=_with_text_keys(content))

    def nearest(
        self,
        latitud: Annotated[float, Field(ge=-90, le=90, description="Degrees north.")],
        longitud: Annotated[float, Field(ge=-180, le=180, description="Degrees east: negative in Mexico.")],
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> Places:
        """List the localities nearest to a point, with their distance in metres."""
        query = {"lat": f"{latitud:.6f}", "lon": f"{longitud:.6f}", "limit": str(limit)}
        release, content = self._ask("GET", NEAREST, **query)
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
            Field(description="The earlier release; by default the one before the current."),
        ] = None,
        kind: Annotated[ChangeKind | None, Field(description="Only changes of this kind.")] = None,
        page: Annotated[int, Field(ge=1, le=10_000)] = 1,
    ) -> Changes:
        """List what changed in the catalogue since an earlier release: added, removed, renamed, relocated, updated."""
        release, before = self._newest_two()
        earlier = since or before
        query = {"since": earlier, "page": str(page), "page_size": "100", **({"change": kind} if kind else {})}
        _, content = self._ask("GET", f"{PREFIX}/releases/{release}/changes/", **query)
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
        """Return the names of the current release and of the one before it, of the first itself."""
        _, content = self._ask("GET", f"{PREFIX}/releases/", page_size="1000")
        names = [one["release"] for one in content["results"]]
        current = next(index for index, one in enumerate(content["results"]) if one["current"])
        return names[current], names[max(current - 1, 0)]

    def _ask(self, method: str, path: str, json: object = None, **query: str) -> tuple[str, dict[str, Any]]:
        """Return the release of an answer and its content; raise ToolError with a sentence for an error."""
        address, headers = self._service.at(path, **query), {"Accept": "application/json"}
        try:
            with self._client.stream(method, address, json=json, headers=headers) as response:
                body = bytearray()
                for chunk in response.iter_raw():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise ToolError("The service's answer is longer than any answer of this API.")
            content = from_json(bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolError(
                f"The service at {self._service.root} can't be reached: start it with `localidades-api serve`, or name"
                " another with `--url`."
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
    """Return a record with the keys of its municipio and estado as text in place of numbers."""
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
    """Return a problem as sentences; those of a withdrawn key name the one that replaced it."""
    if last_release := problem.get("last_release"):
        told = f" {problem['successor']:09} has replaced it." if problem["successor"] else ""
        return f"INEGI has withdrawn this key; {last_release} is the last release that had it.{told}"
    said = [str(problem.get("detail", "The service refuses the request."))]
    return " ".join([*said, *(f"{one['parameter']}: {one['message']}" for one in problem.get("errors", ()))])
