"""The service with labels of places, and with visits, a resource below /api/census that can be written."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from localidades_api.api.services import ReleasesDep, RepositoryDep
from localidades_api.app import create_app
from localidades_api.settings import read_settings

MAX_VISITS = 3


class Visit(BaseModel):
    """Who visited a locality."""

    localidad_id: int
    visitor: str


class NotebookFullError(Exception):
    """No more visits can be recorded."""


_notebook: list[Visit] = []  # of this worker alone, until it ends: keep yours in a database


async def get_notebook() -> list[Visit]:
    """Return the visits so far."""
    return _notebook


Notebook = Annotated[list[Visit], Depends(get_notebook)]

app = create_app(read_settings())


@app.get("/labels/{localidad_id}", tags=["Labels"])
async def get_label(localidad_id: int, releases: ReleasesDep, repository: RepositoryDep, response: Response) -> str:
    """Return the names of a locality, its municipio and its estado."""
    release = await releases.current()
    row = await repository.get_locality(release, localidad_id)
    if row is None:
        raise HTTPException(404, "There is no such locality.")
    # With these two, the response is held until another release is served.
    response.headers["Catalogue-Release"] = release.name
    response.headers["ETag"] = f'"{release.name}.{release.sha256[:12]}"'
    return f"{row.nombre}, {row.municipio_nombre}, {row.estado_nombre}"


visits = APIRouter(prefix="/api/census/visits", tags=["Visits"])


@visits.get("/")
async def list_visits(notebook: Notebook) -> list[Visit]:
    """List the visits."""
    return notebook


@visits.post("/", status_code=201)
async def add_visit(visit: Visit, releases: ReleasesDep, repository: RepositoryDep, notebook: Notebook) -> Visit:
    """Record a visit to a locality of the current release."""
    release = await releases.current()
    if await repository.get_locality(release, visit.localidad_id) is None:
        raise HTTPException(404, "There is no such locality.")
    if len(notebook) >= MAX_VISITS:
        raise NotebookFullError
    notebook.append(visit)
    return visit


app.include_router(visits)


@app.exception_handler(NotebookFullError)
async def refuse_visit(_request: Request, _error: NotebookFullError) -> JSONResponse:
    """Answer NotebookFullError, whichever route raises it."""
    problem = {"title": "Conflict", "status": 409, "detail": f"The notebook has {MAX_VISITS} visits."}
    return JSONResponse(problem, 409, media_type="application/problem+json")
