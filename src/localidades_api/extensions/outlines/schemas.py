"""The answers of the extension, as the OpenAPI document describes them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from localidades_api.catalogue.schemas import NearestPlaces, PointRow, State

_EDITION = Field(description="The edition of the outlines.", examples=["2025"])


class MunicipioAtPoint(BaseModel):
    """The municipio that a point lies in."""

    id: Annotated[int, Field(description="The official key read as a number.", examples=[1001])]
    cvegeo: Annotated[str, Field(description="The official key.", pattern="^[0-9]{5}$", examples=["01001"])]
    nombre: Annotated[str, Field(examples=["Aguascalientes"])]
    estado: Annotated[State | None, Field(description="Null if the release does not have it.")]
    edition: Annotated[str, _EDITION]
    in_release: Annotated[bool, Field(description="Whether the release has this municipio.", examples=[True])]


class MunicipioAtPointResults(BaseModel):
    """The municipio of a point; no result at sea and abroad, and where the outlines do not reach."""

    results: Annotated[list[MunicipioAtPoint], Field(max_length=1)]
    outlines: Annotated[
        dict[str, str | int | list[int]], Field(description="Their `edition`, number of `municipios`, and `estados`.")
    ]


class LocatedRow(PointRow):
    """A row with a point and, if it is to be judged, its own municipio; other members come back untouched."""

    municipio: Annotated[
        str | None, Field(description="The name or key of its municipio.", examples=["Jesús María"])
    ] = None
    estado: Annotated[str | None, Field(description="The name or key of its estado.", examples=["Ags."])] = None
    cve_mun: Annotated[str | int | None, Field(description="The key of its municipio.", examples=["005"])] = None
    cvegeo: Annotated[
        str | int | None, Field(description="The key of its municipio or locality.", examples=["01005"])
    ] = None


class LocatedPoint(NearestPlaces):
    """The answer to a row; rows are answered in the order in which they were sent."""

    results: Annotated[list[MunicipioAtPoint], Field(max_length=1)]  # type: ignore[assignment]  # of another kind
    agrees: Annotated[
        bool | None,
        Field(description="Whether the point lies in the row's own municipio; null if not known.", examples=[True]),
    ]


class LocatedPointResults(BaseModel):
    """Answers, in the order in which the points were sent."""

    results: list[LocatedPoint]


class OutlineFeature(BaseModel):
    """An outline as a feature of GeoJSON (RFC 7946), with eight decimals."""

    type: Literal["Feature"]
    id: Annotated[int, Field(examples=[1001])]
    geometry: Annotated[dict[str, Any], Field(description="A MultiPolygon.")]
    properties: Annotated[
        dict[str, str | None], Field(description="`cvegeo`, `edition`, and `nombre`, which is null for an estado.")
    ]
