"""Names that a spreadsheet took for dates."""

import re

_DATE = re.compile(
    r"([0-9]{1,2})[-/ ]([a-z]{3,4})\.?(?:[-/ ][0-9]{2,4})?|[0-9]{4}-([0-9]{2})-([0-9]{2})(?:[ T]00:00(?::00)?)?",
    re.IGNORECASE,
)  # 18-mar, 2026-03-18
_MONTHS = (
    "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre",
    "diciembre",
)  # fmt: skip
_SHORT_MONTHS = {
    **{month[:3]: month for month in _MONTHS}, "jan": "enero", "apr": "abril", "aug": "agosto", "dec": "diciembre",
    "sept": "septiembre",
}  # fmt: skip


def undo_date(text: str) -> str:
    """Return the name that a spreadsheet took for a date: `18-mar` and `2026-03-18` are 18 de Marzo."""
    found = _DATE.fullmatch(text) if text[:1].isdigit() else None
    if found is None:
        return text
    month = _SHORT_MONTHS.get(found[2].lower()) if found[2] else dict(enumerate(_MONTHS, 1)).get(int(found[3]))
    return f"{int(found[1] or found[4])} de {month.capitalize()}" if month else text
