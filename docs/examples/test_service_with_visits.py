"""Tests of the service with visits: on a database, and without one."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from service_with_visits import Visit, app, get_notebook

from localidades_api.api.services import get_releases, get_repository


@pytest.fixture
def notebook() -> Iterator[list[Visit]]:
    """Replace the notebook for one test."""
    visits: list[Visit] = []
    app.dependency_overrides[get_notebook] = lambda: visits
    yield visits
    app.dependency_overrides.clear()


def test_visit_to_a_locality_is_recorded(notebook: list[Visit]) -> None:
    with TestClient(app) as client:  # starts the application: DATABASE_URL has to name a database
        assert client.post("/api/census/visits/", json={"localidad_id": 10010001, "visitor": "Ana"}).status_code == 201
        assert client.post("/api/census/visits/", json={"localidad_id": 1, "visitor": "Ana"}).status_code == 404
    assert [visit.visitor for visit in notebook] == ["Ana"]


class EveryLocality:
    """A repository in which every key has a locality."""

    async def get_locality(self, _release: object, key: int) -> SimpleNamespace:
        """Return a locality."""
        return SimpleNamespace(id=key)


async def get_release() -> SimpleNamespace:
    """Return a release."""
    return SimpleNamespace(name="2026-11")


def test_full_notebook_is_a_conflict(notebook: list[Visit]) -> None:
    app.dependency_overrides[get_releases] = lambda: SimpleNamespace(current=get_release)
    app.dependency_overrides[get_repository] = EveryLocality
    client = TestClient(app)  # outside `with`, it calls the application without starting it
    visit = {"localidad_id": 1, "visitor": "Ana"}
    statuses = [client.post("/api/census/visits/", json=visit).status_code for _ in range(4)]
    assert statuses == [201, 201, 201, 409]
    assert len(notebook) == 3
