"""The wire: what the answers of the service look like, and what the OpenAPI document says of them."""

from localidades_api.schemas.envelopes import LARGEST_FOR_PEOPLE, LARGEST_PAGE_SIZE, PAGE_SIZE, Found, Page
from localidades_api.schemas.places import (
    Locality,
    LocalityDetail,
    LocalityRecord,
    Municipality,
    MunicipalityDetail,
    NearbyPlace,
    Place,
    State,
    Suggestion,
)
from localidades_api.schemas.problems import (
    Fault,
    GoneProblem,
    InvalidPageProblem,
    InvalidParametersProblem,
    NotAcceptableProblem,
    Problem,
)
from localidades_api.schemas.releases import (
    CHANGE_KINDS,
    ChangeKind,
    Index,
    LocalityChange,
    PublishedRelease,
    Release,
    Resources,
    Totals,
)

__all__ = [
    "CHANGE_KINDS",
    "LARGEST_FOR_PEOPLE",
    "LARGEST_PAGE_SIZE",
    "PAGE_SIZE",
    "ChangeKind",
    "Fault",
    "Found",
    "GoneProblem",
    "Index",
    "InvalidPageProblem",
    "InvalidParametersProblem",
    "Locality",
    "LocalityChange",
    "LocalityDetail",
    "LocalityRecord",
    "Municipality",
    "MunicipalityDetail",
    "NearbyPlace",
    "NotAcceptableProblem",
    "Page",
    "Place",
    "Problem",
    "PublishedRelease",
    "Release",
    "Resources",
    "State",
    "Suggestion",
    "Totals",
]
