"""A row to match, and its result."""

import math
from typing import Literal, NamedTuple

from localidades_api.names.faults import NameFault

_KM_PER_DEGREE = 111.2

Outcome = Literal["exact", "sure", "ambiguous", "none"]


class MatchRow(NamedTuple):
    """A row as a person has it; `nombre`, `cvegeo`, or `clave` and `municipio` are needed.

    `cvegeo` has nine digits, or eight without the zero; `clave` has the last four. `municipio` and `estado` are names
    or keys. Degrees are decimal, west is negative. `ambito` is U (urban) or R (rural).
    """

    nombre: str | None = None
    municipio: str | None = None
    estado: str | None = None
    latitud: float | None = None
    longitud: float | None = None
    cvegeo: str | None = None
    clave: str | None = None
    ambito: str | None = None

    def kilometres_to(self, latitud: float | None, longitud: float | None) -> float | None:
        """Return how far a place is from the point given; None where either has no point."""
        if self.latitud is None or self.longitud is None or latitud is None or longitud is None:
            return None
        east = (longitud - self.longitud) * math.cos(math.radians(latitud))
        return _KM_PER_DEGREE * math.hypot(latitud - self.latitud, east)


class Candidate(NamedTuple):
    """A place that a row may mean; its score is 100 times the probability that it is the right one."""

    id: int
    label: str
    score: float
    faults: tuple[NameFault, ...]

    @property
    def cvegeo(self) -> str:
        """The key with its leading zero."""
        return f"{self.id:09d}"


class MatchResult(NamedTuple):
    """What was found for a row.

    `exact`: the name as the catalogue writes it, and no other place that can be meant. `sure`: a place that is right
    with at least the probability asked for. `ambiguous`: one of the candidates, which a person has to choose. `none`:
    no place is like it.
    `margin` is the lead over the next candidate, or the score where there is no other. `withdrawn` is the key of a
    place of an earlier release that had this very name and has no successor: nothing is certain then.
    """

    outcome: Outcome
    best: Candidate | None
    margin: float
    candidates: tuple[Candidate, ...]
    withdrawn: int | None = None

    @property
    def id(self) -> int | None:
        """The key, where it is certain."""
        return self.best.id if self.best is not None and self.outcome in {"exact", "sure"} else None
