"""Matches rows by asking a running service, as the Python client does."""

from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus

import httpx
from pydantic_core import from_json, to_json

from localidades_api.bulk.answers import describe_problem, with_note
from localidades_api.bulk.earlier import FIRST_HEADERS
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.bulk.options import MatchOptions
from localidades_api.catalogue.filters import split_fields
from localidades_api.catalogue.schemas import Match
from localidades_api.client import Client, ClientError, ProblemError
from localidades_api.client.frames import write_csv
from localidades_api.errors import CommandError, UnreadableBodyError
from localidades_api.http.paths import MATCH


class ServiceMatcher(Client):
    """Sends the matched cells of rows to a service; keeps to the release of its first answer.

    Of a table whose headers don't say which column has the places, it also sends cells of the first rows that may.

    Raises CommandError if the service fails, or is busy for minutes, and UnreadableBodyError for what it refuses.
    """

    areas = None  # the service has them

    def __init__(self, url: str, release: str | None, options: MatchOptions) -> None:
        try:
            super().__init__(url.strip().rstrip("/"), release=release)
        except ClientError as error:
            raise CommandError(str(error)) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise CommandError("--url must be the root address of a service, such as http://127.0.0.1:8000.") from error
        self._parameters = options.model_dump(include={"sure", "kind", "fields"}, exclude_defaults=True)
        self._fields = split_fields(options.fields)

    def check_areas(self, areas: Mapping[str, str], headers: Collection[str]) -> None:
        """Ask about a table of these headers alone; the service says first whether it knows the municipio."""
        if "municipio" in areas:
            try:
                self._post(areas, write_csv([[*headers]]), "text/csv")
            except UnreadableBodyError as error:
                if "no municipio has this name" in str(error):
                    raise

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows."""
        readable = [row for row in rows if row.problem is None]
        answers = iter(self._ask(readable) if readable else ())
        return [
            describe_problem(row.problem, self._fields) if row.problem is not None else with_note(next(answers), row)
            for row in rows
        ]

    def answer_sample(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows of one kind, by default parameters."""
        return self._ask(rows, {"kind": rows[0].kind}) if rows else []

    def _ask(self, rows: Sequence[Row], parameters: Mapping[str, object] | None = None) -> list[Answer]:
        earlier = [dict(zip(FIRST_HEADERS, row.earlier or (), strict=False)) for row in rows]
        body = b"".join(to_json({**row.cells, **more}) + b"\n" for row, more in zip(rows, earlier, strict=True))
        release = {"release": one} if (one := self._parameters.get("release")) else {}
        asked = self._parameters if parameters is None else {**parameters, **release}
        response = self._post(asked, body, "application/x-ndjson")
        try:
            answers = [_read_answer(line) for _, line in zip(rows, response.content.splitlines(), strict=True)]
        except ValueError as error:
            raise CommandError("The service's answers do not match the API's schema: check --url.") from error
        self._parameters["release"] = response.headers.get("catalogue-release")
        return answers

    def _post(self, parameters: Mapping[str, object], body: bytes, media_type: str) -> httpx.Response:
        try:
            return self._send(self._request(MATCH, parameters, body, media_type))
        except ProblemError as error:
            if not error.problem:
                raise CommandError(f"{str(error).rstrip('.')}: check --url and the service's log.") from error
            is_refused = error.status == HTTPStatus.UNPROCESSABLE_ENTITY
            raise (UnreadableBodyError if is_refused else CommandError)(str(error)) from error
        except ClientError as error:
            raise CommandError(f"{error}; check --url, or name INEGI's file with --catalogue.") from error


def _read_answer(line: bytes) -> Answer:
    """Return an answer with the members that were sent; raise ValueError if it does not match the schema."""
    Match.model_validate_json(line, strict=True)
    answer: dict[str, object] = from_json(line)
    del answer["row"], answer["sent"]  # of the batch
    return answer
