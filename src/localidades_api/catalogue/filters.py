"""The queries of lists: filters, order and columns of localities, and those of estados and municipios."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from localidades_api.catalogue.columns import COLUMNS, MATCHED, RECORD
from localidades_api.catalogue.coordinates import DECIMAL
from localidades_api.catalogue.keys import STATE_KEYS
from localidades_api.catalogue.mercator import Box
from localidades_api.catalogue.messages import matching, several_of, whole_number
from localidades_api.catalogue.schemas import Municipality, State

MAX_KEYS = 500
MAX_TEXT_LENGTH = 100  # characters that a person types; INEGI's longest name has 86

T = TypeVar("T")

# Refused if it is blank. A pattern of pydantic's own would not see the text without the spaces around it.
SearchText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TEXT_LENGTH),
    Field(json_schema_extra={"pattern": r"\S"}),
]


class _WithoutNull:
    """Keeps null out of a JSON schema: a URL can't have it, and generated clients would name a type after the union."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler(schema)
        given, _null = described.pop("anyOf")
        return {**given, **described}


Omittable = Annotated[T | None, _WithoutNull()]  # the type of an optional parameter

StateId = Annotated[
    int,
    Field(
        ge=STATE_KEYS[0],
        le=STATE_KEYS[-1],
        description="Key of an estado, with or without its leading zero.",
        examples=[1],
    ),
    whole_number("The key of an estado has two digits, 01 to 32."),
]
MunicipalityId = Annotated[
    int,
    Field(ge=1001, le=32999, description="Key of a municipio, with or without its leading zero.", examples=[1001]),
    whole_number("The key of a municipio has five digits, such as 01001."),
]

StateParam = Annotated[Omittable[StateId], Field(description="Only records in the estado with this key.", examples=[1])]
MunicipalityParam = Annotated[
    Omittable[MunicipalityId], Field(description="Only records in the municipio with this key.", examples=[1001])
]

AmbitoParam = Annotated[Omittable[Literal["U", "R"]], Field(description=COLUMNS["ambito"].meaning, examples=["U"])]


class _Keys(NamedTuple):
    """Keys separated by commas: the pattern of one, the most that there may be, and the refusal of any other text."""

    pattern: str
    most: int
    refusal: str
    digits: int = 1

    def read(self, text: str) -> str:
        """Return each key once, in order, with `digits` digits at least."""
        if not re.fullmatch(f"{self.pattern}(,{self.pattern})*", text):
            raise PydanticCustomError("keys", "{refusal}", {"refusal": self.refusal})
        keys = text.split(",")
        if len(keys) > self.most:
            raise PydanticCustomError("key_count", "Use at most {count} keys.", {"count": self.most})
        return ",".join(f"{key:0{self.digits}d}" for key in sorted(set(map(int, keys))))

    def described(self, what: str, example: str) -> Any:  # noqa: ANN401  # as pydantic's Field
        """Return the Field of a parameter."""
        return Field(
            description=f"{what}, separated by commas, at most {self.most}; unknown keys are left out.",
            examples=[example],
            json_schema_extra={"pattern": f"^{self.pattern}(,{self.pattern}){{0,{self.most - 1}}}$"},
        )


_STATE = "(?:0?[1-9]|[12][0-9]|3[0-2])"
_STATES = _Keys(_STATE, 100, "Use keys of estados with two digits, 01 to 32, separated by commas.")
_MUNICIPALITIES = _Keys(
    f"{_STATE}(?!000)[0-9]{{3}}", 100, "Use keys of municipios with five digits, such as 01001, separated by commas."
)
_LOCALITIES = _Keys(
    "[0-9]{8,9}", MAX_KEYS, "Use keys of nine digits, such as 010010001, separated by commas.", digits=9
)
StatesParam = Annotated[
    Omittable[Annotated[str, Field(max_length=300), AfterValidator(_STATES.read)]],
    _STATES.described("Only records in the estados with these keys", "1"),
]
MunicipalitiesParam = Annotated[
    Omittable[Annotated[str, Field(max_length=600), AfterValidator(_MUNICIPALITIES.read)]],
    _MUNICIPALITIES.described("Only records in the municipios with these keys", "1001"),
]
KeysParam = Annotated[
    Omittable[Annotated[str, Field(max_length=MAX_KEYS * 10), AfterValidator(_LOCALITIES.read)]],
    _LOCALITIES.described("Official keys", "010010001,010010002"),
]

_Population = Omittable[
    Annotated[int, Field(ge=0, le=999_999_999), whole_number("Use a whole number from 0 to 999999999.")]
]
_Altitude = Omittable[
    Annotated[int, Field(ge=-999, le=9999), whole_number("Use a whole number from -999 to 9999.", is_signed=True)]
]


_CLAVE = "^[0-9]{4}$"
ClaveParam = Annotated[
    Omittable[Annotated[str, matching(_CLAVE, "The key within a municipio has four digits, such as 0001.")]],
    Field(
        description="Key within the municipio, four digits.", examples=["0001"], json_schema_extra={"pattern": _CLAVE}
    ),
]

_BOX_DECIMALS = 9  # of a degree, a tenth of a millimetre


def _normalize_box(text: str) -> str:
    """Check a box, and return it without superfluous decimals."""
    if not re.fullmatch(rf"{DECIMAL}(,{DECIMAL}){{3}}", text):
        raise PydanticCustomError("bbox", "Use west,south,east,north in degrees, such as -103,21.5,-102,22.5.")
    west, south, east, north = box = Box(*(round(float(degrees), _BOX_DECIMALS) + 0.0 for degrees in text.split(",")))
    if not (-180 <= west <= east <= 180 and -90 <= south <= north <= 90):  # noqa: PLR2004  # degrees
        raise PydanticCustomError(
            "bbox_order", "West and south come first; longitudes are from -180 to 180, and latitudes from -90 to 90."
        )
    return ",".join(f"{degrees:.{_BOX_DECIMALS}f}".rstrip("0").rstrip(".") for degrees in box)


_BoundingBox = Annotated[
    Omittable[Annotated[str, Field(max_length=4 * 31), AfterValidator(_normalize_box)]],
    Field(
        description="Only places within a box, or on its edges: west,south,east,north in degrees (WGS 84).",
        examples=["-103,21.5,-102,22.5"],
        json_schema_extra={"pattern": rf"^{DECIMAL}(,{DECIMAL}){{3}}$"},
    ),
]


class ColumnFilters(BaseModel):
    """The parameters that choose localities by the value of a column."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    municipio_id: MunicipalitiesParam = None
    estado_id: StatesParam = None
    clave: ClaveParam = None
    ambito: AmbitoParam = None
    cvegeo: KeysParam = None
    poblacion_min: _Population = Field(
        default=None, description="Least population; places without one are left out.", examples=[2500]
    )
    poblacion_max: _Population = Field(
        default=None, description="Largest population; places without one are left out.", examples=[4999]
    )
    altitud_min: _Altitude = Field(
        default=None, description="Least altitude in metres; places without one are left out.", examples=[2000]
    )
    altitud_max: _Altitude = Field(
        default=None, description="Largest altitude in metres; places without one are left out.", examples=[2500]
    )

    @field_validator("poblacion_max", "altitud_max")
    @classmethod
    def _check_order(cls, most: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get(f"{str(info.field_name).removesuffix('_max')}_min")
        if most is not None and least is not None and most < least:
            raise PydanticCustomError("range_order", "The upper bound is below the lower one.")
        return most


class LocalityFilters(ColumnFilters):
    """The parameters that choose localities.

    One that is named as a column is equal to it, or has several values; the others have their conditions in
    `database.queries.conditions`, except `search`, which the index of names answers.
    """

    bbox: _BoundingBox = None
    search: Omittable[SearchText] = Field(
        default=None,
        description="Words of a name, its municipio and its estado, or their beginnings, in any order; a key; or a"
        " label. Abbreviations, everyday and former names are understood, and misspelt words if nothing else is"
        " found.",
        examples=["jose san"],
    )

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The filters that are set, as in a query string."""
        values = ((name, getattr(self, name)) for name in LocalityFilters.model_fields)
        return {name: str(value) for name, value in values if value is not None}

    @property
    def only_state(self) -> int | None:
        """The key of the estado, if exactly one is chosen."""
        return _only(self.estado_id)

    @property
    def only_municipality(self) -> int | None:
        """The key of the municipio, if exactly one is chosen."""
        return _only(self.municipio_id)


def _only(keys: str | None) -> int | None:
    return int(keys) if keys and "," not in keys else None


Sort = Literal["clave", "-clave", "nombre", "-nombre", "poblacion", "-poblacion", "relevance"]

DEFAULT_SORT: Sort = "clave"  # the order of the positions of a release

SortParam = Annotated[
    Sort,
    Field(
        description="Order of the list; a minus reverses it. Names are sorted as in Spanish: ñ comes after n, and"
        " accents and capitals decide only between names that are otherwise the same. Places without a population"
        " come last in both directions. By `relevance`, the places that are suggested for the search come first,"
        " twenty at most, then those that are named as searched, those whose names begin so, and among them the most"
        " populous. Among equals, the lower id comes first.",
        examples=["-poblacion"],
    ),
]


def column_names(known: Sequence[str], schema: str, example: str) -> Any:  # noqa: ANN401  # as pydantic's Field
    """Return a Field for names of columns separated by commas; `schema` is the name of their model."""
    name = "|".join(known)
    return Field(
        description="Columns of the records, separated by commas, for JSON only. A record then has these members and no"
        f" others, each as in `{schema}`, in this order: {', '.join(known)}.",
        examples=[example],
        json_schema_extra={"pattern": f"^({name})(,({name}))*$"},
    )


FieldsParam = Annotated[
    Omittable[Annotated[str, Field(max_length=2 * len(",".join(RECORD))), several_of(RECORD)]],
    column_names(RECORD, "LocalityDetail", "cvegeo,nombre,poblacion"),
]

_NAME_OF_MATCHED = "|".join(MATCHED)

MatchedFields = Annotated[
    str,
    Field(
        max_length=2 * len(",".join(MATCHED)),
        description="Columns of the matched place to return, separated by commas: members of an answer and of each"
        " candidate, and columns of tables, where only certain places have them. The population of a"
        " municipio or an estado is that of its localities, as far as it is known. They come in this order:"
        f" {', '.join(MATCHED)}.",
        examples=["nombre,latitud,longitud"],
        json_schema_extra={"pattern": f"^({_NAME_OF_MATCHED})(,({_NAME_OF_MATCHED}))*$"},
    ),
    several_of(MATCHED),
]


def split_fields(fields: str | None) -> list[str]:
    """Return the requested columns; an empty list if the query does not choose any."""
    return fields.split(",") if fields else []


# -- Estados and municipios

AreaSearchParam = Annotated[
    Omittable[SearchText],
    Field(
        description="Words of a name, also with those of its estado, or their beginnings, in any order; a key of two or"
        " five digits; or a label. Municipios are also found by their cabeceras and by everyday and former names, with"
        " or without titles, and misspelt words are understood if nothing else is found.",
        examples=["aguascalientes"],
    ),
]

_ORDER = (
    "Order of the list; a minus reverses it. Names are sorted as in Spanish: ñ comes after n, and accents and capitals"
    " decide only between names that are otherwise the same. By `relevance`, the likeliest areas for the search come"
    " first, in the order of suggestions. Among equals, the lower id comes first."
)
StateSort = Literal["id", "-id", "clave", "-clave", "nombre", "-nombre", "abreviatura", "-abreviatura", "relevance"]
MunicipalitySort = Literal[
    "id", "-id", "clave", "-clave", "nombre", "-nombre", "estado", "-estado", "localidades", "-localidades", "relevance"
]
DEFAULT_AREA_SORT: Literal["id"] = "id"
StateSortParam = Annotated[StateSort, Field(description=_ORDER, examples=["nombre"])]
MunicipalitySortParam = Annotated[
    MunicipalitySort, Field(description=f"{_ORDER} `estado` is the name of the estado.", examples=["-localidades"])
]

STATE_COLUMNS = tuple(State.model_fields)
MUNICIPALITY_COLUMNS = tuple(Municipality.model_fields)
StateFieldsParam = Annotated[
    Omittable[Annotated[str, Field(max_length=2 * len(",".join(STATE_COLUMNS))), several_of(STATE_COLUMNS)]],
    column_names(STATE_COLUMNS, "State", "clave,nombre"),
]
MunicipalityFieldsParam = Annotated[
    Omittable[
        Annotated[str, Field(max_length=2 * len(",".join(MUNICIPALITY_COLUMNS))), several_of(MUNICIPALITY_COLUMNS)]
    ],
    column_names(MUNICIPALITY_COLUMNS, "Municipality", "id,nombre"),
]
