"""Matches rows with a running service, a batch a request."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Self

import httpx
from pydantic import ValidationError
from pydantic_core import to_json

from localidades_api.bulk.answers import describe_problem, with_note
from localidades_api.bulk.rows import Answer, Row
from localidades_api.catalogue.schemas import Match
from localidades_api.cli.console import console
from localidades_api.cli.service import Service
from localidades_api.errors import ServiceError
from localidades_api.http.paths import MATCH
from localidades_api.names.certainty import SURE

_TIMEOUT = 60.0  # seconds without a byte
_RETRY_TIMEOUT = 300.0  # seconds with a service that has responded before: its index of names may still be built
_RETRY_INTERVAL = 1.0  # seconds before the second try; each further pause is twice as long
_MAX_RETRY_INTERVAL = 30.0  # seconds, whatever Retry-After says
_MAX_ANSWER = 16 * 1024  # bytes for a row: five candidates with their faults have some 3 kB
_BUSY = {429, 502, 503, 504}


class _BusyError(Exception):
    """The service can't answer now; `pause` is how many seconds it asks for, if it does."""

    def __init__(self, why: str, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


class RemoteMatcher:
    """Sends rows by their roles, and nothing else that is in them; stays with the release of the first answer."""

    def __init__(self, service: Service, sure: float) -> None:
        self._service = service
        self._options = {} if sure == SURE else {"sure": f"{sure:g}"}
        self._client = service.connect(_TIMEOUT)
        self._has_responded = False

    def describe(self) -> list[str]:
        """Return the options with which a command asks the same service and release."""
        release = self._service.release
        return ["--url", self._service.root, *(["--release", release] if release else [])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """Return the answers to rows; raise ServiceError if the service has none, or not for minutes."""
        readable = [row for row in rows if row.problem is None]
        answers = iter(self._ask(readable) if readable else [])
        return [
            describe_problem(row.problem) if row.problem is not None else with_note(next(answers), row) for row in rows
        ]

    def _ask(self, rows: Sequence[Row]) -> list[Answer]:
        body = b"".join(to_json(row.cells) + b"\n" for row in rows)
        pause, gives_up_at = _RETRY_INTERVAL, 0.0
        while True:
            try:
                return self._post(body, len(rows))
            except _BusyError as error:
                now = time.monotonic()
                if not gives_up_at and self._has_responded:
                    gives_up_at = now + _RETRY_TIMEOUT
                    console.print(f"waiting for the service: {error}", markup=False)
                if now >= gives_up_at:
                    raise ServiceError(f"The service at {self._service.root} does not answer: {error}.") from error
                time.sleep(pause if error.pause is None else min(error.pause, _MAX_RETRY_INTERVAL))
                pause = min(2 * pause, _MAX_RETRY_INTERVAL)

    def _post(self, body: bytes, rows: int) -> list[Answer]:
        headers = {"Content-Type": "application/x-ndjson", "Accept": "application/x-ndjson"}
        address = self._service.at(MATCH, **self._options)
        with _busy_if_unreachable(), self._client.stream("POST", address, content=body, headers=headers) as response:
            self._has_responded = True
            self._check(response)
            lines = _read(response, rows * _MAX_ANSWER).splitlines()
        if len(lines) != rows:
            raise _BusyError("its answer ends too early")
        try:
            answers: list[Answer] = [Match.model_validate_json(line).model_dump(exclude={"sent"}) for line in lines]
        except ValidationError as error:
            raise ServiceError("The service's answers do not match the API's schema: check --url.") from error
        self._pin(response.headers.get("catalogue-release"))
        return answers

    def _pin(self, release: str | None) -> None:
        """Stay with the release of an answer; raise ServiceError if it is not the one that was asked for."""
        if self._service.release is None:
            self._service = replace(self._service, release=release)
        elif release not in {None, self._service.release}:
            raise ServiceError("The service ignores `release` and answers with another one.")

    @staticmethod
    def _check(response: httpx.Response) -> None:
        """Raise _BusyError for a failure that may pass, and ServiceError for any other."""
        status = response.status_code
        if status in _BUSY:
            after = response.headers.get("retry-after", "")
            raise _BusyError(f"it answers {status}", float(after) if after.isdecimal() else None)
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
            raise ServiceError("The service's answer is longer than any to so many rows: check --url.")
    return bytes(body)
