"""Probes and metrics: whether the process runs, whether it is ready, and its metrics for Prometheus."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field

from localidades_api.api.declarations import problem
from localidades_api.api.services import DatabaseDep, NamesDep, ReleasesDep
from localidades_api.catalogue.schemas import Problem
from localidades_api.database.failures import sqlstate_of
from localidades_api.errors import DatabaseUnavailableError, NoReleaseError, SearchUnavailableError
from localidades_api.observability.metrics import COUNTERS, exposition
from localidades_api.releases.tracker import ReleaseTracker

METRICS = "/metrics"  # for the operator: scripts of other origins can't read it
OPERATIONAL = frozenset({"/livez", "/readyz", "/startupz", METRICS})  # never refused for the load

router = APIRouter(tags=["Health"])


class Ready(BaseModel):
    """The service is ready to answer requests."""

    release: str = Field(examples=["2018-09"])
    database: Literal["ok"] = "ok"


class NotReadyProblem(Problem):
    """The database does not answer; if `release` is not null, its cached pages are still served."""

    release: str | None = Field(default=None, examples=["2018-09"])


@router.get("/livez", summary="Check whether the process runs", status_code=204)
async def get_liveness() -> Response:
    """Answer as long as the process and its event loop run."""
    return Response(status_code=204)


@router.get(
    "/readyz",
    summary="Check whether the service is ready",
    responses={
        503: problem(DatabaseUnavailableError(), "The service is not ready; `detail` says why.", NotReadyProblem)
    },
)
async def get_readiness(database: DatabaseDep, releases: ReleasesDep) -> Ready:
    """Answer 200 if the database answers in time and a release is published."""
    try:
        async with asyncio.timeout(database.timeout):
            await releases.check()
    except (DatabaseUnavailableError, TimeoutError) as error:
        raise DatabaseUnavailableError(
            str(error) or "The database did not answer in time.", _served(releases)
        ) from error
    except Exception as error:
        kind = sqlstate_of(error) or type(error).__name__
        sentence = f"An unexpected error ({kind}) prevents reading the releases; see the log."
        raise DatabaseUnavailableError(sentence, _served(releases), is_unforeseen=True) from error
    if releases.served is None:
        raise NoReleaseError
    return Ready(release=releases.served.name)


@router.get(
    "/startupz",
    summary="Check whether the service has started",
    responses={
        503: problem(DatabaseUnavailableError(), "The service has not started; `detail` says why.", NotReadyProblem)
    },
)
async def get_startup(database: DatabaseDep, releases: ReleasesDep, names: NamesDep) -> Ready:
    """Answer 200 if the service is ready, and the names of its release are indexed or can't be."""
    ready = await get_readiness(database, releases)
    if names.is_awaited(await releases.current()):
        raise SearchUnavailableError
    return ready


@router.get(METRICS, include_in_schema=False)
async def get_metrics(request: Request) -> Response:
    """Return the metrics of all workers in Prometheus's text format."""
    collect = getattr(request.state, "collect_metrics", COUNTERS.snapshot)  # `serve` collects those of all workers
    snapshot = collect()
    headers = {"Content-Type": CONTENT_TYPE_LATEST, "X-Content-Type-Options": "nosniff"}
    return Response(await asyncio.to_thread(exposition, snapshot), headers=headers)


def _served(releases: ReleaseTracker) -> dict[str, str]:
    return {"release": releases.served.name} if releases.served else {}
