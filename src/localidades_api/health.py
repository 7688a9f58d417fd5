"""Probes: whether the process runs, and whether it can serve."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from localidades_api.router import Catalogue
from localidades_api.schemas import Problem

router = APIRouter(tags=["health"])


class Ready(BaseModel):
    """The process can answer requests."""

    release: str


@router.get("/livez", status_code=204)
async def get_liveness() -> Response:
    """Tell that the process runs and its event loop turns."""
    return Response(status_code=204)


@router.get("/readyz", responses={503: {"model": Problem, "description": "Not now; `detail` says why."}})
async def get_readiness(catalogue: Annotated[Catalogue, Depends(Catalogue.of)]) -> Ready:
    """Tell that the database answers and a release is published."""
    await catalogue.releases.refresh()
    release = await catalogue.releases.current()
    return Ready(release=release.name)
