"""The description of a set of tiles: TileJSON 3.0."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field


class VectorLayer(BaseModel):
    """A layer of the tiles."""

    id: Annotated[str, Field(examples=["places"])]
    description: str
    fields: Annotated[dict[str, str], Field(description="What the properties of its features mean.")]


class TileJson(BaseModel):
    """What maps need to know about the tiles of a release."""

    tilejson: Literal["3.0.0"] = "3.0.0"
    name: Annotated[str, Field(examples=["Localidades 2018-09"])]
    attribution: Annotated[str, Field(description="The credit to show on the map.")]
    scheme: Literal["xyz"] = "xyz"
    tiles: Annotated[
        list[str],
        Field(
            description="The address of a tile of this release.",
            examples=[["http://127.0.0.1:8000/api/census/localidades/tiles/{z}/{x}/{y}.mvt?release=2018-09"]],
        ),
    ]
    minzoom: Annotated[int, Field(examples=[0])]
    maxzoom: Annotated[int, Field(description="Beyond it, maps enlarge these tiles.", examples=[12])]
    bounds: Annotated[
        list[float],
        Field(
            description="West, south, east, north: the smallest box with every place, in degrees.",
            examples=[[-118.4, 14.5, -86.7, 32.8]],
        ),
    ]
    vector_layers: list[VectorLayer]
