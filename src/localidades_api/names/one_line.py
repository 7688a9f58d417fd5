"""Reads a place written on one line, such as `Guadalajara, Jalisco`, or a key."""

from collections.abc import Iterator

from localidades_api.names.areas import AreaBook
from localidades_api.names.rows import MatchRow

_KEY_DIGITS = {8, 9}


def readings(areas: AreaBook, row: MatchRow) -> Iterator[MatchRow]:
    """Yield what a row with a name alone may be, with the most areas first; the row itself comes last.

    The name may have municipio and estado after it, or be a key.
    """
    text = row.nombre or ""
    digits = text.strip()
    if digits.isdecimal() and len(digits) in _KEY_DIGITS:
        yield row._replace(nombre=None, cvegeo=digits)
        return
    name, _, last = (part.strip() for part in text.rpartition(","))
    if name and last:
        inner, _, municipio = (part.strip() for part in name.rpartition(","))
        is_estado = areas.find_state(last) is not None
        if is_estado and inner and municipio:
            yield row._replace(nombre=inner, municipio=municipio, estado=last)
        if is_estado:
            yield row._replace(nombre=name, estado=last)
        elif areas.find_municipios(last, None):
            yield row._replace(nombre=name, municipio=last)
    yield row
