"""Compares a row's municipio, point and key with a place's."""

import math
from collections.abc import Mapping, Sequence

from localidades_api.search.areas import Area
from localidades_api.search.layout import HOMONYM, URBAN
from localidades_api.search.ranking import Known
from localidades_api.search.rows import Discrepancy, MatchRow

_MUNICIPIO_SHARE = 0.4  # of how much the municipio's name is unlike the given
_FORMER_MUNICIPIO, _LIKE_FORMER_MUNICIPIO = 0.5, 3.0  # the municipio that the place was in
_SAME_BUT_FORMER = 99.0  # likeness of a former name that is the same
# Kilometres from the point that was given, and what they cost.
_DISTANCES = ((2.0, 0.0), (5.0, 2.0), (15.0, 6.0), (40.0, 14.0), (math.inf, 25.0))
_KM_PER_DEGREE = 111.2
_OTHER_AMBITO = 0.9  # less than any margin: it orders homonyms and decides nothing, since registers often differ


def has_homonym(place: Known, faults: Sequence[Discrepancy]) -> bool:
    """Tell whether another place of the municipio answers to what was given as well, compared or not."""
    other_names = {"former_name", "bracket", "seat", "everyday"}
    return bool(place.flags & HOMONYM) and other_names.isdisjoint(fault.code for fault in faults)


def read_key(text: str | None) -> int | None:
    """Return the number that a key is, or None."""
    stripped = (text or "").strip()
    return int(stripped) if stripped.isdecimal() and len(stripped) <= 9 else None  # noqa: PLR2004  # digits of a key


def area_fault(row: MatchRow, area: Area, municipios: Mapping[int, str]) -> Discrepancy | None:
    """Return the fault of a municipio whose name is not quite the one given."""
    if area.likeness >= 100:  # noqa: PLR2004  # the same name
        return None
    if area.former:
        penalty = _FORMER_MUNICIPIO if area.likeness >= _SAME_BUT_FORMER else _LIKE_FORMER_MUNICIPIO
        return Discrepancy("municipio", row.municipio or "", "", penalty)
    penalty = round((100 - area.likeness) * _MUNICIPIO_SHARE, 2)
    return Discrepancy("municipio", row.municipio or "", municipios.get(area.id, ""), penalty)


def distance_fault(row: MatchRow, place: Known) -> Discrepancy | None:
    """Return the fault of a place that is away from the point given."""
    if row.latitud is None or row.longitud is None or place.latitud is None or place.longitud is None:
        return None
    east = (place.longitud - row.longitud) * math.cos(math.radians(place.latitud))
    km = _KM_PER_DEGREE * math.hypot(place.latitud - row.latitud, east)
    penalty = next(cost for bound, cost in _DISTANCES if km <= bound)
    return Discrepancy("distance", f"{km:.1f} km", "", penalty) if penalty else None


def ambito_fault(row: MatchRow, place: Known) -> Discrepancy | None:
    """Return the fault of a place that is urban where rural was given, or the other way round."""
    found = "U" if place.flags & URBAN else "R"
    return Discrepancy("ambito", row.ambito, found, _OTHER_AMBITO) if row.ambito and row.ambito != found else None
