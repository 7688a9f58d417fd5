"""Records by key, with 404 or 410 for a key that a release does not have."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from fastapi import Request
from sqlalchemy import Row, Table
from starlette.responses import Response

from localidades_api.api.params import ReleaseQuery
from localidades_api.api.redirects import redirect
from localidades_api.api.responses import ResponseBuilder
from localidades_api.api.services import Services
from localidades_api.catalogue.schemas import GoneProblem, Problem, Release
from localidades_api.database.models import localities
from localidades_api.errors import GoneError, NotFoundError

NO_KEY: dict[int | str, dict[str, Any]] = {
    308: {"description": "Redirects to the key without its leading zero."},
    404: {
        "model": Problem,
        "description": "Neither this release nor an earlier one has the key, or the release does not exist.",
    },
    410: {"model": GoneProblem, "description": "An earlier release had the key, and this one does not."},
}


async def answer_by_key(
    request: Request,
    query: ReleaseQuery,
    services: Services,
    table: Table,
    id_: int,
    get: Callable[[Release, int], Awaitable[Row[Any] | None]],
    describe: Callable[[Row[Any]], Mapping[str, Any]],
    *,
    template: str,
    context: Callable[[Release, Mapping[str, Any]], Awaitable[dict[str, Any]]] | None = None,
) -> Response:
    """Answer with the record of a key, or redirect an address with leading zeros to the one without them."""
    if request.scope["path"].rstrip("/").rpartition("/")[2] != str(id_):
        return redirect(request, f"../{id_}/")
    builder = await ResponseBuilder.begin(request, query, services)
    if context:  # the HTML page may show other releases
        builder = replace(builder, page_variant=f".{services.releases.fingerprint}")
    if builder.is_not_modified:
        return builder.not_modified()
    row = await get(builder.release, id_)
    if row is None:
        return await refuse_unknown(services, table, builder.release, id_)
    content = describe(row)
    further = await context(builder.release, content) if context and builder.wants_html else {}
    return builder.answer(template, row.nombre, content, **further)


async def refuse_unknown(services: Services, table: Table, release: Release, id_: int) -> NoReturn:
    """Raise GoneError for a key that an earlier release had, else NotFoundError."""
    last = await services.repository.find_last_release(table, release, id_)
    if last is None:
        raise NotFoundError("Neither this release nor an earlier one has this key.")
    successor = None
    if table is localities:
        successor = await services.repository.find_successor(release, last.id, id_)
    raise GoneError(last.name, successor)
