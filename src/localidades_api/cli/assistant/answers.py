"""The arguments and answers of the tools for assistants; keys are text, with their leading zeros."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Key = Annotated[str, Field(description="Official key, with leading zeros.")]
Text = Annotated[str, Field(min_length=1, max_length=100)]


class WrittenPlace(BaseModel):
    """A place as somebody wrote it."""

    model_config = ConfigDict(extra="forbid")

    nombre: Annotated[Text, Field(description="Name of the locality.")]
    municipio: Annotated[Text | None, Field(description="Name or key of its municipio, if known.")] = None
    estado: Annotated[Text | None, Field(description="Name, abbreviation or key of its estado, if known.")] = None
    latitud: Annotated[float | None, Field(ge=-90, le=90, description="Degrees north.")] = None
    longitud: Annotated[float | None, Field(ge=-180, le=180, description="Degrees east: negative in Mexico.")] = None


class PlaceCandidate(BaseModel):
    """A place that a row may mean."""

    cvegeo: Key
    label: Annotated[str, Field(description="Name, municipio and estado.")]
    score: Annotated[float, Field(description="100 for no difference.")]


class Matched(BaseModel):
    """The answer to a row."""

    outcome: Annotated[
        str,
        Field(
            description="`exact` or `sure`: rely on `cvegeo`. `ambiguous`: a person has to choose among `candidates`."
            " `none`: no place is like it. `problem`: the row can't be read, and `problem` says why."
        ),
    ]
    cvegeo: Annotated[str | None, Field(description="Official key of the likeliest place, with leading zeros.")]
    label: str | None
    score: float | None
    differences: Annotated[list[str], Field(description="What differs between the row and the place.")]
    candidates: list[PlaceCandidate]
    problem: str | None


class Matches(BaseModel):
    """The answers to rows, in their order."""

    release: Annotated[str, Field(description="The release of the catalogue that answered.")]
    answers: list[Matched]


class FoundPlace(BaseModel):
    """A place with its official key."""

    cvegeo: Key
    kind: Annotated[str, Field(description="`localidad`, `municipio` or `estado`.")]
    label: Annotated[str, Field(description="Name, municipio and estado.")]
    poblacion: int | None
    latitud: float | None
    longitud: float | None
    metres: Annotated[float | None, Field(description="Distance from the point that was asked for.")] = None


class Places(BaseModel):
    """Places, the likeliest or nearest first."""

    release: str
    places: list[FoundPlace]


class PlaceRecord(BaseModel):
    """Everything that the catalogue says about a place."""

    release: str
    cvegeo: Key
    columns: dict[str, JsonValue]


class Change(BaseModel):
    """How a locality changed."""

    change: str
    cvegeo: Key
    before: Annotated[str | None, Field(description="Its name in the earlier release; null if it was added.")]
    after: Annotated[str | None, Field(description="Its name in the later release; null if it was removed.")]


class Changes(BaseModel):
    """One page of the changes between two releases."""

    since: str
    release: str
    total: Annotated[int, Field(description="Changes on all pages.")]
    pages: int
    changes: list[Change]
