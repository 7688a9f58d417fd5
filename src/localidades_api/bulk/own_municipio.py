"""Whether a point lies in the municipio that its row names."""

from localidades_api.bulk.input_rows import Cells
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO
from localidades_api.names.index import NameIndex
from localidades_api.names.rows import MatchRow, read_key

_MAX_DIGITS = 5  # of the key of a municipio


def judge(cells: Cells, found: int | None, index: NameIndex) -> tuple[bool | None, str | None]:
    """Return whether the row's own municipio is `found`, and a note if that can't be told.

    None if the row names no municipio. Names are read as the matcher reads them; the likeliest of several counts if
    none is certain, unless the point lies in another one that the name may mean.
    """
    key = _text(cells, "cvegeo")
    if key and (number := read_key(key)) is not None:
        municipio_id = number // KEYS_OF_A_MUNICIPIO if len(key) > _MAX_DIGITS else number
        return municipio_id == found, None
    municipio, estado, cve_mun = (_text(cells, role) for role in ("municipio", "estado", "cve_mun"))
    if not municipio and not cve_mun:
        return None, None
    result = index.match(MatchRow(municipio, estado=estado, cve_mun=cve_mun, kind="municipio"))
    if result.id is not None:
        return result.id == found, None
    if any(one.id == found for one in result.candidates):
        return True, None
    return (False, None) if result.candidates else (None, "Its municipio is not in the catalogue.")


def _text(cells: Cells, role: str) -> str | None:
    value = cells.get(role)
    return None if value is None else str(value)
