"""The query parameters of the census, and the check of every query: no parameter is unknown or repeated."""

from collections import Counter
from decimal import Decimal
from typing import Annotated, Literal, cast, get_args
from urllib.parse import unquote_to_bytes

from fastapi import Path, Request
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from localidades_api.catalogue.filters import (
    DEFAULT_AREA_SORT,
    DEFAULT_SORT,
    MAX_TEXT_LENGTH,
    AmbitoParam,
    AreaSearchParam,
    FieldsParam,
    LocalityFilters,
    MunicipalityFieldsParam,
    MunicipalityParam,
    MunicipalitySortParam,
    Omittable,
    SortParam,
    StateFieldsParam,
    StateParam,
    StateSortParam,
)
from localidades_api.catalogue.keys import NameOfRelease, PlaceKind
from localidades_api.catalogue.messages import plain_decimal, plain_name, several_of, whole_number
from localidades_api.catalogue.pagination import PAGE_SIZE, PageNumber, PageSize, Paging
from localidades_api.catalogue.schemas import ChangeKind
from localidades_api.downloads.formats import DownloadFormat
from localidades_api.errors import InvalidParametersError, NotFoundError
from localidades_api.html import renderer
from localidades_api.html.languages.translators import Language

# Named types: the OpenAPI document has each of them once, and generated clients give it that name.
Format = TypeAliasType("Format", renderer.Format)

LanguageParam = Annotated[
    Omittable[Language],
    Field(
        description="Language of the browsable page; by default the one that Accept-Language prefers.", examples=["es"]
    ),
]
ReleaseParam = Annotated[
    Omittable[NameOfRelease],
    Field(description="Name of the release to read; by default the current one.", examples=["2018-09"]),
]


class StrictQuery(BaseModel):
    """A query that refuses unknown parameters."""

    model_config = ConfigDict(extra="forbid")


class LanguageQuery(StrictQuery):
    """The parameters of a document for programs, in the language that they name."""

    lang: LanguageParam = None


class NegotiatedQuery(StrictQuery):
    """The parameters of a resource with several representations, which `format` of a subclass names."""

    format: Omittable[str] = None
    lang: LanguageParam = None


class RepresentationQuery(NegotiatedQuery):
    """The parameters of every resource that is JSON and a page."""

    format: Omittable[Format] = Field(
        default=None,
        description="Representation, which overrides the Accept header. `api` is the browsable page.",
        examples=["json"],
    )


class ReleaseQuery(RepresentationQuery):
    """The parameters of every resource of a release."""

    release: ReleaseParam = None


_OF_EACH_LINK = {"page", "page_size", "format", "lang", "release"}


class PagedQuery(BaseModel):
    """The parameters of a list in pages."""

    page: PageNumber = 1
    page_size: PageSize = PAGE_SIZE

    @property
    def link_parameters(self) -> dict[str, str]:
        """The parameters that links to other pages keep, in addition to those of the page and the representation."""
        chosen = self.model_dump(exclude=_OF_EACH_LINK, exclude_defaults=True)
        return {name: str(value) for name, value in chosen.items()}

    def paging(self, quantity: int, **pinned: str) -> Paging:
        """Return the requested page of so many records; raise InvalidPageError for one past the last."""
        return Paging(quantity, self.page, self.page_size, {**pinned, **self.link_parameters}).check()


class AreasQuery(PagedQuery, ReleaseQuery):
    """The parameters of a list of areas."""

    search: AreaSearchParam = None


class StatesQuery(AreasQuery):
    """The parameters of the list of estados."""

    sort: StateSortParam = DEFAULT_AREA_SORT
    fields: StateFieldsParam = None


class MunicipalitiesQuery(AreasQuery):
    """The parameters of the list of municipios."""

    estado_id: StateParam = None
    sort: MunicipalitySortParam = DEFAULT_AREA_SORT
    fields: MunicipalityFieldsParam = None


class LocalitiesQuery(LocalityFilters, PagedQuery, ReleaseQuery):
    """The parameters of the list of localities."""

    sort: SortParam = DEFAULT_SORT
    fields: FieldsParam = None


class LocalityQuery(ReleaseQuery):
    """The parameters of a locality."""

    fields: FieldsParam = None


_KIND = "|".join(get_args(PlaceKind))


class SuggestQuery(ReleaseQuery):
    """The parameters of a suggestion."""

    q: str = Field(
        max_length=MAX_TEXT_LENGTH,
        description="What has been typed so far: a name, with or without its municipio or estado, or a key.",
        examples=["guadal"],
    )
    kind: Annotated[str, several_of(get_args(PlaceKind))] = Field(
        default="localidad",
        description="What to suggest: `localidad`, `municipio`, `estado`, or several, separated by commas.",
        examples=["localidad,municipio"],
        json_schema_extra={"pattern": f"^({_KIND})(,({_KIND}))*$"},
    )
    limit: Annotated[int, whole_number("Use a whole number from 1 to 20.")] = Field(
        default=10, ge=1, le=20, description="Maximum number of suggestions.", examples=[10]
    )
    estado_id: StateParam = None
    municipio_id: MunicipalityParam = None

    @property
    def kinds(self) -> "tuple[PlaceKind, ...]":
        """The kinds of places to suggest."""
        return cast("tuple[PlaceKind, ...]", tuple(self.kind.split(",")))


class PointQuery(ReleaseQuery):
    """The parameters of what is at a point."""

    lat: Annotated[
        float, plain_decimal("A latitude is a number from -90 to 90 with up to 25 decimals, such as 21.88.")
    ] = Field(ge=-90, le=90, description="Latitude in degrees north, without an exponent.", examples=[21.88])
    lon: Annotated[
        float, plain_decimal("A longitude is a number from -180 to 180 with up to 25 decimals, such as -102.3.")
    ] = Field(ge=-180, le=180, description="Longitude in degrees east, without an exponent.", examples=[-102.3])


class NearestQuery(PointQuery):
    """The parameters of a search by place."""

    limit: Annotated[int, whole_number("Use a whole number from 1 to 100.")] = Field(
        default=10, ge=1, le=100, description="Maximum number of places.", examples=[10]
    )


class MapQuery(ReleaseQuery):
    """The parameters of the map: the filters that can be applied to each of its points."""

    municipio_id: MunicipalityParam = None
    estado_id: StateParam = None
    ambito: AmbitoParam = None

    @property
    def filters(self) -> LocalityFilters:
        """The same filters as those of a list."""
        return LocalityFilters(municipio_id=self.municipio_id, estado_id=self.estado_id, ambito=self.ambito)


class DownloadQuery(LocalityFilters, StrictQuery):
    """The parameters of a download."""

    format: Omittable[DownloadFormat] = Field(
        default=None,
        description="Format of the file, which overrides the Accept header; CSV by default. `xlsx` is an Excel"
        " workbook, `parquet` GeoParquet, `gpkg` GeoPackage.",
        examples=["csv"],
    )
    release: ReleaseParam = None


class FileQuery(LocalityFilters, StrictQuery):
    """The parameters of a download whose address says the format."""

    release: ReleaseParam = None


class ReleasesQuery(PagedQuery, RepresentationQuery):
    """The parameters of the list of releases."""


class ChangesQuery(PagedQuery, NegotiatedQuery):
    """The parameters of a list of changes."""

    since: NameOfRelease = Field(description="Name of the release from which the changes lead.", examples=["2012-06"])
    change: Omittable[ChangeKind] = Field(default=None, description="Only changes of this kind.", examples=["renamed"])
    estado_id: StateParam = None
    format: Omittable[Literal["json", "api", "ndjson", "csv"]] = Field(
        default=None,
        description="Representation, which overrides the Accept header. `ndjson` and `csv` are files of all changes,"
        " or of those on the page that the query names.",
        examples=["json"],
    )


ReleaseName = Annotated[
    NameOfRelease, Path(description="Name of the release to which the changes lead.", examples=["2018-09"])
]


def parameters_of(query: BaseModel) -> dict[str, str]:
    """Return the parameters that a request gives, each in one spelling, however the request spelled it."""
    values = query.model_dump(exclude_unset=True)
    # A number as `str` writes it may have an exponent, which no parameter takes.
    return {
        name: f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value) for name, value in values.items()
    }


async def check_request(request: Request) -> None:
    """Refuse a query that parsers may read in different ways, and a path that ends in a newline.

    Most parsers silently drop one of two equal parameters, and the client gets the wrong data. Raises
    InvalidParametersError for one, and for a query that isn't UTF-8 or has a NUL.
    Raises NotFoundError for a path that ends in a newline, which routes match (`$` in their patterns).
    """
    if request.scope["path"].endswith("\n"):
        raise NotFoundError("There is nothing at this address.")
    if not request.scope["query_string"]:
        return
    try:
        text = unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise InvalidParametersError([("query", "The query is not UTF-8.")]) from None
    if "\0" in text:
        raise InvalidParametersError([("query", "The query contains a NUL character.")])
    counts = Counter(name for name, _ in request.query_params.multi_items())
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise InvalidParametersError([(plain_name(name), "Give this parameter only once.") for name in repeated])
