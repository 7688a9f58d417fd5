"""Gets answers from a running service over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from pydantic_core import from_json

from localidades_api.cli.mirroring.upstream import Head, RecordResponse, Sink, fetch
from localidades_api.cli.service import Service
from localidades_api.errors import MirrorError
from localidades_api.http.paths import LOCALIDADES

_TIMEOUT = 60.0  # seconds without a byte
_TRIES = 8
_RETRY_INTERVAL = 0.5  # seconds before the second try; each further pause is twice as long, up to 30
_MAX_RETRY_INTERVAL = 30.0
_MAX_CONCURRENT_REQUESTS = 8  # records asked for at one time by each process
_BUSY = {429, 502, 503, 504}


class Remote:
    """Asks a service, and asks again while it is busy or away."""

    def __init__(self, service: Service, client: httpx.AsyncClient) -> None:
        self._service = service
        self._client = client

    async def ask(self, target: str, sink: Sink, accept: str = "application/json") -> Head:
        """Send a GET; a service that stays busy or away for a minute raises MirrorError."""
        pause = _RETRY_INTERVAL
        for _ in range(_TRIES):
            try:
                head = await self._ask_once(target, sink, accept)
            except httpx.ConnectError as error:
                why = str(error) or type(error).__name__
            except httpx.HTTPError as error:  # a part of the body may have been written: begin again with the command
                raise MirrorError(
                    f"The answer to {target} broke off ({error!r}). Run the command again to go on."
                ) from error
            else:
                if head.status not in _BUSY:
                    return head
                why = f"it answers {head.status}"
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RETRY_INTERVAL)
        raise MirrorError(
            f"The service at {self._service.root} does not answer: {why}. Run the command again to go on."
        )

    async def _ask_once(self, target: str, sink: Sink, accept: str) -> Head:
        address = self._service.root + target
        async with self._client.stream("GET", address, headers={"Accept": accept}) as response:
            if response.status_code not in _BUSY:
                async for chunk in response.aiter_raw():
                    sink(chunk)
            return Head(response.status_code, dict(response.headers))

    async def localities(self, release: str, municipios: Sequence[int]) -> AsyncIterator[RecordResponse]:
        """Yield the answers to the localities of these municipios, some asked for at one time."""
        for municipio in municipios:
            ids = sorted([id_ async for id_ in self._keys(release, municipio)])
            for start in range(0, len(ids), _MAX_CONCURRENT_REQUESTS):
                some = ids[start : start + _MAX_CONCURRENT_REQUESTS]
                answers = await asyncio.gather(
                    *(fetch(self, f"{LOCALIDADES}{id_}/?format=json&release={release}") for id_ in some)
                )
                for id_, (head, body) in zip(some, answers, strict=True):
                    if head.status != httpx.codes.OK:
                        raise MirrorError(f"The service answers {head.status} for the locality {id_} that it lists.")
                    yield RecordResponse(id_, body)

    async def _keys(self, release: str, municipio: int) -> AsyncIterator[int]:
        page, pages = 1, 1
        while page <= pages:
            query = f"municipio_id={municipio}&page_size=1000&page={page}&format=json&release={release}"
            head, body = await fetch(self, f"{LOCALIDADES}?{query}")
            if head.status != httpx.codes.OK:
                raise MirrorError(f"The service answers {head.status} for {LOCALIDADES}?{query}.")
            listed = from_json(body)
            pages, page = listed["total_pages"], page + 1
            for one in listed["results"]:
                yield one["id"]


@asynccontextmanager
async def open_remote(url: str) -> AsyncIterator[Remote]:
    """Open a client of the service at an address; raise ServiceError if it is no address."""
    service = Service.parse(url, None)
    auth = (service.address.username, service.address.password) if service.address.username else None
    # What a mirror compresses it has to get uncompressed.
    async with httpx.AsyncClient(auth=auth, headers={"Accept-Encoding": "identity"}, timeout=_TIMEOUT) as client:
        yield Remote(service, client)
