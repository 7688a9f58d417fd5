"""The answers of the extension, as the OpenAPI document describes them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from localidades_api.catalogue.schemas import NearestPlaces, PointRow, State

_EDITION = Field(description="The edition of the outlines.", examples=["2025"])


class MunicipioAtPoint(BaseModel):
    """The municipio that a point lies in."""

    id: int = Field(description="The official key read as a number.", examples=[1001])
    cvegeo: str = Field(description="The official key.", pattern="^[0-9]{5}$", examples=["01001"])
    nombre: str = Field(examples=["Aguascalientes"])
    estado: State | None = Field(description="Null if the release does not have it.")
    edition: Annotated[str, _EDITION]
    in_release: bool = Field(description="Whether the release has this municipio.", examples=[True])


class MunicipioAtPointResults(BaseModel):
    """The municipio of a point; no result at sea and abroad, and where the outlines do not reach."""

    results: list[MunicipioAtPoint] = Field(max_length=1)
    outlines: dict[str, str | int | list[int]] = Field(
        description="Their `edition`, number of `municipios`, and `estados`."
    )


class LocatedRow(PointRow):
    """A row with a point and, if it is to be judged, its own municipio; other members come back untouched."""

    municipio: str | None = Field(
        default=None, description="The name or key of its municipio.", examples=["Jesús María"]
    )
    estado: str | None = Field(default=None, description="The name or key of its estado.", examples=["Ags."])
    cve_mun: str | int | None = Field(default=None, description="The key of its municipio.", examples=["005"])
    cvegeo: str | int | None = Field(
        default=None, description="The key of its municipio or locality.", examples=["01005"]
    )


class LocatedPoint(NearestPlaces):
    """The answer to a row; rows are answered in the order in which they were sent."""

    results: list[MunicipioAtPoint] = Field(max_length=1)  # type: ignore[assignment]  # of another kind
    agrees: bool | None = Field(
        description="Whether the point lies in the row's own municipio; null if not known.", examples=[True]
    )


class LocatedPointResults(BaseModel):
    """Answers, in the order in which the points were sent."""

    results: list[LocatedPoint]


class OutlineFeature(BaseModel):
    """An outline as a feature of GeoJSON (RFC 7946), with eight decimals."""

    type: Literal["Feature"]
    id: int = Field(examples=[1001])
    geometry: dict[str, Any] = Field(description="A MultiPolygon.")
    properties: dict[str, str | None] = Field(
        description="`cvegeo`, `edition`, and `nombre`, which is null for an estado."
    )
