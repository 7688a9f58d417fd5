"""Places: as an index is built from them, as it holds them, and as it suggests them."""

from enum import StrEnum
from typing import Any, NamedTuple

from localidades_api.catalogue.keys import KINDS, PlaceKind, format_key
from localidades_api.catalogue.schemas import MatchReason

MIN_URBAN = 2500  # inhabitants: INEGI calls a locality of at least as many urban
_MIN_SEAT = 1000  # inhabitants: a cabecera ranks with at least as many
MAX_TEXT = 200  # characters; INEGI's longest name has 86, and a label two more


class Former(NamedTuple):
    """A place in an earlier release: its name, the name of its municipio, and its key."""

    nombre: str
    municipio: str
    id: int


class IndexedPlace(NamedTuple):
    """A locality as an index is built from it; `is_seat` if it is the cabecera of its municipio."""

    id: int
    nombre: str
    municipio_id: int
    municipio: str
    estado_id: int
    estado: str
    ambito: str | None = None
    poblacion: int | None = None
    latitud: float | None = None
    longitud: float | None = None
    altitud: int | None = None
    viviendas: int | None = None
    is_seat: bool = False
    former: tuple[Former, ...] = ()


class Withdrawn(NamedTuple):
    """A place of an earlier release whose key is gone and that has no successor."""

    id: int
    nombre: str
    municipio: str


def ranked_population(poblacion: int | None, *, is_urban: bool, is_seat: bool) -> int:
    """Return the population that ranks a place: that of a cabecera or an urban place has a minimum."""
    known = poblacion if poblacion is not None else MIN_URBAN if is_urban else 0
    return max(known, _MIN_SEAT if is_seat else 0)


class NameKind(StrEnum):
    """The kinds of names of a place or an area; the values are those in the index."""

    OWN = "n"
    BRACKET = "b"  # a part in the brackets of `nombre`, or all of `nombre` without them
    SEAT = "s"  # of a seat the name of its municipio, of a municipio that of its seat
    SHARED_SEAT = "t"  # of a seat the name of its municipio, if another place has that name too
    EVERYDAY = "e"
    FORMER = "f"


class PlaceName(NamedTuple):
    """A name of a place: its kind, its canonical words, and its spelling (empty: that of `nombre`)."""

    kind: NameKind
    words: tuple[str, ...]
    written: str


class IndexedLocality(NamedTuple):
    """A place as an index holds it."""

    row: int
    id: int
    nombre: str
    poblacion: int | None
    latitud: float | None
    longitud: float | None
    flags: int  # of `layout`
    names: tuple[PlaceName, ...]
    former: tuple[Former, ...]
    municipio_words: tuple[str, ...]
    state_words: frozenset[str]


class Suggested(NamedTuple):
    """A suggestion: a place, municipio or estado.

    `match` says why: `key`, `label` (its label, whole), `exact` (its name), `seat` (the name of the municipio that it
    is the seat of, or of the seat of a municipio), `everyday` (a name from the table of such names), `former` (a name
    or key of an earlier release), `prefix` (the name begins so), `words` (its name and its areas have these words),
    `near` (a word was misspelt).
    `name` is the name that matched if it isn't the one in `nombre`.
    """

    kind: PlaceKind
    id: int
    nombre: str
    label: str
    match: MatchReason
    score: float
    name: str | None = None
    municipio_id: int | None = None
    poblacion: int | None = None
    latitud: float | None = None
    longitud: float | None = None

    @property
    def cvegeo(self) -> str:
        """The key with its leading zeros: nine digits, five for a municipio, two for an estado."""
        return format_key(self.kind, self.id)

    @property
    def clave(self) -> str:
        """The last part of the key: four digits, three for a municipio, two for an estado."""
        return self.cvegeo[-KINDS[self.kind].clave_digits :]

    def describe(self) -> dict[str, Any]:
        """Return the suggestion as JSON."""
        return {
            "kind": self.kind,
            "id": self.id,
            "cvegeo": self.cvegeo,
            "municipio_id": self.municipio_id,
            "clave": self.clave,
            "nombre": self.nombre,
            "label": self.label,
            "match": self.match,
            "otro_nombre": self.name,
            "poblacion": self.poblacion,
            "latitud": self.latitud,
            "longitud": self.longitud,
        }
