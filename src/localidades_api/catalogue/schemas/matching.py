"""Rows to match, and their answers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from localidades_api.catalogue.schemas.places import NearbyPlace

_KEY = "^[0-9]{9}$"


class MatchableRow(BaseModel):
    """A row to match: a name with its areas, or a key; other members come back untouched.

    A member is recognized under other names too, such as `localidad`, `nom_mun` or `lat`.
    """

    model_config = ConfigDict(extra="allow")

    nombre: Annotated[str | None, Field(description="The name of the place.", examples=["Guadalajra"])] = None
    municipio: Annotated[
        str | None, Field(description="The name of its municipio, or its key.", examples=["Guadalajara"])
    ] = None
    estado: Annotated[
        str | None,
        Field(description="The name of its estado, an abbreviation, a code, or its key.", examples=["Jal."]),
    ] = None
    latitud: Annotated[float | None, Field(description="Degrees north.", ge=-90, le=90, examples=[20.6767])] = None
    longitud: Annotated[
        float | None, Field(description="Degrees east: negative in Mexico.", ge=-180, le=180, examples=[-103.3475])
    ] = None
    cvegeo: Annotated[
        str | int | None,
        Field(description="The official key, with or without its zero; a withdrawn one leads to its successor."),
    ] = None
    clave: Annotated[
        str | int | None,
        Field(description="The key within the municipio, used with `municipio` if there is no `nombre`."),
    ] = None


class MatchFault(BaseModel):
    """What differs between a row and a place."""

    code: Annotated[
        str,
        Field(
            description="What differs: `wording`, `article`, `order`, `spacing`, `spelling`, `kind`, `number`,"
            " `contrast`, words `added` or `missing`, `name`; what is known of the place: `bracket`, `seat`,"
            " `everyday`, `former_name`, `former_key`, `withdrawn_key`, `unknown_key`, `key`; or where it is:"
            " `municipio`, `estado`, `distance`, `ambito`.",
            examples=["spelling"],
        ),
    ]
    given: Annotated[str, Field(description="What the row says.", examples=["Guadalajra"])]
    found: Annotated[str, Field(description="What the catalogue says.", examples=["Guadalajara"])]
    penalty: Annotated[
        float,
        Field(
            description="How much it differs, in points, which order the places before their scores are known.",
            ge=0,
            examples=[5.5],
        ),
    ]


class MatchCandidate(BaseModel):
    """A locality that a row may mean."""

    cvegeo: Annotated[str, Field(description="The official key.", pattern=_KEY, examples=["140390001"])]
    id: Annotated[int, Field(description="The official key read as a number.", examples=[140390001])]
    label: Annotated[
        str,
        Field(
            description="Name, municipio and estado, with the clave where another place has the same.",
            examples=["Guadalajara, Guadalajara, Jalisco"],
        ),
    ]
    score: Annotated[
        float,
        Field(description="100 times the probability that it is the right one.", ge=0, le=100, examples=[98.7]),
    ]
    faults: list[MatchFault]


class Match(BaseModel):
    """The answer to a row; rows are answered in the order in which they were sent."""

    sent: Annotated[
        object,
        Field(description="What was sent: the object, or a line of CSV as an object of texts."),
    ]
    outcome: Annotated[
        Literal["exact", "sure", "ambiguous", "none", "problem"],
        Field(
            description="`exact`: the name as the catalogue writes it, and no other place can be meant. `sure`: that"
            " place with at least the probability asked for. `ambiguous`: one of `candidates`, which a person has to"
            " choose. `none`: no place is like it. `problem`: this row can't be read, and `problem` says why."
        ),
    ]
    cvegeo: Annotated[
        str | None,
        Field(
            description="The official key of the likeliest place; rely on it if `exact` or `sure`.",
            pattern=_KEY,
            examples=["140390001"],
        ),
    ]
    id: Annotated[int | None, Field(description="The same key read as a number.", examples=[140390001])]
    label: Annotated[
        str | None,
        Field(description="Name, municipio and estado of that place.", examples=["Guadalajara, Guadalajara, Jalisco"]),
    ]
    score: Annotated[
        float | None,
        Field(
            description="100 times the probability that it is the right one; null for no place.",
            ge=0,
            le=100,
            examples=[98.7],
        ),
    ]
    margin: Annotated[
        float | None,
        Field(description="The lead over the next place, or `score` if there is none.", ge=0, le=100, examples=[96.2]),
    ]
    faults: Annotated[
        list[MatchFault], Field(description="What differs between the row and the place that is most like it.")
    ]
    candidates: Annotated[
        list[MatchCandidate],
        Field(description="The places that are most like the row; empty if `exact` or `sure`.", max_length=5),
    ]
    withdrawn: Annotated[
        str | None,
        Field(
            description="The key of a place of an earlier release that had this name or key and has no successor.",
            pattern=_KEY,
        ),
    ]
    problem: Annotated[
        str | None,
        Field(description="Why this row can't be answered; beside another outcome, what of the row was left out."),
    ]


class PointRow(BaseModel):
    """A row with a point; other members come back untouched."""

    model_config = ConfigDict(extra="allow")

    latitud: Annotated[float | None, Field(description="Degrees north.", ge=-90, le=90, examples=[20.6767])] = None
    longitud: Annotated[
        float | None, Field(description="Degrees east: negative in Mexico.", ge=-180, le=180, examples=[-103.3475])
    ] = None


class NearestPlaces(BaseModel):
    """The answer to a point; points are answered in the order in which they were sent."""

    sent: Annotated[object, Field(description="What was sent: the object, or a line of CSV as an object of texts.")]
    results: Annotated[list[NearbyPlace], Field(description="The nearest localities, the nearest first.")]
    problem: Annotated[str | None, Field(description="Why this row can't be answered.")]


def rows_of(row: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a document of rows."""
    return {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": row.model_json_schema()}},
        "required": ["rows"],
        "additionalProperties": False,
    }
