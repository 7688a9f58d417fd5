"""The wire: what the answers of the service look like, and what the OpenAPI document says of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

PAGE_SIZE = 50

_ReleaseName = Annotated[str, Field(description="Name of a release of the catalogue.", examples=["2018-09"])]


class Locality(BaseModel):
    """A locality, as the list shows it."""

    id: Annotated[
        int,
        Field(description="The official key (CVEGEO) read as a number; it never changes.", examples=[10010001]),
    ]
    municipio_id: Annotated[
        int,
        Field(description="The key of its municipio (CVE_ENT, CVE_MUN) read as a number.", examples=[1001]),
    ]
    clave: Annotated[
        str,
        Field(
            description="The key within the municipio (CVE_LOC), with its zeros; many localities share one.",
            pattern="^[0-9]{4}$",
            examples=["0001"],
        ),
    ]
    nombre: Annotated[str, Field(description="The name, exactly as INEGI publishes it.", examples=["Aguascalientes"])]


class Page(BaseModel, Generic[T]):
    """One page of a list, and the size of the whole."""

    quantity: Annotated[int, Field(description="Records in the whole list.", ge=0, examples=[304363])]
    total_pages: Annotated[int, Field(description="Pages in the whole list.", ge=0, examples=[6088])]
    results: Annotated[list[T], Field(description=f"The records of this page, {PAGE_SIZE} at most.")]


class Release(BaseModel):
    """A release: one whole cut of the catalogue, which never changes once it is published."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int
    name: _ReleaseName
    source: Annotated[str, Field(description="Name of the file that was imported.")]
    sha256: Annotated[str, Field(description="Digest of that file.")]
    states: int
    municipalities: int
    localities: int
    published_at: datetime

    @property
    def total_pages(self) -> int:
        """Pages in its list of localities."""
        return -(-self.localities // PAGE_SIZE)

    @property
    def is_demo(self) -> bool:
        """Whether its places are invented."""
        return self.name == "demo"


class Totals(BaseModel):
    """How much a release holds."""

    estados: Annotated[int, Field(examples=[32])]
    municipios: Annotated[int, Field(examples=[2463])]
    localidades: Annotated[int, Field(examples=[304363])]


class Resources(BaseModel):
    """Where the lists are, relative to the index."""

    localidades: Annotated[str, Field(examples=["localidades/"])]


class Index(BaseModel):
    """The release that is served, its totals, and the credit that INEGI's terms of use ask for."""

    release: _ReleaseName
    demo: Annotated[bool, Field(description="Whether this is the bundled demo, whose places are invented.")]
    published_at: datetime
    source: Annotated[str, Field(description="Name of the file that was imported.", examples=["catun_localidad.zip"])]
    sha256: Annotated[str, Field(description="Digest of that file, in hexadecimal.")]
    totals: Totals
    resources: Resources
    attribution: Annotated[str, Field(description="The source, to be credited wherever the data are shown.")]


class Fault(BaseModel):
    """A parameter that can't be used."""

    parameter: Annotated[str, Field(examples=["page"])]
    message: Annotated[str, Field(examples=["Digits 0 to 9 only."])]


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: Annotated[str, Field(description="Which kind of problem this is.", examples=["about:blank"])]
    title: Annotated[str, Field(description="The kind in words.", examples=["Not Found"])]
    status: Annotated[int, Field(description="The HTTP status.", examples=[404])]
    detail: Annotated[str, Field(description="What was wrong with this request, and what to do.")]


class InvalidPageProblem(Problem):
    """A page past the last, or a release that there is not."""

    total_pages: Annotated[int | None, Field(description="Pages there are, where a page was asked for.")] = None


class InvalidParametersProblem(Problem):
    """Parameters that can't be used."""

    errors: Annotated[Sequence[Fault], Field(description="Each parameter that is wrong, and why.")]


class NotAcceptableProblem(Problem):
    """No representation that the Accept header allows."""

    available: Annotated[Sequence[str], Field(description="The media types there are.")]
