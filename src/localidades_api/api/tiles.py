"""Maps: vector tiles of a release, the TileJSON that says where they are, and a backdrop of the country."""

import gzip
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.declarations import CACHEABLE, problem
from localidades_api.api.params import ReleaseParam, StrictQuery
from localidades_api.api.public_address import requested_base
from localidades_api.api.services import ReleasesDep, TilesDep
from localidades_api.catalogue.attribution import credit
from localidades_api.catalogue.mercator import MAX_ZOOM, WORLD, Tile
from localidades_api.catalogue.messages import whole_number
from localidades_api.catalogue.schemas import Release
from localidades_api.errors import NotFoundError
from localidades_api.html.renderer import JSON
from localidades_api.http.mvt import MEDIA_TYPE
from localidades_api.http.negotiation import CODINGS
from localidades_api.http.paths import LOCALIDADES
from localidades_api.http.representation import PRIVATE, Representation, digest_of

router = APIRouter(prefix="/localidades", tags=["Map"], responses=CACHEABLE)


def _no_tile() -> NotFoundError:
    return NotFoundError("There is no such tile; `tiles.json` has the highest zoom.")


class VectorLayer(BaseModel):
    """A layer of the tiles."""

    id: str = Field(examples=["places"])
    description: str = Field(examples=["Places, the most populous first."])
    fields: dict[str, str] = Field(
        description="What the properties of its features mean.", examples=[{"nombre": "String: name"}]
    )


class TileJson(BaseModel):
    """The tiles of a release, described for maps."""

    tilejson: Literal["3.0.0"] = "3.0.0"
    name: str = Field(examples=["Localidades 2018-09"])
    attribution: str = Field(
        description="The credit to show on the map.", examples=[credit("2018-09", "en", is_demo=False)]
    )
    scheme: Literal["xyz"] = "xyz"
    tiles: list[str] = Field(
        description="The address of a tile of this release.",
        examples=[["http://127.0.0.1:8000/api/census/localidades/tiles/{z}/{x}/{y}.mvt?release=2018-09"]],
    )
    minzoom: int = Field(examples=[0])
    maxzoom: int = Field(description="Beyond it, maps enlarge these tiles.", examples=[12])
    bounds: list[float] = Field(
        description="West, south, east, north: the smallest box with every place, in degrees.",
        examples=[[-118.4, 14.5, -86.7, 32.8]],
    )
    vector_layers: list[VectorLayer]


_NUMBER = whole_number("The numbers of a tile have the digits 0 to 9 only.")
_LAYERS = [
    VectorLayer(
        id="places",
        description="Places, the most populous first: as many as a tile has room for, at the highest zoom all.",
        fields={
            "nombre": "String: name",
            "cvegeo": "String: official key, nine digits; as a number it is the id of the feature",
            "municipio_id": "Number: key of the municipio",
            "estado_id": "Number: key of the estado",
            "ambito": "String: U (urban) or R (rural)",
            "poblacion": "Number: population",
        },
    ),
    VectorLayer(
        id="backdrop",
        description="One feature of rectangles: where there is any place, in tiles without room for all of them.",
        fields={},
    ),
]


class TilesQuery(StrictQuery):
    """The parameters of maps."""

    release: ReleaseParam = None


@router.get("/tiles.json", summary="Describe tiles", response_model=TileJson)
async def describe_tiles(
    request: Request, query: Annotated[TilesQuery, Query()], releases: ReleasesDep, tiles: TilesDep
) -> Response:
    """Describe the vector tiles of a release as TileJSON: MapLibre, QGIS and others need only this address."""
    release = await releases.get(query.release)
    address = f"{requested_base(request)}{LOCALIDADES}tiles/{{z}}/{{x}}/{{y}}.mvt?release={release.name}"
    chosen = Representation.of(
        request.headers, release, f"json.{digest_of(address.encode())}", cache_control=PRIVATE, codings=CODINGS
    )
    description = TileJson(
        name=f"Localidades {release.name}",
        attribution=release.credit("en"),
        tiles=[address],
        minzoom=0,
        maxzoom=MAX_ZOOM,
        bounds=list(await tiles.bounds(release) or WORLD),
        vector_layers=_LAYERS,
    )
    return chosen.respond(to_json(description), JSON.headers)


@router.get(
    "/tiles/{z}/{x}/{y}.mvt",
    summary="Get tile",
    response_class=Response,
    response_description="The tile; it is empty where there are no places.",
    responses={
        200: {**CACHEABLE[200], "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
        404: problem(_no_tile(), "There is no such tile or no such release."),
    },
)
async def get_tile(  # the numbers have their names on the wire
    request: Request,
    z: Annotated[int, Path(description=f"Zoom of the tile, 0 to {MAX_ZOOM}.", examples=[5]), _NUMBER],
    x: Annotated[int, Path(description="Column of the tile, from the west.", examples=[7]), _NUMBER],
    y: Annotated[int, Path(description="Row of the tile, from the north.", examples=[14]), _NUMBER],
    query: Annotated[TilesQuery, Query()],
    releases: ReleasesDep,
    tiles: TilesDep,
) -> Response:
    """Draw a map tile of a release (Mapbox Vector Tile 2.1, Web Mercator).

    The layer `places` has the most populous places of the tile, as many as fit in 60 kB; if these are not all of them,
    the layer `backdrop` has a point for each cell of a grid of 128 by 128 that holds any place, with its density (1 to
    4). At the highest zoom every place is in its tile.
    """
    tile = Tile(z, x, y)
    if not tile.exists:
        raise _no_tile()
    release = await releases.get(query.release)
    return await _answer(request, query, release, "mvt", MEDIA_TYPE, lambda: tiles.get(release, tile))


@router.get(
    "/backdrop.svg",
    summary="Get backdrop",
    response_class=Response,
    response_description="The drawing.",
    responses={200: {**CACHEABLE[200], "content": {"image/svg+xml": {"schema": {"type": "string"}}}}},
)
async def get_backdrop(
    request: Request, query: Annotated[TilesQuery, Query()], releases: ReleasesDep, tiles: TilesDep
) -> Response:
    """Draw all places of a release as an SVG, without names: the shape of the country (Web Mercator)."""
    release = await releases.get(query.release)
    return await _answer(request, query, release, "svg", "image/svg+xml", lambda: tiles.backdrop(release))


async def _answer(
    request: Request,
    query: TilesQuery,
    release: Release,
    name: str,
    media_type: str,
    draw: Callable[[], Awaitable[bytes]],
) -> Response:
    """Answer with a drawing of a release, which is cached compressed with gzip."""
    is_pinned = query.release is not None
    chosen = Representation.of(request.headers, release, name, codings=["gzip"], is_pinned=is_pinned, is_weak=True)
    chosen.check_modified()
    body = await draw()
    media = {"Content-Type": media_type, "X-Content-Type-Options": "nosniff"}
    return chosen.respond_coded(body if chosen.coding else gzip.decompress(body), media)
