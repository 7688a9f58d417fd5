"""Releases, what they hold, and what changed between two."""

from datetime import datetime
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field

from localidades_api.catalogue.schemas.envelopes import count_pages
from localidades_api.catalogue.schemas.places import LocalityRecord

_ReleaseName = Annotated[str, Field(description="Name of a release of the catalogue.", examples=["2018-09"])]
_Source = Annotated[str, Field(description="Name of the file that was imported.", examples=["catun_localidad.zip"])]
_Sha256 = Annotated[str, Field(description="SHA-256 digest of that file, in hexadecimal.")]


DEMO_RELEASE = "demo"  # the name of the bundled catalogue, and of no other


class Release(BaseModel):
    """A release: one complete version of the catalogue, which never changes once it is published."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int
    name: _ReleaseName
    source: _Source
    sha256: _Sha256
    states: int
    municipalities: int
    localities: int
    published_at: datetime

    @property
    def total_pages(self) -> int:
        """Pages in its list of localities."""
        return count_pages(self.localities)

    @property
    def is_demo(self) -> bool:
        """Whether its places are invented."""
        return self.name == DEMO_RELEASE


class Totals(BaseModel):
    """The totals of a release."""

    estados: Annotated[int, Field(examples=[32])]
    municipios: Annotated[int, Field(examples=[2463])]
    localidades: Annotated[int, Field(examples=[304363])]

    @classmethod
    def of(cls, release: Release) -> Self:
        """Return a release's."""
        return cls(estados=release.states, municipios=release.municipalities, localidades=release.localities)


class PublishedRelease(BaseModel):
    """A release, as the list of releases shows it."""

    release: _ReleaseName
    current: Annotated[bool, Field(description="Whether requests that name no release read this one.")]
    published_at: datetime
    source: _Source
    sha256: _Sha256
    totals: Totals

    @classmethod
    def of(cls, release: Release, current: Release | None) -> Self:
        """Return a release as that list shows it."""
        return cls(
            release=release.name,
            current=release == current,
            published_at=release.published_at,
            source=release.source,
            sha256=release.sha256,
            totals=Totals.of(release),
        )


class Publication(BaseModel):
    """An entry of the log of publications: when a release became the current one, by whom, and why."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    number: int
    release: str
    previous: str | None
    published_at: datetime
    action: Literal["import", "publish"]
    role: str
    account: str
    reason: str | None


ChangeKind = Literal["added", "removed", "renamed", "relocated", "updated"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)  # a kind's number is its place here


class LocalityChange(BaseModel):
    """How a locality changed between two releases; one that was both renamed and relocated appears twice."""

    change: Annotated[
        ChangeKind, Field(description="`updated` means that columns other than the name and the point changed.")
    ]
    id: Annotated[int, Field(examples=[10010001])]
    before: Annotated[
        LocalityRecord | None, Field(description="The locality in the release `since`; null if it was added.")
    ]
    after: Annotated[
        LocalityRecord | None, Field(description="The locality in the release `name`; null if it was removed.")
    ]


class Resources(BaseModel):
    """The addresses of the lists, relative to the index."""

    estados: Annotated[str, Field(examples=["estados/"])]
    municipios: Annotated[str, Field(examples=["municipios/"])]
    localidades: Annotated[str, Field(examples=["localidades/"])]
    releases: Annotated[str, Field(examples=["releases/"])]


class Index(BaseModel):
    """A release, its totals, and the credit that INEGI's terms of use require."""

    release: _ReleaseName
    demo: Annotated[bool, Field(description="Whether this is the bundled demo, whose places are invented.")]
    published_at: datetime
    source: _Source
    sha256: _Sha256
    totals: Totals
    resources: Resources
    attribution: Annotated[str, Field(description="The credit to show wherever you show the data.")]
