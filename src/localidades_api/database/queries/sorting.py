"""The orders of a list of localities, in SQL.

Not every database has a Spanish collation, so names are compared by bytes: as they are folded, with ñ sorted after n.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, case, func, or_

from localidades_api.catalogue.filters import Sort
from localidades_api.catalogue.folding import APOSTROPHES, fold
from localidades_api.database.models import localities

_columns = localities.c
_ENYE = "{"  # the character after z: `n{` comes after every other n, and before o
_LETTERS: Mapping[str, str] = {
    _ENYE: " ",
    "Ñ": _ENYE,
    "ñ": _ENYE,
    **{one: fold(one) for one in map(chr, range(0xA0, 0x100)) if one not in "Ññ" and len(fold(one)) == 1},
}


def _with_enye() -> ColumnElement[str]:
    """Return the folded name with its ñ: what `folding.fold` does, for the letters of western Europe."""
    plain = func.lower(func.translate(_columns.nombre, "".join(_LETTERS) + APOSTROPHES, "".join(_LETTERS.values())))
    words = func.btrim(func.regexp_replace(plain, f"[^a-z0-9{_ENYE}]+", " ", "g"))
    return func.replace(words, _ENYE, f"n{_ENYE}")


_HAS_ENYE = or_(_columns.nombre.like("%ñ%"), _columns.nombre.like("%Ñ%"))
_BY_NAME: tuple[ColumnElement[str], ...] = (
    case((_HAS_ENYE, _with_enye()), else_=_columns.folded).collate("C"),
    _columns.nombre.collate("C"),
)
ORDERS: Mapping[Sort, tuple[ColumnElement[Any], ...]] = {
    "clave": (_columns.position,),
    "-clave": (_columns.clave.desc(), _columns.id),
    "nombre": (*_BY_NAME, _columns.id),
    "-nombre": (*(one.desc() for one in _BY_NAME), _columns.id),
    "poblacion": (_columns.poblacion.nulls_last(), _columns.id),
    "-poblacion": (_columns.poblacion.desc().nulls_last(), _columns.id),
}
