"""Reads a running service from Python: `Client`, with tables of pandas or polars.

It imports only `frames` and `network` of this package, and pandas or polars only to make a table, so that it starts
quickly.
"""

import csv
import io
import logging
import re
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import Any, Literal, Self, overload

import httpx

from .frames import Answered, Frame, read_table, write_csv
from .network import NetworkSettingsError, open_client

_log = logging.getLogger(__name__)

_API = "/api/census"
_PLACES = f"{_API}/localidades/"
_LOCALITY = 9  # digits of its key
_KINDS = {2: "estados", 5: "municipios", _LOCALITY: "localidades"}  # by the digits of their keys
_BATCH = 1000  # rows of a request, which takes half a second
_PAGE_SIZE = 1000
_READ_TIMEOUT = 60.0  # seconds without a byte
_RETRY_TIMEOUT = 300.0  # seconds: the index of names of a new release may still be built
_MAX_PAUSE = 30.0  # seconds, whatever Retry-After says
BUSY = {429, 502, 503, 504}  # statuses that may pass


class ClientError(Exception):
    """The service can't be reached or its answer can't be used; the text says why."""


class ProblemError(ClientError):
    """The service refuses a request; the text is its sentence, and `problem` the whole document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        said = [str(problem.get("detail") or problem.get("title") or f"The service answers {status}.")]
        super().__init__(
            " ".join([*said, *(f"{error['parameter']}: {error['message']}" for error in problem.get("errors", ()))])
        )
        self.status = status
        self.problem = problem


class Backoff:
    """The pauses between tries: what Retry-After says, else 1, 2, 4 seconds and so on, at most 30 each."""

    def __init__(self, timeout: float) -> None:
        self._ends_at = time.monotonic() + timeout
        self._pause = 1.0
        self.pauses = 0

    def next(self, retry_after: str | None = None) -> float | None:
        """Return the seconds to wait before the next try; None if that is later than the timeout."""
        asked = float(retry_after) if retry_after and retry_after.isdecimal() else self._pause
        self._pause *= 2
        pause = min(asked, _MAX_PAUSE)
        if time.monotonic() + pause >= self._ends_at:
            return None
        self.pauses += 1
        return pause


class Client:
    """Asks a service: `with Client("http://127.0.0.1:8000") as catalogue: catalogue.get("140390001")`.

    `release` pins a release, and `timeout` bounds the tries of a request, in seconds.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, release: str | None = None, timeout: float = _RETRY_TIMEOUT
    ) -> None:
        try:
            self._http = open_client(base_url=httpx.URL(url), timeout=_READ_TIMEOUT)
        except NetworkSettingsError as error:
            raise ClientError(str(error)) from error
        self._release = release
        self._timeout = timeout
        self._has_responded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, key: str | int) -> dict[str, Any]:
        """Return what a key of two, five or nine digits names: an estado, a municipio or a locality."""
        kind = _KINDS[len(complete_key(key))]
        return _json(self._send(self._request(f"{_API}/{kind}/{int(key)}/", {})))

    def suggest(self, q: str, **parameters: object) -> list[dict[str, Any]]:
        """Return the places that a text may mean, the likeliest first: `kind`, `limit`, `estado_id` and so on."""
        answer = _json(self._send(self._request(f"{_PLACES}suggest/", {"q": q, **parameters})))
        return list(answer["results"])

    @overload
    def match(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    def match(self, rows: object, **parameters: object) -> Answered: ...
    def match(self, rows: object, **parameters: object) -> Answered:
        """Return rows with the columns `match_…` beside: texts and dicts as a list of dicts, a table as a DataFrame.

        `nombre="sitio"` names a column that is not recognized, `estado="Guerrero"` the estado of rows that give none,
        and `sure` is the probability that certain keys have.
        """
        return self._add_answers("match", rows, parameters)

    @overload
    def nearest(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    def nearest(self, rows: object, **parameters: object) -> Answered: ...
    def nearest(self, rows: object, **parameters: object) -> Answered:
        """Return rows that have `latitud` and `longitud` with the columns `nearest_…` beside, as `match` does."""
        return self._add_answers("nearest", rows, parameters)

    def download(
        self,
        format: str = "parquet",  # noqa: A002  # as the service calls it
        *,
        to: Literal["pandas", "polars"] | None = "pandas",
        **filters: object,
    ) -> Any:  # noqa: ANN401  # a DataFrame of either, or bytes
        """Return all localities, or those that filters choose, as a DataFrame; the file itself if `to` is None."""
        if to is not None and format != "parquet":
            raise ValueError(f"A table is made of parquet: {format} needs to=None, which returns bytes.")
        library = import_module(to) if to else None  # before the file is fetched
        answer = self._send(self._request(f"{_PLACES}download/", {"format": format, **filters}))
        return library.read_parquet(io.BytesIO(answer.content)) if library else answer.content

    def localidades(self, **filters: object) -> Iterator[dict[str, Any]]:
        """Yield all localities, or those that filters choose, page by page, of the release of the first page."""
        answer = self._send(self._request(_PLACES, {"page_size": _PAGE_SIZE, **filters}))
        yield from _json(answer)["results"]
        while following := answer.links.get("next"):
            address = answer.url.join(following["url"])
            answer = self._send(self._http.build_request("GET", address, headers={"Accept": "application/json"}))
            yield from _json(answer)["results"]

    def _add_answers(self, resource: str, rows: object, parameters: dict[str, object]) -> Any:  # noqa: ANN401  # as `rows`
        """Return rows with the answers of a resource, `match` or `nearest`, beside each.

        Answers replace those of an earlier call, as the service does: it says in which column they begin.
        """
        parameters.setdefault("header_row", 1)
        table = read_table(rows)
        header = table.header
        own, added = len(header), dict[str, list[str]]()
        while (batch := list(islice(table.lines, _BATCH))) or (header and not added):
            answer = self._send(self._request(f"{_PLACES}{resource}/", parameters, write_csv([header, *batch])))
            parameters["release"] = answer.headers.get("catalogue-release")  # for all batches
            names, *answers = list(csv.reader(io.StringIO(answer.text, newline=""))) or [[]]
            first = re.match(r"\w+=(\d+)", answer.headers.get("answer-columns", ""))
            if len(answers) != len(batch) or first is None:
                raise _not_this_service(answer, "it does not answer each row")
            own = int(first[1]) - 1
            for at, name in enumerate(names[own:], own):
                added.setdefault(name, []).extend(cells[at] for cells in answers)
        return table.with_columns(own, added)

    def _request(
        self, path: str, parameters: Mapping[str, object], body: bytes | None = None, media_type: str = "text/csv"
    ) -> httpx.Request:
        query = {
            name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            for name, value in {"release": self._release, **parameters}.items()
            if value is not None
        }
        headers = {"Accept": "application/json"} if body is None else {"Accept": media_type, "Content-Type": media_type}
        method = "GET" if body is None else "POST"
        return self._http.build_request(method, path, params=query, headers=headers, content=body)

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Return the answer; raise ProblemError for a refusal, and ClientError if the service can't be reached.

        A request is sent again while the service is busy, or away after it has responded once.
        """
        backoff = Backoff(self._timeout)
        address = _without_password(self._http.base_url)
        while True:
            try:
                answer = self._http.send(request)
            except httpx.RequestError as error:
                reason = f"can't be reached: {str(error) or type(error).__name__}"
                pause = backoff.next() if self._has_responded else None  # else the address may be wrong
                if pause is None:
                    raise ClientError(f"{address} {reason}") from error
            else:
                self._has_responded = True
                reason = f"answers {answer.status_code}"
                pause = backoff.next(answer.headers.get("retry-after")) if answer.status_code in BUSY else None
                if pause is None:
                    return _checked(answer)
            if backoff.pauses == 1:
                _log.warning("%s %s: trying again for up to %.0f seconds", address, reason, self._timeout)
            time.sleep(pause)


def complete_key(key: str | int) -> str:
    """Return a key as text with its zeros; only that of a locality may be a number. Raises ValueError."""
    text = str(key).zfill(_LOCALITY) if isinstance(key, int) and len(str(key)) == _LOCALITY - 1 else str(key)
    is_number = isinstance(key, int) and len(text) != _LOCALITY
    if is_number or len(text) not in _KINDS or not (text.isascii() and text.isdecimal()):
        raise ValueError(f"A key is text of two, five or nine digits, such as '01' or '01001': {key!r} is not.")
    return text


def _checked(answer: httpx.Response) -> httpx.Response:
    """Return an answer; raise ProblemError for a refusal."""
    if answer.is_success:
        return answer
    is_ours = answer.headers.get("content-type", "").startswith("application/problem+json")
    raise ProblemError(answer.status_code, _json(answer) if is_ours else {})


def _without_password(url: httpx.URL) -> httpx.URL:
    return url.copy_with(username=None, password=None)


def _not_this_service(answer: httpx.Response, why: str) -> ClientError:
    return ClientError(f"{_without_password(answer.url)} is no address of localidades-api: {why}.")


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        content: dict[str, Any] = answer.json()
    except ValueError as error:
        raise _not_this_service(answer, "its answer is not JSON") from error
    return content
