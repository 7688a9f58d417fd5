"""Fetches that concurrent requests share."""

import asyncio

import pytest

from localidades_api.database.pool import may_use_database
from localidades_api.errors import OverloadedError
from localidades_api.releases.single_flight import SingleFlight


async def test_request_that_may_not_use_the_database_is_refused_alone() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    goes_on = asyncio.Event()

    async def fetch() -> int:
        await goes_on.wait()
        if not may_use_database.get():
            raise OverloadedError
        return 1

    async def ask(*, has_place: bool) -> int:
        may_use_database.set(has_place)
        return await flights.run("page", fetch)

    asked = [asyncio.create_task(ask(has_place=has_place)) for has_place in (False, True, False)]
    await asyncio.sleep(0)
    goes_on.set()
    refused, *shared = asked
    with pytest.raises(OverloadedError):
        await refused
    assert await asyncio.gather(*shared) == [1, 1]
