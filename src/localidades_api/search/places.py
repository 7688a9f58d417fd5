"""What goes into an index, and what comes out."""

from typing import Literal, NamedTuple

Kind = Literal["localidad", "municipio", "estado"]
Match = Literal["key", "label", "exact", "seat", "everyday", "former", "prefix", "words", "near"]

KEYS_OF_A_MUNICIPIO = 10_000  # the key of a locality is that of its municipio and four digits
MAX_TEXT = 200  # characters; INEGI's longest name has 86, and a label two more
KEYS_OF_A_STATE = 1000  # the key of a municipio is that of its estado and three digits


class Former(NamedTuple):
    """How an earlier release knew a place: its name then, the name of its municipio then, and its key then."""

    nombre: str
    municipio: str
    id: int


class Place(NamedTuple):
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


class Suggested(NamedTuple):
    """A place, municipio or estado that a text may mean.

    `match` says why: `key`, `label` (its label, whole), `exact` (its name), `seat` (the name of the municipio that it
    is the seat of), `everyday` (a name from the table of such names), `former` (a name or key of an earlier release),
    `prefix` (the name begins so), `words` (its name and its areas have these words), `near` (a word was misspelt).
    `name` is the name that matched where it isn't the one in `nombre`.
    """

    kind: Kind
    id: int
    nombre: str
    label: str
    match: Match
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
        return f"{self.id:0{ {'localidad': 9, 'municipio': 5, 'estado': 2}[self.kind] }d}"
