"""The options of a match, declared once for the command `match`, `Catalogue.match` and the queries of the API."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from localidades_api.bulk.columns import Reading
from localidades_api.bulk.roles import ROLES, Roles
from localidades_api.catalogue.columns import MATCHED_BY_DEFAULT
from localidades_api.catalogue.filters import MatchedFields, Omittable
from localidades_api.catalogue.keys import PlaceKind
from localidades_api.catalogue.messages import plain_decimal, whole_number
from localidades_api.catalogue.schemas import MatchableRow
from localidades_api.html.languages.translators import LANGUAGES, Language
from localidades_api.names.reading.areas import AreaBook
from localidades_api.names.weights import MAX_SURE, MIN_SURE, SURE

Column = Annotated[
    Omittable[str],
    Field(
        max_length=100,
        description="Header of the column with this value; empty if no column has it.",
        examples=["LOCALIDAD"],
    ),
]

_AreaColumn = Annotated[
    Omittable[str],
    Field(
        max_length=100,
        description="Header of the column with this area; or the area of the rows that give none, by name or key.",
        examples=["Guerrero"],
    ),
]


class ReadingOptions(BaseModel):
    """The options of reading a body or a file of rows: a column is guessed unless it is named."""

    model_config = ConfigDict(extra="forbid")

    sheet: Annotated[
        Omittable[str],
        Field(
            min_length=1,
            max_length=31,
            description="Name of the sheet of a workbook; by default the first visible one with a recognized column.",
            examples=["Hoja1"],
        ),
    ] = None
    header_row: Annotated[
        Omittable[int],
        Field(
            ge=0,
            le=1_048_576,
            description="Number of the row with the header of a sheet; by default the one of the first twenty with the"
            " most recognized columns. 0 says that the table has no header: columns are named by their numbers; 1"
            " that CSV has one.",
            examples=[6],
        ),
        whole_number("The number of a row is a whole number from 1 to 1048576, as Excel counts them; 0 is no header."),
    ] = None
    latitud: Column = None
    longitud: Column = None

    @property
    def columns(self) -> dict[str, str]:
        """The header of each column that is named, by its role."""
        return self.model_dump(include={*MatchableRow.model_fields}, exclude_none=True)

    def reading(self, roles: Roles) -> Reading:
        """Return how a file whose columns have these roles is read."""
        return Reading(roles, self.columns, self.sheet, self.header_row)


class MatchReadingOptions(ReadingOptions):
    """The options of reading rows to be matched."""

    nombre: Column = None
    municipio: _AreaColumn = None
    cve_mun: Column = None
    estado: _AreaColumn = None
    cvegeo: Column = None
    clave: Column = None
    kind: Annotated[
        Omittable[PlaceKind],
        Field(
            description="What each row is about; by default a `localidad`, or a `municipio` or `estado` in a table that"
            " has no column for localities.",
            examples=["municipio"],
        ),
    ] = None

    def match_reading(self, areas: AreaBook | None) -> Reading:
        """Return how rows to match are read; without `areas`, any text may be the municipio of all rows."""
        roles, named = ROLES.of_kind(self.kind).with_areas(self.columns, self.header_row, areas)
        return self.reading(roles)._replace(named=named)


class WordingOptions(BaseModel):
    """In which language answers are written."""

    lang: Annotated[
        Language,
        Field(
            description="Language of what CSV and workbooks say: `en` has codes. JSON and NDJSON always have them.",
            examples=["es"],
        ),
    ] = LANGUAGES[0]


class MatchOptions(MatchReadingOptions, WordingOptions):
    """The options of reading, matching and answering rows."""

    sure: Annotated[
        float,
        Field(
            ge=MIN_SURE,
            le=MAX_SURE,
            description="The probability from which a row is `exact` or `sure`: more for fewer mistakes, less for more"
            " keys.",
            examples=[SURE],
        ),
        plain_decimal("A probability is a number from 0.8 to 0.999, such as 0.97."),
    ] = SURE
    fields: MatchedFields = ",".join(MATCHED_BY_DEFAULT)
