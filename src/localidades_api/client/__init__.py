"""Reads a running service from Python: `Client`, and `AsyncClient` for asyncio, with tables of pandas or polars.

It imports only `frames` and `network` of this package, and pandas or polars only to make a table, so that it starts
quickly.
"""

import asyncio
import csv
import io
import logging
import re
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, Literal, Self, TypeVar, overload

import httpx

from .frames import Answered, Frame, read_table, split_rows, write_csv
from .network import NetworkSettingsError, open_async_client, open_client

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

T = TypeVar("T")
_Steps = Generator[httpx.Request, httpx.Response, T]  # a call: requests out, their answers in, and what it returns
_Outcome = httpx.Response | httpx.RequestError


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


class _Calls:
    """The calls of both clients, as steps; `release` pins a release, and `timeout` bounds the tries of a request."""

    def __init__(self, http: httpx.Client | httpx.AsyncClient, release: str | None, timeout: float) -> None:
        self._http = http
        self._release = release
        self._timeout = timeout
        self._has_responded = False

    def request(
        self, path: str, parameters: Mapping[str, object], body: bytes | None = None, media_type: str = "text/csv"
    ) -> httpx.Request:
        given: dict[str, object] = {"release": self._release, **parameters}
        query = {
            name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            for name, value in given.items()
            if value is not None
        }
        headers = {"Accept": "application/json"} if body is None else {"Accept": media_type, "Content-Type": media_type}
        method = "GET" if body is None else "POST"
        return self._http.build_request(method, path, params=query, headers=headers, content=body)

    def backoff(self) -> Backoff:
        return Backoff(self._timeout)

    def pause(self, outcome: _Outcome, backoff: Backoff) -> float | None:
        """Return how many seconds to wait before a request is sent again; None if it is not."""
        if isinstance(outcome, httpx.RequestError):  # at once if the address is wrong, or nothing runs there
            pause = backoff.next() if self._has_responded else None
            reason = f"can't be reached ({_describe(outcome)})"
        else:
            self._has_responded = True
            pause = backoff.next(outcome.headers.get("retry-after")) if outcome.status_code in BUSY else None
            reason = f"answers {outcome.status_code}"
        if pause is not None and backoff.pauses == 1:
            address = _without_password(self._http.base_url)
            _log.warning("%s %s: trying again for up to %.0f seconds", address, reason, self._timeout)
        return pause

    def checked(self, outcome: _Outcome) -> httpx.Response:
        """Return an answer; raise ProblemError for a refusal, and ClientError for anything else."""
        if isinstance(outcome, httpx.RequestError):
            address = _without_password(self._http.base_url)
            raise ClientError(f"{address} can't be reached: {_describe(outcome)}") from outcome
        if not outcome.is_success:
            is_ours = outcome.headers.get("content-type", "").startswith("application/problem+json")
            raise ProblemError(outcome.status_code, _json(outcome) if is_ours else {})
        return outcome

    def get(self, key: str | int) -> _Steps[dict[str, Any]]:
        kind = _KINDS[len(complete_key(key))]
        return _json((yield self.request(f"{_API}/{kind}/{int(key)}/", {})))

    def suggest(self, q: str, parameters: Mapping[str, object]) -> _Steps[list[dict[str, Any]]]:
        found = _json((yield self.request(f"{_PLACES}suggest/", {"q": q, **parameters})))
        return list(found["results"])

    def download(self, format_: str, to: str | None, filters: Mapping[str, object]) -> _Steps[Any]:
        if to is not None and format_ != "parquet":
            raise ValueError(f"A table is made of parquet: {format_} needs to=None, which returns bytes.")
        library = import_module(to) if to else None  # before the file is fetched
        answer = yield self.request(f"{_PLACES}download/", {"format": format_, **filters})
        return library.read_parquet(io.BytesIO(answer.content)) if library else answer.content

    def add_answers(self, resource: str, rows: object, parameters: dict[str, object]) -> _Steps[Any]:
        """Return rows with the answers of a resource, `match` or `nearest`, beside each.

        The first answer sets the release among the parameters. Answers replace those of an earlier call, as the service
        does: it says in which column they begin.
        """
        parameters.setdefault("header_row", 1)
        table = read_table(rows)
        header = table.header
        kept, added = len(header), dict[str, list[str]]()
        while (batch := list(islice(table.lines, _BATCH))) or (header and not added):
            answer = yield self.request(f"{_PLACES}{resource}/", parameters, write_csv([header, *batch]))
            parameters["release"] = answer.headers.get("catalogue-release")  # for all batches
            names, *answers = list(csv.reader(io.StringIO(answer.text, newline=""))) or [[]]
            first = re.match(r"\w+=(\d+)", answer.headers.get("answer-columns", ""))
            if len(answers) != len(batch) or first is None:
                raise _not_this_service(answer, "it does not answer each row")
            kept = int(first[1]) - 1
            for at, name in enumerate(names[kept:], kept):
                added.setdefault(name, []).extend(cells[at] for cells in answers)
        return table.with_columns(kept, added)

    def first_page(self, filters: Mapping[str, object]) -> httpx.Request:
        return self.request(_PLACES, {"page_size": _PAGE_SIZE, **filters})

    def next_page(self, answer: httpx.Response) -> httpx.Request | None:
        if "next" not in answer.links:
            return None
        address = answer.url.join(answer.links["next"]["url"])
        return self._http.build_request("GET", address, headers={"Accept": "application/json"})


class Client:
    """Asks a service: `with Client("http://127.0.0.1:8000") as catalogue: catalogue.get("140390001")`."""

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, release: str | None = None, timeout: float = _RETRY_TIMEOUT
    ) -> None:
        with _settings_checked():
            self._http = open_client(base_url=httpx.URL(url), timeout=_READ_TIMEOUT)
        self._calls = _Calls(self._http, release, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(self, key: str | int) -> dict[str, Any]:
        """Return what a key of two, five or nine digits names: an estado, a municipio or a locality."""
        return self._run(self._calls.get(key))

    def suggest(self, q: str, **parameters: object) -> list[dict[str, Any]]:
        """Return the places that a text may mean, the likeliest first: `kind`, `limit`, `estado_id` and so on."""
        return self._run(self._calls.suggest(q, parameters))

    @overload
    def match(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    def match(self, rows: object, **parameters: object) -> Answered: ...
    def match(self, rows: object, **parameters: object) -> Answered:
        """Return rows with the columns `match_…` beside: texts and dicts as a list of dicts, a table as a DataFrame.

        `nombre="sitio"` names a column that is not recognized, `estado="Guerrero"` the estado of rows that give none,
        and `sure` is the probability that certain keys have.
        """
        return self._run(self._calls.add_answers("match", rows, parameters))

    def iter_match(self, rows: Iterable[Any], **parameters: object) -> Iterator[dict[str, Any]]:
        """Yield texts or dicts as `match` returns them, a thousand at a time, without holding them all."""
        for batch in split_rows(rows, _BATCH):
            yield from self._run(self._calls.add_answers("match", batch, parameters))

    @overload
    def nearest(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    def nearest(self, rows: object, **parameters: object) -> Answered: ...
    def nearest(self, rows: object, **parameters: object) -> Answered:
        """Return rows that have `latitud` and `longitud` with the columns `nearest_…` beside, as `match` does."""
        return self._run(self._calls.add_answers("nearest", rows, parameters))

    def download(
        self,
        format: str = "parquet",  # noqa: A002  # as the service calls it
        *,
        to: Literal["pandas", "polars"] | None = "pandas",
        **filters: object,
    ) -> Any:  # noqa: ANN401  # a DataFrame of either, or bytes
        """Return all localities, or those that filters choose, as a DataFrame; the file itself if `to` is None."""
        return self._run(self._calls.download(format, to, filters))

    def localidades(self, **filters: object) -> Iterator[dict[str, Any]]:
        """Yield all localities, or those that filters choose, page by page, of the release of the first page."""
        request: httpx.Request | None = self._calls.first_page(filters)
        while request:
            answer = self._send(request)
            yield from _json(answer)["results"]
            request = self._calls.next_page(answer)

    def _run(self, steps: _Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(self._send(request))
        except StopIteration as end:
            returned: T = end.value
            return returned

    def _send(self, request: httpx.Request) -> httpx.Response:
        backoff = self._calls.backoff()
        while True:
            outcome: _Outcome
            try:
                outcome = self._http.send(request)
            except httpx.RequestError as error:
                outcome = error
            if (pause := self._calls.pause(outcome, backoff)) is None:
                return self._calls.checked(outcome)
            time.sleep(pause)


class AsyncClient:
    """`Client` for asyncio: `async with AsyncClient(…) as catalogue: await catalogue.get("140390001")`."""

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, release: str | None = None, timeout: float = _RETRY_TIMEOUT
    ) -> None:
        with _settings_checked():
            self._http = open_async_client(base_url=httpx.URL(url), timeout=_READ_TIMEOUT)
        self._calls = _Calls(self._http, release, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(self, key: str | int) -> dict[str, Any]:
        """See `Client.get`."""
        return await self._run(self._calls.get(key))

    async def suggest(self, q: str, **parameters: object) -> list[dict[str, Any]]:
        """See `Client.suggest`."""
        return await self._run(self._calls.suggest(q, parameters))

    @overload
    async def match(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    async def match(self, rows: object, **parameters: object) -> Answered: ...
    async def match(self, rows: object, **parameters: object) -> Answered:
        """See `Client.match`."""
        return await self._run(self._calls.add_answers("match", rows, parameters))

    async def iter_match(self, rows: Iterable[Any], **parameters: object) -> AsyncIterator[dict[str, Any]]:
        """See `Client.iter_match`."""
        for batch in split_rows(rows, _BATCH):
            for row in await self._run(self._calls.add_answers("match", batch, parameters)):
                yield row

    @overload
    async def nearest(self, rows: Frame, **parameters: object) -> Frame: ...
    @overload
    async def nearest(self, rows: object, **parameters: object) -> Answered: ...
    async def nearest(self, rows: object, **parameters: object) -> Answered:
        """See `Client.nearest`."""
        return await self._run(self._calls.add_answers("nearest", rows, parameters))

    async def download(
        self,
        format: str = "parquet",  # noqa: A002  # as the service calls it
        *,
        to: Literal["pandas", "polars"] | None = "pandas",
        **filters: object,
    ) -> Any:  # noqa: ANN401  # a DataFrame of either, or bytes
        """See `Client.download`."""
        return await self._run(self._calls.download(format, to, filters))

    async def localidades(self, **filters: object) -> AsyncIterator[dict[str, Any]]:
        """See `Client.localidades`."""
        request: httpx.Request | None = self._calls.first_page(filters)
        while request:
            answer = await self._send(request)
            for place in _json(answer)["results"]:
                yield place
            request = self._calls.next_page(answer)

    async def _run(self, steps: _Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._send(request))
        except StopIteration as end:
            returned: T = end.value
            return returned

    async def _send(self, request: httpx.Request) -> httpx.Response:
        backoff = self._calls.backoff()
        while True:
            outcome: _Outcome
            try:
                outcome = await self._http.send(request)
            except httpx.RequestError as error:
                outcome = error
            if (pause := self._calls.pause(outcome, backoff)) is None:
                return self._calls.checked(outcome)
            await asyncio.sleep(pause)


def complete_key(key: str | int) -> str:
    """Return a key as text with its zeros; only that of a locality may be a number. Raises ValueError."""
    text = str(key)
    digits = next((digits for digits in _KINDS if digits - 1 <= len(text) <= digits), 0)
    completed = text.zfill(digits)
    is_number = isinstance(key, int) and digits == _LOCALITY
    is_key = digits > 0 and text.isascii() and text.isdecimal()
    if is_key and (is_number or key == completed):
        return completed
    hint = f" Did you mean '{completed}'?" if is_key else ""
    raise ValueError(f"A key is text of two, five or nine digits, such as '01' or '01001': {key!r} is not.{hint}")


@contextmanager
def _settings_checked() -> Iterator[None]:
    try:
        yield
    except NetworkSettingsError as error:
        raise ClientError(str(error)) from error


def _describe(error: httpx.RequestError) -> str:
    return str(error) or type(error).__name__


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
