"""Localities, municipios and estados as answers show them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from localidades_api.catalogue.keys import PlaceKind

Match = Literal["key", "label", "exact", "seat", "everyday", "former", "prefix", "words", "near"]


class Locality(BaseModel):
    """A locality, as the list shows it."""

    id: Annotated[
        int,
        Field(description="The official key (CVEGEO) read as a number; it never changes.", examples=[10010001]),
    ]
    municipio_id: Annotated[
        int,
        Field(description="The key of the municipio (CVE_ENT, CVE_MUN) read as a number.", examples=[1001]),
    ]
    clave: Annotated[
        str,
        Field(
            description="The key within the municipio (CVE_LOC), with leading zeros; many localities share"
            " the same one.",
            pattern="^[0-9]{4}$",
            examples=["0001"],
        ),
    ]
    nombre: Annotated[str, Field(description="The name, exactly as INEGI publishes it.", examples=["Aguascalientes"])]


class State(BaseModel):
    """An estado."""

    id: Annotated[int, Field(description="The official key (CVE_ENT) read as a number.", examples=[1])]
    clave: Annotated[str, Field(description="The key, two digits.", pattern="^[0-9]{2}$", examples=["01"])]
    nombre: Annotated[str, Field(examples=["Aguascalientes"])]
    abreviatura: Annotated[str | None, Field(description="INEGI's abbreviation.", examples=["Ags."])]


class Municipality(BaseModel):
    """A municipio, as the list shows it."""

    id: Annotated[int, Field(description="The official key (CVE_ENT, CVE_MUN) read as a number.", examples=[1001])]
    estado_id: Annotated[int, Field(examples=[1])]
    clave: Annotated[
        str, Field(description="The key within the estado, three digits.", pattern="^[0-9]{3}$", examples=["001"])
    ]
    nombre: Annotated[str, Field(examples=["Aguascalientes"])]
    localidades: Annotated[int, Field(description="Number of localities in the municipio.", ge=0, examples=[616])]


class MunicipalityDetail(Municipality):
    """A municipio and its estado."""

    estado: State


class LocalityRecord(Locality):
    """A locality with every column of the catalogue; null where INEGI has no data."""

    cvegeo: Annotated[
        str, Field(description="The official key, with leading zeros.", pattern="^[0-9]{9}$", examples=["010010001"])
    ]
    ambito: Annotated[Literal["U", "R"] | None, Field(description="U (urban) or R (rural).")]
    latitud: Annotated[float | None, Field(description="Latitude, in degrees north.", examples=[21.879823])]
    longitud: Annotated[
        float | None, Field(description="Longitude, in degrees east: negative in Mexico.", examples=[-102.296047])
    ]
    altitud: Annotated[int | None, Field(description="Altitude, in metres above sea level.", examples=[1878])]
    carta: Annotated[str | None, Field(description="Key of the 1:50,000 topographic map.", examples=["F13D19"])]
    poblacion: Annotated[int | None, Field(description="Population.", ge=0, examples=[863893])]
    poblacion_masculina: Annotated[int | None, Field(description="Population: men.", ge=0, examples=[419168])]
    poblacion_femenina: Annotated[int | None, Field(description="Population: women.", ge=0, examples=[444725])]
    viviendas: Annotated[int | None, Field(description="Inhabited dwellings.", ge=0, examples=[246259])]


class LocalityDetail(LocalityRecord):
    """A locality with its municipio and its estado."""

    municipio: Municipality
    estado: State


class Place(Locality):
    """A locality with a label that distinguishes it from others with the same name."""

    label: Annotated[
        str,
        Field(
            description="Name, municipio and estado; includes the clave if the municipio has another locality"
            " of this name.",
            examples=["San José, Tonalá, Jalisco"],
        ),
    ]
    poblacion: Annotated[int | None, Field(ge=0)]
    latitud: float | None
    longitud: float | None


class Suggestion(BaseModel):
    """A locality, municipio or estado that the typed text may mean."""

    kind: Annotated[PlaceKind, Field(description="What it is.")]
    id: Annotated[int, Field(description="The official key read as a number.", examples=[10010001])]
    cvegeo: Annotated[
        str,
        Field(
            description="The official key with leading zeros: nine digits, five for a municipio, two for an estado.",
            pattern="^([0-9]{2}|[0-9]{5}|[0-9]{9})$",
            examples=["010010001"],
        ),
    ]
    municipio_id: Annotated[
        int | None, Field(description="The key of the municipio; null for an estado.", examples=[1001])
    ]
    clave: Annotated[str, Field(description="The last part of the key, with leading zeros.", examples=["0001"])]
    nombre: Annotated[str, Field(description="The name, exactly as INEGI publishes it.", examples=["Aguascalientes"])]
    label: Annotated[
        str,
        Field(
            description="Name, municipio and estado, with the clave where another place has the same; a label leads"
            " back to its place.",
            examples=["San José, Tonalá, Jalisco"],
        ),
    ]
    match: Annotated[
        Match,
        Field(
            description="Why it is suggested: its `key` or `label` was typed; its `exact` name; the name of the"
            " municipio that it is the `seat` of; an `everyday` name; a `former` name or key; a `prefix` of its name;"
            " `words` of its name and areas; or words `near` them."
        ),
    ]
    otro_nombre: Annotated[
        str | None,
        Field(description="The name that was recognized, if it is not `nombre`.", examples=["Ciudad Juárez"]),
    ]
    poblacion: Annotated[int | None, Field(ge=0)]
    latitud: float | None
    longitud: float | None


class NearbyPlace(Place):
    """A locality, and its distance from the point."""

    distancia: Annotated[float, Field(description="Great-circle distance in metres.", ge=0, examples=[1204.7])]
