"""Decides whether a match is certain enough to be used without review."""

from typing import TYPE_CHECKING

from localidades_api.search.layout import KEY, SEAT, URBAN
from localidades_api.search.rows import MatchResult, MatchRow

if TYPE_CHECKING:
    from localidades_api.search.index import NameIndex


def is_certain(index: "NameIndex", row: MatchRow, result: MatchResult) -> bool:
    """Tell whether a result is beyond reasonable doubt, given how much the row says of where the place is.

    Without its municipio, a point or a key, the only place of a name is another than the one meant for four to seven
    in a hundred names from registers: that one is written otherwise in the catalogue, or was left out. So only a town
    is certain then, under its exact name and with its estado.
    """
    if result.id is None:
        return False
    estado_id = index.areas.find_state(row.estado) if row.estado else None
    if (
        row.cvegeo
        or row.latitud is not None
        or (row.municipio and index.areas.find_municipios(row.municipio, estado_id))
    ):
        return True
    if result.outcome != "exact" or estado_id is None:
        return False
    place = index.place(index.layout.find(KEY, str(result.id), 1)[0])
    return place.id == result.id and bool(place.flags & (URBAN | SEAT))
