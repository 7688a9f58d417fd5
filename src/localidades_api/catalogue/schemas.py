"""The schemas of requests and answers; their docstrings and descriptions are texts of the OpenAPI document."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from localidades_api.catalogue.attribution import credit
from localidades_api.catalogue.columns import EVERY_COLUMN, LISTED, MATCHED, RECORD
from localidades_api.catalogue.keys import KEY_PATTERN, PlaceKind
from localidades_api.catalogue.pagination import PAGE_SIZE, count_pages

T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    """One page of a list, and the size of the whole list."""

    quantity: int = Field(description="Records in the whole list.", ge=0, examples=[304363])
    total_pages: int = Field(description="Pages in the whole list.", ge=0, examples=[6088])
    results: list[T] = Field(description=f"The records on this page, at most `page_size` (by default {PAGE_SIZE}).")


def of_column(name: str, default: object = ...) -> Any:  # noqa: ANN401  # as pydantic's Field
    """Return a Field with the description of a column."""
    column = EVERY_COLUMN[name]
    return Field(
        default=default,
        description=column.meaning,
        examples=None if column.example is None else [column.example],
        pattern=f"^[0-9]{{{column.digits}}}$" if column.digits else None,
        ge=0 if column.type == "count" else None,
    )


def _with_columns(names: Iterable[str], *, are_optional: bool = False) -> Any:  # noqa: ANN401  # mypy can't know the fields
    """Return a model with these columns of a locality; optional ones may be null."""
    fields: dict[str, Any] = {}
    for column in map(EVERY_COLUMN.__getitem__, names):
        type_ = column.annotation | None if are_optional or column.nullable else column.annotation
        fields[column.name] = (type_, of_column(column.name, default=None if are_optional else ...))
    return create_model("Columns", **fields)


MatchReason = Literal["key", "label", "exact", "seat", "everyday", "former", "prefix", "words", "near"]


class Locality(_with_columns(LISTED)):  # type: ignore[misc]  # a dynamic base
    """A locality, as the list shows it."""


class LocalityPage(Page[Locality]):
    """A page of localities."""


class State(BaseModel):
    """An estado."""

    id: int = Field(description="The official key (CVE_ENT) read as a number.", examples=[1])
    clave: str = Field(description="The key, two digits.", pattern="^[0-9]{2}$", examples=["01"])
    nombre: str = Field(examples=["Aguascalientes"])
    abreviatura: str | None = Field(description="INEGI's abbreviation.", examples=["Ags."])


class StatePage(Page[State]):
    """A page of estados."""


class Municipality(BaseModel):
    """A municipio, as the list shows it."""

    id: int = Field(description="The official key (CVE_ENT, CVE_MUN) read as a number.", examples=[1001])
    estado_id: int = Field(examples=[1])
    clave: str = Field(description="The key within the estado, three digits.", pattern="^[0-9]{3}$", examples=["001"])
    nombre: str = Field(examples=["Aguascalientes"])
    localidades: int = Field(description="Number of localities in the municipio.", ge=0, examples=[616])


class MunicipalityPage(Page[Municipality]):
    """A page of municipios."""


class MunicipalityDetail(Municipality):
    """A municipio and its estado."""

    estado: State


class LocalityRecord(_with_columns(RECORD)):  # type: ignore[misc]  # a dynamic base
    """A locality with every column of the catalogue; null where INEGI has no data."""


class LocalityDetail(LocalityRecord):
    """A locality with its municipio and its estado."""

    municipio: Municipality
    estado: State


class LabelledLocality(Locality):
    """A locality with a label that distinguishes it from others with the same name."""

    label: str = Field(
        description="Name, municipio and estado; includes the clave if the municipio has another locality"
        " of this name.",
        examples=["Aguascalientes, Aguascalientes, Aguascalientes"],
    )
    poblacion: Annotated[int | None, of_column("poblacion")]
    latitud: Annotated[float | None, of_column("latitud")]
    longitud: Annotated[float | None, of_column("longitud")]


class Suggestion(BaseModel):
    """A locality, municipio or estado that the typed text may mean."""

    kind: PlaceKind = Field(description="What it is.")
    id: int = Field(description="The official key read as a number.", examples=[10010001])
    cvegeo: str = Field(
        description="The official key with leading zeros: nine digits, five for a municipio, two for an estado.",
        pattern=KEY_PATTERN,
        examples=["010010001"],
    )
    municipio_id: int | None = Field(description="The key of the municipio; null for an estado.", examples=[1001])
    clave: str = Field(description="The last part of the key, with leading zeros.", examples=["0001"])
    nombre: str = Field(description="The name, exactly as INEGI publishes it.", examples=["Aguascalientes"])
    label: str = Field(
        description="Name, municipio and estado, with the clave where another place has the same; a label leads"
        " back to its place.",
        examples=["Aguascalientes, Aguascalientes, Aguascalientes"],
    )
    match: MatchReason = Field(
        description="Why it is suggested: its `key` or `label` was typed; its `exact` name; the name of the"
        " municipio that it is the `seat` of, or of the seat of the municipio; an `everyday` name; a `former` name"
        " or key; a `prefix` of its name; `words` of its name and areas; or words `near` them.",
        examples=["prefix"],
    )
    otro_nombre: str | None = Field(description="The name that was recognized, if it is not `nombre`.", examples=[None])
    poblacion: Annotated[int | None, of_column("poblacion")]
    latitud: Annotated[float | None, of_column("latitud")]
    longitud: Annotated[float | None, of_column("longitud")]


class SuggestionResults(BaseModel):
    """Suggestions, the likeliest first."""

    results: list[Suggestion]


class NearbyPlace(LabelledLocality):
    """A locality, and its distance from the point."""

    distancia: float = Field(description="Great-circle distance in metres.", ge=0, examples=[1204.7])


class NearbyPlaceResults(BaseModel):
    """Localities, the nearest first."""

    results: list[NearbyPlace]


_ReleaseName = Annotated[str, Field(description="Name of a release of the catalogue.", examples=["2018-09"])]
_Source = Annotated[str, Field(description="Name of the file that was imported.", examples=["catun_localidad.zip"])]
_Sha256 = Annotated[
    str,
    Field(
        description="SHA-256 digest of that file, in hexadecimal.",
        examples=["6f715e28404a556b8d6291b29c93f23173e5c1bad7e2b49eb96cd76149eeca52"],
    ),
]
_PublishedAt = Annotated[datetime, Field(examples=["2018-09-28T10:12:00Z"])]
_CREDIT = credit("2018-09", "en", is_demo=False)

DEMO_RELEASE = "demo"  # the name of the bundled catalogue; imports refuse it for others


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
        """The number of pages in the list of localities."""
        return count_pages(self.localities)

    @property
    def is_demo(self) -> bool:
        """Whether the places are invented."""
        return self.name == DEMO_RELEASE

    def credit(self, language: Literal["en", "es"]) -> str:
        """Return the credit to show with the data."""
        return credit(self.name, language, is_demo=self.is_demo)


class Totals(BaseModel):
    """The totals of a release."""

    estados: int = Field(examples=[32])
    municipios: int = Field(examples=[2463])
    localidades: int = Field(examples=[304363])

    @classmethod
    def of(cls, release: Release) -> Self:
        """Return the totals of a release."""
        return cls(estados=release.states, municipios=release.municipalities, localidades=release.localities)


class PublishedRelease(BaseModel):
    """A release, as the list of releases shows it."""

    release: _ReleaseName
    current: bool = Field(description="Whether requests that name no release read this one.", examples=[True])
    published_at: _PublishedAt
    source: _Source
    sha256: _Sha256
    totals: Totals

    @classmethod
    def of(cls, release: Release, current: Release | None) -> Self:
        """Return a release for the list of releases."""
        return cls(
            release=release.name,
            current=release == current,
            published_at=release.published_at,
            source=release.source,
            sha256=release.sha256,
            totals=Totals.of(release),
        )


class PublishedReleasePage(Page[PublishedRelease]):
    """A page of releases."""


ChangeKind = Literal["added", "removed", "renamed", "relocated", "updated"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)  # a kind's number is its index


class LocalityChange(BaseModel):
    """A change of a locality between two releases; one that was both renamed and relocated appears twice."""

    change: ChangeKind = Field(description="`updated` means that columns other than the name and the point changed.")
    id: int = Field(examples=[10010001])
    before: LocalityRecord | None = Field(description="The locality in the release `since`; null if it was added.")
    after: LocalityRecord | None = Field(description="The locality in the release `name`; null if it was removed.")


class LocalityChangePage(Page[LocalityChange]):
    """A page of changes."""


class Resources(BaseModel):
    """The addresses of the lists, relative to the index."""

    estados: str = Field(examples=["estados/"])
    municipios: str = Field(examples=["municipios/"])
    localidades: str = Field(examples=["localidades/"])
    releases: str = Field(examples=["releases/"])


class CatalogueIndex(BaseModel):
    """A release, its totals, and the credit that INEGI's terms of use require."""

    release: _ReleaseName
    demo: bool = Field(description="Whether this is the bundled demo, whose places are invented.", examples=[False])
    published_at: _PublishedAt
    source: _Source
    sha256: _Sha256
    totals: Totals
    resources: Resources
    attribution: str = Field(description="The credit to show wherever you show the data.", examples=[_CREDIT])

    @classmethod
    def of(cls, release: Release) -> Self:
        """Return the index of a release."""
        return cls(
            release=release.name,
            demo=release.is_demo,
            published_at=release.published_at,
            source=release.source,
            sha256=release.sha256,
            totals=Totals.of(release),
            resources=Resources(
                estados="estados/", municipios="municipios/", localidades="localidades/", releases="releases/"
            ),
            attribution=release.credit("en"),
        )


_KEY = "^[0-9]{9}$"
_Latitude = Annotated[float | None, Field(description="Degrees north.", ge=-90, le=90, examples=[20.6767])]
_Longitude = Annotated[
    float | None, Field(description="Degrees east: negative in Mexico.", ge=-180, le=180, examples=[-103.3475])
]


class MatchableRow(BaseModel):
    """A row to match: a name with its areas, or a key; other members come back untouched.

    A member is recognized under other names too, such as `localidad`, `nom_mun` or `lat`.
    """

    model_config = ConfigDict(extra="allow")

    nombre: str | None = Field(default=None, description="The name of the place.", examples=["Guadalajra"])
    municipio: str | None = Field(
        default=None, description="The name of its municipio, or its key.", examples=["Guadalajara"]
    )
    estado: str | None = Field(
        default=None, description="The name of its estado, an abbreviation, a code, or its key.", examples=["Jal."]
    )
    cve_mun: str | int | None = Field(
        default=None, description="The key of its municipio, if `municipio` has the name.", examples=["039"]
    )
    latitud: _Latitude = None
    longitud: _Longitude = None
    cvegeo: str | int | None = Field(
        default=None,
        description="The official key, with or without its zero; a withdrawn one leads to its successor. In a row"
        " without a name, that of a municipio or an estado is answered too.",
        examples=["140390001"],
    )
    clave: str | int | None = Field(
        default=None,
        description="The key within the municipio, used with `municipio` if there is no `nombre`.",
        examples=["0001"],
    )


class MatchFault(BaseModel):
    """A difference between a row and a place."""

    code: str = Field(
        description="What differs: `wording`, `article`, `order`, `spacing`, `spelling`, `kind`, `number`,"
        " `contrast`, words `added` or `missing`, `name`, `address`; what is known of the place: `bracket`,"
        " `seat`, `everyday`, `former_name`, `former_key`, `withdrawn_key`, `unknown_key`, `key`; or where it is:"
        " `municipio`, `estado`, `distance`, `point`, `ambito`.",
        examples=["spelling"],
    )
    given: str = Field(description="What the row says.", examples=["Guadalajra"])
    found: str = Field(description="What the catalogue says.", examples=["Guadalajara"])
    penalty: float = Field(
        description="How much it differs, in points, which order the places before their scores are known.",
        ge=0,
        examples=[5.5],
    )


class _Fields(_with_columns(MATCHED, are_optional=True)):  # type: ignore[misc]  # a dynamic base
    """The members that `fields` can choose."""


class MatchCandidate(_Fields):
    """A locality that a row may mean, or a municipio or estado."""

    cvegeo: str = Field(description="The official key.", pattern=KEY_PATTERN, examples=["140390001"])
    id: int = Field(description="The official key read as a number.", examples=[140390001])
    label: str = Field(
        description="Name, municipio and estado, with the clave where another place has the same.",
        examples=["Guadalajara, Guadalajara, Jalisco"],
    )
    score: float = Field(
        description="100 times the estimated probability that it is the right one.", ge=0, le=100, examples=[98.7]
    )
    faults: list[MatchFault]


_RowNumber = Annotated[
    int,
    Field(
        description="The number of the row: the sheet's, as Excel counts; of the line where it begins, in CSV and"
        " NDJSON; and of its place in JSON.",
        ge=1,
        examples=[2],
    ),
]


class MatchPoint(BaseModel):
    """A point in decimal degrees."""

    latitud: float = Field(examples=[20.6767])
    longitud: float = Field(examples=[-103.3475])


class Match(_Fields):
    """The answer to a row; rows are answered in the order in which they were sent."""

    row: _RowNumber
    sent: object = Field(
        description="What was sent: the object, or a line of CSV as an object of texts.",
        examples=[{"nombre": "Guadalajra", "municipio": "Guadalajara", "estado": "Jal."}],
    )
    outcome: Literal["exact", "sure", "ambiguous", "none", "problem", "chosen", "accepted", "rejected"] = Field(
        description="`exact`: the name as the catalogue writes it, and no other place can be meant. `sure`: that"
        " place with at least the probability asked for. `ambiguous`: one of `candidates`, which a person has to"
        " choose. `none`: no place is like it. `problem`: this row can't be read, and `problem` says why."
        " Of a file of answers that comes back: a person has `chosen` the place or typed its key, `accepted` it unseen,"
        " or `rejected` all candidates."
    )
    cvegeo: str | None = Field(
        description="The official key, if the row has a place: nine digits, five for a municipio or two for an estado."
        " The first of `candidates` is the likeliest otherwise.",
        pattern=KEY_PATTERN,
        examples=["140390001"],
    )
    id: int | None = Field(description="The same key read as a number.", examples=[140390001])
    label: str | None = Field(
        description="Name, municipio and estado of that place.", examples=["Guadalajara, Guadalajara, Jalisco"]
    )
    score: float | None = Field(
        description="100 times the estimated probability that it is the right one; null for no place.",
        ge=0,
        le=100,
        examples=[98.7],
    )
    margin: float | None = Field(
        description="The lead over the next place, or `score` if there is none.", ge=0, le=100, examples=[96.2]
    )
    faults: list[MatchFault] = Field(description="What differs between the row and the place that is most like it.")
    candidates: list[MatchCandidate] = Field(
        description="The places that are most like the row; empty if `exact` or `sure`.", max_length=5
    )
    withdrawn: str | None = Field(
        description="The key of a place of an earlier release that had this name or key and has no successor.",
        pattern=_KEY,
        examples=["010010002"],
    )
    problem: str | None = Field(
        description="Why this row can't be answered; beside another outcome, what of the row was left out.",
        examples=["Give both `latitud` and `longitud`."],
    )
    point: MatchPoint | None = Field(description="The point of the row in Mexico, as its degrees were read.")


class MatchResults(BaseModel):
    """Answers, in the order in which the rows were sent."""

    results: list[Match]


class MatchPreview(BaseModel):
    """The reading of a table before its rows are matched."""

    sheets: list[str] = Field(
        description="The visible sheets of a workbook; none for other formats.", examples=[["Visitas"]]
    )
    sheet: str | None = Field(description="The sheet that is read.", examples=["Visitas"])
    header_row: int | None = Field(
        description="The number of the row of that sheet with the header.", ge=1, examples=[6]
    )
    has_header: bool = Field(
        description="Whether a row names the columns; without one, they have the names of their roles.", examples=[True]
    )
    note: str | None = Field(
        description="That sorting the sheet would part the answers from their rows, and what to do, or that another"
        " sheet has a list as well; null for neither.",
        examples=[None],
    )
    quantity: int = Field(description="How many rows there are.", ge=0, examples=[200])
    kind: PlaceKind | None = Field(
        description="What each row is about; null if no row can be read.", examples=["localidad"]
    )
    columns: list[str] = Field(
        description="The columns of the table. One without a header, or with that of another, has a name of its"
        " own, such as `column 2`.",
        examples=[["Folio", "Localidad", "Entidad"]],
    )
    roles: dict[str, str] = Field(
        description="The column of each parameter that names one, such as `nombre`.",
        examples=[{"nombre": "Localidad", "estado": "Entidad"}],
    )
    rows: list[list[str]] = Field(
        description="The first five rows: the text of each column, cut after 200 characters.",
        examples=[[["001", "El Zapote", "Jalisco"]]],
    )
    unused: list["UnusedColumn"] = Field(description="The columns that may say more of the rows, and are not read.")


class UnusedColumn(BaseModel):
    """A column without a role."""

    column: str = Field(description="Its name among the `columns`.", examples=["Paraje"])
    role: str = Field(
        description="What it may have: in a list of municipios or estados, places; otherwise the areas of the rows.",
        examples=["nombre"],
    )


class PointRow(BaseModel):
    """A row with a point; other members come back untouched."""

    model_config = ConfigDict(extra="allow")

    latitud: _Latitude = None
    longitud: _Longitude = None


class NearestPlaces(BaseModel):
    """The answer to a point; points are answered in the order in which they were sent."""

    row: _RowNumber
    sent: object = Field(
        description="What was sent: the object, or a line of CSV as an object of texts.",
        examples=[{"latitud": 20.6767, "longitud": -103.3475}],
    )
    results: list[NearbyPlace] = Field(description="The nearest localities, the nearest first.")
    problem: str | None = Field(
        description="Why this row can't be answered.", examples=["It has no `latitud` and `longitud`."]
    )


class NearestPlacesResults(BaseModel):
    """Answers, in the order in which the points were sent."""

    results: list[NearestPlaces]


class Fault(BaseModel):
    """An invalid parameter."""

    parameter: str = Field(examples=["page"])
    message: str = Field(examples=["Digits 0 to 9 only."])


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(
        description="The kind of problem, as the relative address of a page that explains it.",
        examples=["/problems#not-found"],
    )
    title: str = Field(description="The kind of problem in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(
        description="What was wrong with this request, and what to do.", examples=["There is no such release."]
    )


class InvalidPageProblem(Problem):
    """A page past the last one, or a release that does not exist."""

    total_pages: int | None = Field(
        default=None, description="Pages in the list, if the page is past the last one.", examples=[6088]
    )


class GoneProblem(Problem):
    """A key that an earlier release had and this one does not."""

    last_release: str = Field(description="The last release that had the key.", examples=["2012-06"])
    successor: int | None = Field(
        default=None,
        description="The key of the one locality that now has the same name at the same point, if there is one.",
        examples=[10010002],
    )


class InvalidParametersProblem(Problem):
    """Invalid parameters."""

    errors: Sequence[Fault] = Field(description="Each invalid parameter, and what is wrong with it.")


class InvalidRowsProblem(Problem):
    """Invalid parameters, or rows that can't be read."""

    errors: Sequence[Fault] | None = Field(
        default=None, description="Each invalid parameter, if the parameters are at fault."
    )


class UnsupportedMediaTypeProblem(Problem):
    """A body of a media type that the resource does not read."""

    supported: Sequence[str] = Field(
        description="The media types that the resource reads.", examples=[["application/json", "text/csv"]]
    )


class NotAcceptableProblem(Problem):
    """No representation that the Accept header allows."""

    available: Sequence[str] = Field(
        description="The media types that the resource has.", examples=[["application/json", "text/html"]]
    )
