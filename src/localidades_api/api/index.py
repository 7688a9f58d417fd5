"""The index of a release: its totals, the addresses of the lists, and the attribution."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from localidades_api.api.direct_route import DirectRoute
from localidades_api.api.params import ReleaseQuery
from localidades_api.api.responses import CACHEABLE, ResponseBuilder
from localidades_api.api.services import ServicesDep
from localidades_api.api.strict import STRICT
from localidades_api.catalogue.schemas import (
    Index,
    Release,
    Resources,
    Totals,
)
from localidades_api.http.paths import PREFIX

router = APIRouter(route_class=DirectRoute, prefix=PREFIX, tags=["Releases"], responses=CACHEABLE)


@router.get("/", summary="Show a release and its totals", response_model=Index, dependencies=STRICT)
async def get_index(request: Request, query: Annotated[ReleaseQuery, Query()], services: ServicesDep) -> Response:
    """Show the release, its totals, the addresses of the lists, and the credit to INEGI."""
    builder = await ResponseBuilder.begin(request, query, services)
    if builder.is_not_modified:
        return builder.not_modified()
    return builder.answer("index.html", "Census", describe_release(builder.release).model_dump())


def describe_release(release: Release) -> Index:
    """Return the index of a release, with the attribution that INEGI's terms of free use require."""
    if release.is_demo:
        attribution = "Demo: the municipios and localities are invented; they are not INEGI data."
    else:
        attribution = (
            "Fuente: INEGI, Catálogo Único de Claves de Áreas Geoestadísticas Estatales, Municipales y Localidades"
            f" ({release.name}). Rearranged by this service, which INEGI does not endorse."
        )
    return Index(
        release=release.name,
        demo=release.is_demo,
        published_at=release.published_at,
        source=release.source,
        sha256=release.sha256,
        totals=Totals.of(release),
        resources=Resources(
            estados="estados/", municipios="municipios/", localidades="localidades/", releases="releases/"
        ),
        attribution=attribution,
    )
