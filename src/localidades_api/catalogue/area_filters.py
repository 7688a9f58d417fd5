"""The query of a list of estados or municipios: search, order and columns."""

from typing import Annotated, Literal

from pydantic import Field

from localidades_api.catalogue.filters import Omittable, SearchText, column_names
from localidades_api.catalogue.messages import several_of
from localidades_api.catalogue.schemas import Municipality, State

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
