"""A row to match, and its result."""

from typing import Literal, NamedTuple

from localidades_api.catalogue.coordinates import EARTH_RADIUS, angle_between
from localidades_api.catalogue.keys import PlaceKind, format_key, kind_of_key
from localidades_api.names.places import MAX_TEXT
from localidades_api.names.reasons import Difference

Outcome = Literal["exact", "sure", "ambiguous", "none"]
MAX_CANDIDATES = 5


class MatchRow(NamedTuple):
    """A row to match with a locality; it needs `nombre`, `cvegeo`, or `clave` and `municipio`.

    `cvegeo` has nine digits, or eight without the zero. `clave` has the last four digits of the key, or the last seven
    where the estado is given. `municipio` and `estado` are names or keys, and `cve_mun` is the key of a municipio that
    has a name as well: three digits where the estado is given, otherwise five. Degrees are decimal, west is negative.
    `ambito` is U (urban) or R (rural).

    A row of another `kind` is matched with a municipio or an estado: `nombre` is the name of the area, and `cvegeo` its
    key. A municipio has `cve_mun` with `estado` as well.
    """

    nombre: str | None = None
    municipio: str | None = None
    estado: str | None = None
    latitud: float | None = None
    longitud: float | None = None
    cvegeo: str | None = None
    clave: str | None = None
    ambito: str | None = None
    cve_mun: str | None = None
    kind: PlaceKind = "localidad"

    def clipped(self) -> "MatchRow":
        """Return the row with the beginnings of texts that are longer than any name."""
        texts = self.nombre, self.municipio, self.estado, self.cvegeo, self.clave, self.ambito, self.cve_mun
        if max(map(len, filter(None, texts)), default=0) <= MAX_TEXT:
            return self
        return MatchRow._make(value[:MAX_TEXT] if isinstance(value, str) else value for value in self)

    def kilometres_to(self, latitud: float | None, longitud: float | None) -> float | None:
        """Return the distance of a place from the row's point; None if either has no point."""
        if self.latitud is None or self.longitud is None or latitud is None or longitud is None:
            return None
        return EARTH_RADIUS / 1000 * angle_between(self.latitud, self.longitud, latitud, longitud)


def read_key(text: str | None) -> int | None:
    """Return a key as a number, or None if it is not a key."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() and len(stripped) <= 9 else None  # noqa: PLR2004  # digits of a key


class Candidate(NamedTuple):
    """A place or area that may be the right one; its score is 100 times the estimated probability that it is."""

    id: int
    label: str
    score: float
    faults: tuple[Difference, ...]
    row: int | None = None  # of a locality in the index

    @property
    def cvegeo(self) -> str:
        """The key with its leading zero."""
        return format_key(kind_of_key(self.id), self.id)


class MatchResult(NamedTuple):
    """The result for a row.

    `exact`: the name as the catalogue writes it, and no doubt. `sure`: a place with at least the required probability.
    `ambiguous`: a person has to choose among the candidates. `none`: no place is similar.

    The likeliest candidate comes first. `withdrawn` is the key of a withdrawn place with exactly this name and without
    a successor: nothing is certain then.
    """

    outcome: Outcome
    candidates: tuple[Candidate, ...] = ()
    withdrawn: int | None = None

    @property
    def best(self) -> Candidate | None:
        """The first candidate, unless the outcome is `none`."""
        return None if self.outcome == "none" else self.candidates[0]

    @property
    def margin(self) -> float:
        """The lead of the best candidate over the next one, or its score if there is only one."""
        if self.best is None:
            return 0.0
        return round(self.best.score - (self.candidates[1].score if len(self.candidates) > 1 else 0.0), 2)

    @property
    def id(self) -> int | None:
        """The key, if it is certain."""
        return self.best.id if self.best is not None and self.outcome in {"exact", "sure"} else None
