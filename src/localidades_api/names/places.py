"""The places that an index is built from, that it holds, and that it suggests."""

from enum import StrEnum
from typing import NamedTuple

from localidades_api.catalogue.keys import CLAVE_DIGITS, PlaceKind, format_key
from localidades_api.catalogue.schemas import MatchReason

MIN_URBAN = 2500  # inhabitants from which on INEGI calls a locality urban
_MIN_SEAT = 1000  # inhabitants that a cabecera ranks with at least
MAX_TEXT = 200  # characters; INEGI's longest name has 86, and a label two more


class Former(NamedTuple):
    """How an earlier release knew a place: its name then, the name of its municipio then, and its key then."""

    nombre: str
    municipio: str
    id: int


class IndexedPlace(NamedTuple):
    """A locality as an index is built from it; `is_seat` where it is the cabecera of its municipio."""

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
    is_seat: bool = False
    former: tuple[Former, ...] = ()


class Withdrawn(NamedTuple):
    """A place of an earlier release that has neither its key nor a successor today."""

    id: int
    nombre: str
    municipio: str


def prominent_population(poblacion: int | None, *, is_urban: bool, is_seat: bool) -> int:
    """Return how many inhabitants a place ranks with: a cabecera and an urban place are more than a hamlet."""
    known = poblacion if poblacion is not None else MIN_URBAN if is_urban else 0
    return max(known, _MIN_SEAT if is_seat else 0)


class NameKind(StrEnum):
    """Which of a place's names one is; the values are those of the index."""

    OWN = "n"
    BRACKET = "b"  # what stands in the brackets of its own name, or with them
    SEAT = "s"  # a seat, under the name of its municipio
    SHARED_SEAT = "t"  # the same where another place has that name too
    EVERYDAY = "e"
    FORMER = "f"


class PlaceName(NamedTuple):
    """A name of a place: its kind, its canonical words, and how it is written (empty: as the catalogue does)."""

    kind: NameKind
    words: tuple[str, ...]
    written: str


class IndexedLocality(NamedTuple):
    """A place as an index holds it; `prominence` is what its population adds to the points of a suggestion."""

    row: int
    id: int
    nombre: str
    poblacion: int | None
    latitud: float | None
    longitud: float | None
    flags: int  # of `layout`
    prominence: float
    names: tuple[PlaceName, ...]
    former: tuple[Former, ...]
    municipio_words: tuple[str, ...]
    state_words: frozenset[str]


class Suggested(NamedTuple):
    """A place, municipio or estado that a text may mean.

    `match` says why: `key`, `label` (its label, whole), `exact` (its name), `seat` (the name of the municipio that it
    is the seat of), `everyday` (a name from the table of such names), `former` (a name or key of an earlier release),
    `prefix` (the name begins so), `words` (its name and its areas have these words), `near` (a word was misspelt).
    `name` is the name that matched where it isn't the one in `nombre`.
    """

    kind: PlaceKind
    id: int
    nombre: str
    label: str
    match: MatchReason
    score: float
    name: str | None = None
    municipio_id: int | None = None
    municipio: str | None = None
    estado_id: int | None = None
    estado: str | None = None
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
        return self.cvegeo[-CLAVE_DIGITS[self.kind] :]
