"""Matches the rows of a file by querying a running service."""

import csv
import io
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Self, TypeVar

import httpx
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from localidades_api.bulk.answers import describe_problem, with_note
from localidades_api.bulk.input_rows import Answer, Row
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.schemas import Match
from localidades_api.cli.match import MatchJob, match_and_report
from localidades_api.client import BUSY, Backoff
from localidades_api.errors import ServiceError, UnreadableBodyError
from localidades_api.http.paths import MATCH
from localidades_api.http.service import Service
from localidades_api.names.weights import SURE
from localidades_api.observability.progress_display import console, show_progress

T = TypeVar("T")

_BATCH_SIZE = 1000  # rows in a request, which takes half a second
_TIMEOUT = 60.0  # seconds without a byte
_RETRY_TIMEOUT = 300.0  # seconds, once a service has responded: it may still be building its index of names
_MAX_ANSWER_BYTES = 16 * 1024  # for a row; five candidates and their faults take some 3 kB


def run_remote_match(job: MatchJob, url: str, release: str | None) -> None:
    """Match the rows of a file by asking a running service."""
    with show_progress() as progress, RemoteMatcher(Service.parse(url, release), job) as service:
        match_and_report(job, service.answer, progress, _BATCH_SIZE, check_areas=service.check_areas)


class _BusyError(Exception):
    """The service can't answer now; `retry_after` is the value of the response's header, if any."""

    def __init__(self, reason: str, retry_after: str | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class RemoteMatcher:
    """Sends the matched columns of rows, and no others, to a service; keeps to the release of its first response."""

    def __init__(self, service: Service, job: MatchJob) -> None:
        self._service = service
        self._fields = job.fields
        options = {
            "sure": None if job.sure == SURE else f"{job.sure:g}",
            "kind": job.kind,
            "fields": None if list(job.fields) == list(MATCHED_BY_DEFAULT) else ",".join(job.fields),
        }
        self._options = {name: value for name, value in options.items() if value is not None}
        self._client = service.connect(_TIMEOUT)
        self._has_responded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows; raise ServiceError if the service fails, or is busy for minutes."""
        readable = [row for row in rows if row.problem is None]
        answers = iter(self._send(readable) if readable else [])
        return [
            describe_problem(row.problem, self._fields) if row.problem is not None else with_note(next(answers), row)
            for row in rows
        ]

    def check_areas(self, areas: Mapping[str, str], headers: Collection[str]) -> None:
        """Raise UnreadableBodyError if the municipio of all rows is neither a header nor one that the service knows."""
        if "municipio" in areas:
            self._retry(lambda: self._match_nothing(areas, headers))

    def _match_nothing(self, areas: Mapping[str, str], headers: Collection[str]) -> None:
        """Send a table of these headers alone; the service says first whether it knows the municipio."""
        table = io.StringIO()
        csv.writer(table).writerow(headers)
        address, kind = self._service.at(MATCH, **areas), {"Content-Type": "text/csv"}
        with (
            _busy_if_unreachable(),
            self._client.stream("POST", address, content=table.getvalue().encode(), headers=kind) as response,
        ):
            self._has_responded = True
            if response.status_code != HTTPStatus.UNPROCESSABLE_ENTITY:
                self._check(response)
                return
            problem: dict[str, Any] = from_json(_read(response, _MAX_ANSWER_BYTES))
        if "no municipio has this name" in problem["detail"]:
            raise UnreadableBodyError(problem["detail"])

    def _send(self, rows: Sequence[Row]) -> list[Answer]:
        body = b"".join(to_json(row.cells) + b"\n" for row in rows)
        return self._retry(lambda: self._post(body, len(rows)))

    def _retry(self, request: Callable[[], T]) -> T:
        """Return what a request returns; while the service is busy, for minutes at most, make it again."""
        backoff: Backoff | None = None
        while True:
            try:
                return request()
            except _BusyError as error:
                if backoff is None and self._has_responded:
                    backoff = Backoff(_RETRY_TIMEOUT)
                    limit = f"{_RETRY_TIMEOUT / 60:.0f} minutes"
                    console.print(f"waiting up to {limit} for {self._service.root}: {error}", markup=False)
                pause = backoff.next(error.retry_after) if backoff else None
                if pause is None:
                    raise ServiceError(f"The service at {self._service.root} does not answer: {error}.") from error
                time.sleep(pause)

    def _post(self, body: bytes, rows: int) -> list[Answer]:
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        address = self._service.at(MATCH, **self._options)
        with _busy_if_unreachable(), self._client.stream("POST", address, content=body, headers=headers) as response:
            self._has_responded = True
            self._check(response)
            lines = _read(response, rows * _MAX_ANSWER_BYTES).splitlines()
        if len(lines) != rows:
            raise _BusyError("its response is incomplete")
        try:
            answers = [self._read_answer(line) for line in lines]
        except ValidationError as error:
            raise ServiceError("The service's answers do not match the API's schema: check --url.") from error
        self._pin(response.headers.get("catalogue-release"))
        return answers

    def _read_answer(self, line: bytes) -> Answer:
        """Return an answer with the members that were sent; raise ValidationError if it does not match the schema."""
        Match.model_validate_json(line, strict=True)
        answer: dict[str, Any] = from_json(line)
        if any(set(self._fields) - place.keys() for place in (answer, *answer["candidates"])):
            raise ServiceError("The service does not return columns of the place: it runs an older version.")
        del answer["row"], answer["sent"]  # of the batch
        return answer

    def _pin(self, release: str | None) -> None:
        """Keep to the release of the first response; raise ServiceError for a response with another one."""
        if self._service.release is None:
            self._service = replace(self._service, release=release)
        elif release not in {None, self._service.release}:
            raise ServiceError("The service ignores `release` and answers with another release.")

    @staticmethod
    def _check(response: httpx.Response) -> None:
        """Raise _BusyError for a temporary failure, and ServiceError for any other."""
        status = response.status_code
        if status in BUSY:
            raise _BusyError(f"it answers {status}", response.headers.get("retry-after"))
        if status == HTTPStatus.NOT_FOUND:
            raise ServiceError("The service answers 404, so it has no such release or matches no rows: check --url.")
        if status != HTTPStatus.OK:
            raise ServiceError(f"The service answers {status}: check --url and the service's log.")


@contextmanager
def _busy_if_unreachable() -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _BusyError(str(error) or type(error).__name__) from error


def _read(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > limit:
            raise ServiceError("The service's response is too long for this number of rows: check --url.")
    return bytes(body)
