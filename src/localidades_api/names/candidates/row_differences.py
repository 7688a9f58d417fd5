"""Compares what a row has beside its name, its areas, point and ambito, with those of a place."""

from collections.abc import Mapping

from localidades_api.names import weights
from localidades_api.names.files.layout import URBAN
from localidades_api.names.places import IndexedLocality
from localidades_api.names.reading.areas import Area, AreaBook, untitled
from localidades_api.names.reading.text import canonical, repair
from localidades_api.names.reasons import Difference, Reason, differ
from localidades_api.names.rows import MatchRow


def compare_municipio(row: MatchRow, area: Area, municipios: Mapping[int, str]) -> Difference | None:
    """Return how the name of a municipio differs from that in the row."""
    if area.likeness >= weights.SAME_NAME:
        return None
    if area.former:
        is_same = area.likeness >= weights.SAME_FORMER_LIKENESS
        return differ(Reason.MUNICIPIO_FORMER if is_same else Reason.MUNICIPIO_LIKE_FORMER, row.municipio or "")
    nombre = municipios.get(area.id, "")
    given, found = (set(untitled(canonical(text))) for text in (repair(row.municipio or ""), nombre))
    if given > found and max(map(len, given - found)) > 2:  # noqa: PLR2004  # not `ed` for `de`
        return differ(Reason.MUNICIPIO_ADDED, row.municipio or "", nombre)
    unlike = (weights.SAME_NAME - area.likeness) * weights.MUNICIPIO_PENALTY
    return differ(Reason.MUNICIPIO_UNLIKE, row.municipio or "", nombre, unlike)


def compare_estado(book: AreaBook, estado: str | None) -> Difference | None:
    """Return the difference of an estado that is misspelt or unknown."""
    if not estado:
        return None
    estado_id = book.find_state(estado)
    if estado_id is None:
        return differ(Reason.ESTADO, estado)
    return differ(Reason.ESTADO_UNLIKE, estado, book.estados[estado_id]) if book.is_misspelt_state(estado) else None


def compare_point(row: MatchRow, place: IndexedLocality) -> Difference | None:
    """Return the difference of a place that is away from the row's point."""
    km = row.kilometres_to(place.latitud, place.longitud)
    if km is None:
        return None
    penalty = next(cost for bound, cost in weights.DISTANCE_PENALTIES if km <= bound)
    reason = Reason.DISTANCE if km <= weights.MAX_KILOMETRES else Reason.FAR
    return Difference(reason, f"{km:.1f} km", "", penalty) if penalty else None


def compare_ambito(row: MatchRow, place: IndexedLocality) -> Difference | None:
    """Return the difference of a place that is urban although the row says rural, or the other way round."""
    found = "U" if place.flags & URBAN else "R"
    return differ(Reason.AMBITO, row.ambito, found) if row.ambito and row.ambito != found else None
